"""What the index does not hold yet, for programs: list and retry."""

from __future__ import annotations

from memory_pipeline.archive.incomplete import Incomplete
from memory_pipeline.propagation import ProjectionReport
from memory_pipeline.web.api.asking import Curating, Workspace
from memory_pipeline.web.api.reading import routes
from memory_pipeline.web.api.shapes import RetryBody

router = routes(prefix="/workspaces/{workspace}", tags=["propagation"])


@router.get("/pending")
def list_pending(curation: Curating, workspace: Workspace) -> list[Incomplete]:
    """The points that do not hold yet what the archive wants, deleted cards included, longest waiting first."""
    return list(curation.pending(workspace))


@router.post("/retry")
def retry(curation: Curating, workspace: Workspace, body: RetryBody) -> ProjectionReport:
    """Complete what is pending now, from the state that the archive has now."""
    return curation.retry(workspace, body.card_id)
