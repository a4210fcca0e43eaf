"""The HTTP interface, `/api/v1`: JSON for programs, with bearer tokens."""

from fastapi import APIRouter

from memory_pipeline.web.api import cards, pending, recall, workspaces
from memory_pipeline.web.api.shapes import FAILURES

router = APIRouter(prefix="/api/v1", responses=FAILURES)
for module in (workspaces, cards, pending, recall):
    router.include_router(module.router)
