"""Recall for programs: from a question to the current cards that answer it."""

from __future__ import annotations

from fastapi import Request

from memory_pipeline.recall import RecallResult, Scope
from memory_pipeline.web.api.asking import Asking, Workspace
from memory_pipeline.web.api.reading import routes
from memory_pipeline.web.api.shapes import RecallBody
from memory_pipeline.web.services import services

router = routes(prefix="/workspaces/{workspace}", tags=["recall"])


@router.post("/recall")
def recall(request: Request, asking: Asking, workspace: Workspace, body: RecallBody) -> RecallResult:
    """The cards that fit a question best, each verified in the archive; for readers."""
    asked = body.model_dump(exclude={"scope"})
    scope = Scope(**body.scope.model_dump(by_alias=True)) if body.scope else None
    return services(request).recall(asking, workspace).search(workspace, scope=scope, **asked)
