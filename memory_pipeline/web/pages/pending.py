"""What the index does not hold yet, and completing it."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable
from memory_pipeline.propagation import ProjectionReport
from memory_pipeline.web.pages.notices import Notice
from memory_pipeline.web.pages.visiting import Here, Sent

router = APIRouter(prefix="/w/{workspace}")


@router.get("/pending")
def pending(here: Here) -> Response:
    """Every point that is pending, deleted cards among them, with why."""
    return here.page("pending.html", items=here.curation.pending(here.workspace))


@router.post("/pending")
def retry(here: Here, sent: Sent) -> Response:
    """Complete what is pending, of one card or of all."""
    card_id = str(sent.get("card_id", "")) or None
    try:
        report = here.curation.retry(here.workspace, card_id)
    except (IndexUnavailable, IndexIncompatible, EmbedderUnavailable) as error:
        return here.then("pending", Notice("incomplete", "What is pending stays so.", str(error)))
    return here.then("pending", _notice(report, card_id))


def _notice(report: ProjectionReport, card_id: str | None) -> Notice:
    done = f"{report.written} written, {report.removed} removed."
    if report.busy:
        return Notice("under way", done, "Another process is at it, and takes up the rest.")
    if report.pending:
        left = f"{report.pending} of the workspace still pending: each says why."
        return Notice("incomplete", done, left) if not card_id else Notice("incomplete", f"{card_id}: {done}", left)
    return Notice("done", done)
