"""The pages for people: rendered on the server, for the keyboard alone, and without scripts for all that matters."""

from fastapi import APIRouter

from memory_pipeline.web.pages import cards, editing, entry, merging, pending, soon

router = APIRouter()
for module in (entry, cards, editing, merging, pending, soon):
    router.include_router(module.router)
