"""Cards to make, change and delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import Response

from memory_pipeline.archive.grants import Role
from memory_pipeline.cards import Family
from memory_pipeline.edits import Delete, Edit
from memory_pipeline.errors import (
    ArchiveUnavailable,
    CardNotFound,
    InvalidEdit,
    InvalidInput,
    MemoryPipelineError,
    NotPermitted,
    SchemaOutOfDate,
    UnknownWorkspace,
    VersionConflict,
)
from memory_pipeline.web.failures import status_of
from memory_pipeline.web.pages.card_form import CardForm
from memory_pipeline.web.pages.conflicts import as_new, brought_together
from memory_pipeline.web.pages.notices import Notice, notice_of
from memory_pipeline.web.pages.numbers import whole
from memory_pipeline.web.pages.visiting import Here, Place, Sent, Visiting, Workspace, place, unsure_place

router = APIRouter(prefix="/w/{workspace}")

_EMPTY_ROWS = 2
_ANOTHER_ROW = "row"
# Whatever else comes between a form and its saving: what was typed is shown again.
_NOT_NOW = (ArchiveUnavailable, SchemaOutOfDate, UnknownWorkspace, NotPermitted)


@dataclass(frozen=True)
class Shown:
    """What a form is shown with, besides what stands in it.

    Attributes:
        card_id: of which card; "" for a new one.
        faults: what is wrong, by field.
        fault: what is wrong with all of it.
        status: of the answer.
    """

    card_id: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""
    status: HTTPStatus = HTTPStatus.OK


@router.get("/new-card")
def new_card(here: Here, family: str = "") -> Response:
    """Choose a family, or fill in the form of one."""
    here.need(Role.ADMINISTRATOR)
    if family not in set(Family):
        return here.page("new_card.html")
    return _form(here, CardForm.blank(Family(family)).with_rows(_EMPTY_ROWS), Shown())


@router.post("/new-card")
def create_card(request: Request, visiting: Visiting, workspace: Workspace, sent: Sent) -> Response:
    """Make the card that the form describes."""
    form = CardForm.sent(sent)
    if sent.get("action") == _ANOTHER_ROW:
        return _form(place(request, visiting, workspace).need(Role.ADMINISTRATOR), form.with_rows(1), Shown())
    return _saved(unsure_place(request, visiting, workspace), form, "", form.creation)


@router.get("/cards/{card_id}/edit")
def edit_card(here: Here, card_id: str, link: str = "") -> Response:
    """The form of a card as it is, if wanted with a further link to begin with."""
    form = CardForm.opened(here.curation.detail(here.workspace, card_id))
    form = form.with_link(link) if link else form
    return _form(here, form.with_rows(_EMPTY_ROWS), Shown(card_id))


@router.post("/cards/{card_id}/edit")
def change_card(request: Request, visiting: Visiting, workspace: Workspace, card_id: str, sent: Sent) -> Response:
    """Change what was changed in the form."""
    form = CardForm.sent(sent)
    if sent.get("action") == _ANOTHER_ROW:
        here = place(request, visiting, workspace).need(Role.ADMINISTRATOR)
        return _form(here, form.with_rows(1), Shown(card_id))
    return _saved(unsure_place(request, visiting, workspace), form, card_id, lambda: form.change(card_id))


@router.get("/cards/{card_id}/delete")
def confirm_deletion(here: Here, card_id: str) -> Response:
    """Say what goes with a card, and ask."""
    return here.page("delete.html", card=here.curation.detail(here.workspace, card_id), conflict=None)


@router.post("/cards/{card_id}/delete")
def delete_card(here: Here, card_id: str, sent: Sent) -> Response:
    """Delete the card, if it is still the one that was shown."""
    try:
        outcome = here.curation.save(here.workspace, Delete(card_id, whole("version", sent.get("version"))))
    except VersionConflict as conflict:
        card = here.curation.detail(here.workspace, card_id)
        return here.page("delete.html", status=HTTPStatus.CONFLICT, card=card, conflict=conflict)
    return here.then("cards", notice_of(outcome, f"{card_id} is deleted."))


def _saved(here: Place, form: CardForm, card_id: str, edit: Callable[[], Edit]) -> Response:
    """Save what a form says, and show what became of it; where it is not saved, the form again, with all of it."""
    try:
        here = here.sure()
        outcome = here.curation.save(here.workspace, edit())
    except InvalidEdit as error:
        faults = form.fault_rows(error.faults)
        return _form(here, form, Shown(card_id, faults=faults, status=HTTPStatus.BAD_REQUEST))
    except InvalidInput as error:
        return _form(here, form, Shown(card_id, fault=str(error), status=HTTPStatus.BAD_REQUEST))
    except VersionConflict as conflict:
        return _conflicting(here, form, card_id, conflict)
    except CardNotFound as error:
        return _missing(here, form, card_id, error)
    except _NOT_NOW as error:
        return _form(here, form, Shown(card_id, fault=str(error), status=status_of(error)))
    said = f"{outcome.card_id} is saved, at version {outcome.version}."
    kept = Notice("done", "Done", f"{outcome.card_id} stays as it was: nothing was changed.")
    return here.then("card", notice_of(outcome, said) if outcome.changed else kept, card_id=outcome.card_id)


def _conflicting(here: Place, form: CardForm, card_id: str, conflict: VersionConflict) -> Response:
    try:
        card = here.curation.detail(here.workspace, card_id)
    except CardNotFound as error:
        return _missing(here, form, card_id, error)
    except _NOT_NOW as error:
        return _form(here, form, Shown(card_id, fault=str(error), status=status_of(error)))
    who = f"{conflict.updated_by} changed this card at {conflict.updated_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    together = brought_together(form, card, who)
    return _form(here, together.with_rows(1), Shown(card_id, status=HTTPStatus.CONFLICT))


def _missing(here: Place, form: CardForm, card_id: str, error: MemoryPipelineError) -> Response:
    """A card to link with is not there; or the card itself is not any more, and what was written may be a new one."""
    if not card_id or _exists(here, card_id):
        return _form(here, form, Shown(card_id, faults={"links": str(error)}, status=HTTPStatus.BAD_REQUEST))
    gone = f"{card_id} was deleted meanwhile. What you wrote is here still: save it as a new card, or cancel."
    return _form(here, as_new(form), Shown(fault=gone, status=HTTPStatus.CONFLICT))


def _exists(here: Place, card_id: str) -> bool:
    try:
        here.curation.detail(here.workspace, card_id)
    except CardNotFound:
        return False
    return True


def _form(here: Place, form: CardForm, shown: Shown) -> Response:
    return here.page("edit.html", status=shown.status, form=form, shown=shown)
