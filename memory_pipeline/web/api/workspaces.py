"""Where a token's principal may do what."""

from __future__ import annotations

from memory_pipeline.archive.grants import Role
from memory_pipeline.web.api.asking import Curating
from memory_pipeline.web.api.reading import routes

router = routes(tags=["workspaces"])


@router.get("/workspaces")
def list_workspaces(curation: Curating) -> dict[str, Role]:
    """The workspaces in which the token's principal has a role, and which."""
    return dict(curation.workspaces())
