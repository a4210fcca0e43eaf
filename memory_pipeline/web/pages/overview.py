"""A workspace at a glance."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from memory_pipeline.web.charts import Chart
from memory_pipeline.web.pages.visiting import Here

router = APIRouter(prefix="/w/{workspace}")

_TIMES = {"24": "24 hours", "168": "7 days", "720": "30 days"}


@router.get("/overview")
def overview(here: Here, hours: str = "24") -> Response:
    """Its cards, what is pending and since when, the last audit, and who waits for a review."""
    length = hours if hours in _TIMES else "24"
    found = here.curation.overview(here.workspace, hours=int(length))
    moments = found.history
    charts = {
        "pending": Chart.of([each.pending for each in moments]),
        "lag": Chart.of([each.lag_seconds for each in moments]),
    }
    families = Chart.of(list(found.status.cards.values()))
    return here.page("overview.html", found=found, charts=charts, families=families, times=_TIMES, hours=length)
