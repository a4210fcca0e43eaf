"""The geometry of charts."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.web.charts import HEIGHT, WIDTH, Chart


@given(st.lists(st.floats(), max_size=200))
def test_every_bar_is_within_the_box_and_no_two_overlap(values):
    chart = Chart.of(values)

    assert len(chart.bars) == len(values)
    right = 0.0
    for bar in chart.bars:
        assert all(math.isfinite(each) for each in (bar.x, bar.y, bar.width, bar.height))
        assert right - 0.02 <= bar.x
        right = bar.x + bar.width
        assert right <= WIDTH + 0.02
        assert 0 <= bar.y <= bar.y + bar.height <= HEIGHT + 0.02


def test_the_greatest_reaches_the_top_and_what_is_more_than_nothing_is_seen():
    chart = Chart.of([0, 1, 1_000_000])

    assert [bar.height > 0 for bar in chart.bars] == [False, True, True]
    assert (chart.bars[2].y, chart.bars[2].height) == (0, HEIGHT)
    assert chart.greatest == 1_000_000
