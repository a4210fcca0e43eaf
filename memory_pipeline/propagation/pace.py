"""How many items a projection takes at a time: as many as it can finish within seconds (pure but for the clock)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST, LARGEST = 256, 8_192
"""Items of the first batch, and of the largest. An embedded shard takes as long to write 16 points as 256; flushing and
loading it takes a second for 100,000 however few are written. What is lost with a killed run is at most the
certification of a batch: vectors are kept, and progress is told, more often."""

_QUICK, _SLOW = 2.0, 8.0  # seconds


class Pace:
    """The size of the next batch: four times the last one's after one that was quick, halved after one that was slow.

    With a model at work a batch stays small, so that what it wrote is recallable soon; with vectors at hand it grows.
    """

    def __init__(self) -> None:
        self.size = FIRST

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Work off a batch of this size in the block."""
        began = time.monotonic()
        yield
        self.size = next_size(self.size, time.monotonic() - began)


def next_size(size: int, seconds: float) -> int:
    """How many items to take after a batch of `size` that took so many seconds."""
    if seconds < _QUICK:
        return min(4 * size, LARGEST)
    return max(size // 2, FIRST) if seconds > _SLOW else size
