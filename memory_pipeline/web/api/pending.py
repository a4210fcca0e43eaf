"""What the index does not hold yet, for programs: list and retry."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from memory_pipeline.archive.incomplete import IncompletePage
from memory_pipeline.propagation import ProjectionReport
from memory_pipeline.web.api.asking import Curating, Workspace
from memory_pipeline.web.api.reading import routes
from memory_pipeline.web.api.shapes import PageQuery, RetryBody
from memory_pipeline.web.services import PROJECTOR_WAIT, RETRIED_AT_ONCE

router = routes(prefix="/workspaces/{workspace}", tags=["propagation"])


@router.get("/pending")
def list_pending(curation: Curating, workspace: Workspace, asked: Annotated[PageQuery, Query()]) -> IncompletePage:
    """The points that do not hold yet what the archive wants, deleted cards included, longest waiting first."""
    return curation.pending_page(workspace, limit=asked.limit, offset=asked.offset)


@router.post("/retry")
def retry(curation: Curating, workspace: Workspace, body: RetryBody) -> ProjectionReport:
    """Complete what is pending now, of a card, or of the 200 items that wait longest; `pending` says what is left."""
    return curation.retry(workspace, body.card_id, limit=RETRIED_AT_ONCE, wait=PROJECTOR_WAIT)
