"""Numbers as the geometry of a small chart: one bar each, side by side, within a box. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 480.0, 96.0
"""Of the box, in the units of its picture."""

_GAP = 0.15  # of a bar's share of the width
_LEAST = 2.0  # what is more than nothing can be seen


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars for numbers.

    Attributes:
        bars: one for each number, in their order.
        greatest: the greatest number, which reaches the top; 0 where there is none.
    """

    bars: tuple[Bar, ...]
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Chart:
        """The chart of some numbers, of which one that is negative or no number counts as 0."""
        usable = [value if math.isfinite(value) and value > 0 else 0.0 for value in values]
        greatest = max(usable, default=0.0)
        share = WIDTH / max(len(usable), 1)
        bars = tuple(_bar(number, value / greatest if greatest else 0.0, share) for number, value in enumerate(usable))
        return cls(bars, greatest)


def _bar(number: int, part: float, share: float) -> Bar:
    height = max(part * HEIGHT, _LEAST) if part else 0.0
    gap = share * _GAP
    return Bar(round(number * share + gap / 2, 2), round(HEIGHT - height, 2), round(share - gap, 2), round(height, 2))
