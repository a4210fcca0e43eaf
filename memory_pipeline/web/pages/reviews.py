"""Sessions: which wait for a review, what each remembers, and the review itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from memory_pipeline.candidates import Correction, Retraction, Rollback
from memory_pipeline.errors import InvalidInput
from memory_pipeline.web.pages.visiting import Here, Place, Sent, services
from memory_pipeline.web.rendering import address

if TYPE_CHECKING:
    from starlette.datastructures import FormData

    from memory_pipeline.reviewing import Reviewing

router = APIRouter(prefix="/w/{workspace}/sessions")

_CHOICE = re.compile(r"decide\.([0-9]{1,9})")


@router.get("")
def sessions(here: Here, request: Request, open_: str = "") -> Response:
    """The sessions that wait for a review; or the way to one by its id."""
    if asked := request.query_params.get("open", open_).strip():
        there = address(request, "session", workspace=here.workspace, session_id=asked.replace("/", "_"))
        return RedirectResponse(there, HTTPStatus.SEE_OTHER)
    return here.page("sessions.html", waiting=_reviewing(here).waiting(here.workspace))


@router.get("/{session_id}")
def session(here: Here, session_id: str) -> Response:
    """What a session remembers, and how much there is to decide still."""
    reviewing = _reviewing(here)
    view, preview = reviewing.view(here.workspace, session_id), reviewing.preview(here.workspace, session_id)
    return here.page("session.html", view=view, preview=preview)


@router.get("/{session_id}/review")
def review(here: Here, session_id: str) -> Response:
    """Every candidate of a session, to be promoted or declined."""
    return here.page("review.html", preview=_reviewing(here).preview(here.workspace, session_id))


@router.post("/{session_id}/review")
def decide(here: Here, session_id: str, sent: Sent) -> Response:
    """Record what was decided. Sent again, it adds nothing: the answer may be reloaded."""
    promote, decline = _decided(sent, "promote"), _decided(sent, "decline")
    outcome = _reviewing(here).record(here.workspace, session_id, promote=promote, decline=decline, partial=True)
    return here.page("reviewed.html", outcome=outcome)


@router.get("/{session_id}/correct")
def foresee(here: Here, session_id: str, retract: str = "", phase: str = "") -> Response:
    """Say what taking decisions away would do, and ask."""
    correction = _correction(retract.split(","), phase)
    found = _reviewing(here).foresee(here.workspace, session_id, correction)
    return here.page("correct.html", found=found, retract=retract, phase=phase)


@router.post("/{session_id}/correct")
def correct(here: Here, session_id: str, sent: Sent) -> Response:
    """Take decisions away. Sent again, it adds nothing: the answer may be reloaded."""
    correction = _correction(str(sent.get("retract", "")).split(","), str(sent.get("phase", "")))
    outcome = _reviewing(here).correct(
        here.workspace, session_id, correction, reason=str(sent.get("reason", "")).strip()
    )
    return here.page("reviewed.html", outcome=outcome)


def _reviewing(here: Place) -> Reviewing:
    return services(here.request).reviewing(here.visit.principal)


def _decided(sent: FormData, choice: str) -> list[int]:
    """The seqs for which something was chosen."""
    return [int(found[1]) for name, value in sent.items() if value == choice and (found := _CHOICE.fullmatch(name))]


def _correction(seqs: Iterable[str], phase: str) -> Correction:
    """What is to be taken away: the decisions that are named, or those of later phases."""
    numbers = [int(seq) for seq in map(str.strip, seqs) if seq.isascii() and seq.isdigit() and len(seq) < 10]  # noqa: PLR2004  # digits, far beyond any ledger
    if numbers and not phase:
        return Retraction(numbers)
    if phase.isascii() and phase.isdigit() and len(phase) == 1 and not numbers:
        return Rollback(int(phase))
    raise InvalidInput("name the decisions to take away by their numbers, or the phase to go back to")
