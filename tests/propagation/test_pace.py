"""How many items a projection takes at a time."""

from __future__ import annotations

import pytest

from memory_pipeline.propagation.pace import FIRST, LARGEST, next_size


@pytest.mark.parametrize(
    ("size", "seconds", "following"),
    [(512, 0.1, 2_048), (LARGEST, 0.1, LARGEST), (512, 5.0, 512), (512, 60.0, 256), (FIRST, 60.0, FIRST)],
)
def test_batches_grow_while_they_are_quick_and_shrink_when_they_are_slow(size, seconds, following):
    assert next_size(size, seconds) == following
