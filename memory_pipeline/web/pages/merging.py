"""Cards that seem to say the same, to be merged or kept apart."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import Response

from memory_pipeline.edits import Merge
from memory_pipeline.errors import VersionConflict
from memory_pipeline.web.pages.notices import notice_of
from memory_pipeline.web.pages.visiting import Here, Place, Sent, version_in

router = APIRouter(prefix="/w/{workspace}")

_PAIRS = 50


@router.get("/duplicates")
def duplicates(here: Here) -> Response:
    """The pairs that are worth merging, the surest first."""
    return here.page("duplicates.html", found=here.curation.duplicates(here.workspace, _PAIRS))


@router.get("/merge")
def confirm_merge(here: Here, keep: str, other: str) -> Response:
    """Say what merging two cards does, and ask."""
    return _confirmation(here, keep, other)


@router.post("/merge")
def merge_cards(here: Here, sent: Sent) -> Response:
    """Make one card of two, if they are still those that were shown."""
    keep, other = str(sent.get("keep", "")), str(sent.get("other", ""))
    edit = Merge(keep, version_in(sent, "keep_version"), other, version_in(sent, "other_version"))
    try:
        outcome = here.curation.save(here.workspace, edit)
    except VersionConflict as conflict:
        return _confirmation(here, keep, other, conflict)
    return here.then("card", notice_of(outcome, f"{other} is merged into {keep}."), card_id=keep)


def _confirmation(here: Place, keep: str, other: str, conflict: VersionConflict | None = None) -> Response:
    cards = [here.curation.detail(here.workspace, card_id) for card_id in (keep, other)]
    status = HTTPStatus.CONFLICT if conflict else HTTPStatus.OK
    return here.page("merge.html", status=status, keep=cards[0], other=cards[1], conflict=conflict)
