"""Cards to look at: the list with its filters, and one in detail."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from memory_pipeline.archive.listing import Page
from memory_pipeline.errors import InvalidInput
from memory_pipeline.web.pages.filters import SIZES, Filters
from memory_pipeline.web.pages.visiting import Here
from memory_pipeline.web.rendering import address

router = APIRouter(prefix="/w/{workspace}")


@router.get("/cards")
def cards(here: Here, request: Request) -> Response:
    """The cards that all filters fit, one page of them, and how many there are."""
    filters = Filters.of(request.query_params)
    try:
        found = here.curation.list(here.workspace, filters.request())
    except InvalidInput as error:  # and not an empty list: nothing was looked for
        context = {"filters": filters, "sizes": SIZES, "found": None, "fault": str(error), "pages": 0}
        return here.page("cards.html", status=HTTPStatus.BAD_REQUEST, **context)
    pages = _pages(found, int(filters.size))
    if int(filters.page) > pages:  # cards have gone since the address was kept, or somebody typed it
        there = address(request, "cards", workspace=here.workspace)
        return RedirectResponse(f"{there}?{filters.address(page=str(pages))}", HTTPStatus.SEE_OTHER)
    return here.page("cards.html", filters=filters, sizes=SIZES, found=found, fault=None, pages=pages)


@router.get("/cards/{card_id}")
def card(here: Here, card_id: str) -> Response:
    """A card with all that belongs to it."""
    found = here.curation.detail(here.workspace, card_id)
    return here.page("card.html", card=found)


def _pages(found: Page, size: int) -> int:
    return max(1, -(-found.total // size))
