"""The pages for people: rendered on the server, for the keyboard alone, and without scripts for all that matters."""

from fastapi import APIRouter

from memory_pipeline.web.pages import cards, editing, entry, merging, overview, pending, recalling, reviews

router = APIRouter()
for module in (entry, overview, cards, editing, merging, pending, reviews, recalling):
    router.include_router(module.router)
