"""The pages for people: rendered on the server, for the keyboard alone, and without scripts for all that matters."""

from fastapi import APIRouter

from memory_pipeline.web.pages import cards, entry, soon

router = APIRouter()
for module in (entry, cards, soon):
    router.include_router(module.router)
