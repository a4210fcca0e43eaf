"""What the index does not hold yet, and completing it."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable
from memory_pipeline.propagation import ProjectionReport
from memory_pipeline.web.pages.notices import Notice
from memory_pipeline.web.pages.numbers import whole
from memory_pipeline.web.pages.visiting import Here, Sent
from memory_pipeline.web.services import PROJECTOR_WAIT, RETRIED_AT_ONCE

router = APIRouter(prefix="/w/{workspace}")


_SIZE = 200


@router.get("/pending")
def pending(here: Here, page: str = "1") -> Response:
    """What is pending, deleted cards among it, with why."""
    number = max(whole("page", page), 1)
    found = here.curation.pending_page(here.workspace, limit=_SIZE, offset=(number - 1) * _SIZE)
    return here.page(
        "pending.html", found=found, page=number, pages=max(1, -(-found.total // _SIZE)), at_once=RETRIED_AT_ONCE
    )


@router.post("/pending")
def retry(here: Here, sent: Sent) -> Response:
    """Complete what is pending, of one card or of all."""
    card_id = str(sent.get("card_id", "")) or None
    try:
        report = here.curation.retry(here.workspace, card_id, limit=RETRIED_AT_ONCE, wait=PROJECTOR_WAIT)
    except (IndexUnavailable, IndexIncompatible, EmbedderUnavailable) as error:
        return here.then(
            "pending", Notice("incomplete", "Nothing was completed", "What is pending stays so.", str(error))
        )
    return here.then("pending", _notice(report))


def _notice(report: ProjectionReport) -> Notice:
    done = f"{report.written} written, {report.removed} removed."
    if report.busy:
        return Notice("under way", "Under way", done, "Another process is at it, and takes up the rest.")
    if report.pending:
        left = f"{report.pending} still pending: each says why, or waits for its turn."
        return Notice("incomplete", "Not all is completed", done, left)
    return Notice("done", "Done", done)
