"""Sessions: which wait for a review, what each remembers, and the review itself."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from memory_pipeline.candidates import Correction, Retraction, Rollback
from memory_pipeline.errors import InvalidInput, MemoryPipelineError, ReviewOvertaken
from memory_pipeline.web.failures import status_of
from memory_pipeline.web.pages.numbers import whole
from memory_pipeline.web.pages.visiting import Here, Place, Sent, Visiting, Workspace, unsure_place
from memory_pipeline.web.rendering import address
from memory_pipeline.web.services import services

if TYPE_CHECKING:
    from starlette.datastructures import FormData

    from memory_pipeline.reviewing import Reviewing

router = APIRouter(prefix="/w/{workspace}/sessions")

_SEQ = "[0-9]{1,10}"  # the largest of a ledger has as many digits
_CHOICE = re.compile(rf"decide\.({_SEQ})")
_SEQS = re.compile(rf"{_SEQ}(\s*,\s*{_SEQ})*")


@router.get("")
def sessions(here: Here, request: Request) -> Response:
    """The sessions that wait for a review; or the way to one by its id."""
    if asked := request.query_params.get("open", "").strip():
        there = address(request, "session", workspace=here.workspace, session_id=asked)
        return RedirectResponse(there, HTTPStatus.SEE_OTHER)
    return here.page("sessions.html", waiting=_reviewing(here).waiting(here.workspace))


@router.get("/{session_id}")
def session(here: Here, session_id: str) -> Response:
    """What a session remembers, and how much there is to decide still."""
    return here.page("session.html", view=_reviewing(here).view(here.workspace, session_id))


@router.get("/{session_id}/review")
def review(here: Here, session_id: str) -> Response:
    """Every candidate of a session, to be promoted or declined."""
    return here.page("review.html", preview=_reviewing(here).preview(here.workspace, session_id))


@router.post("/{session_id}/review")
def decide(request: Request, visiting: Visiting, workspace: Workspace, session_id: str, sent: Sent) -> Response:
    """Record what was decided. Sent again, it adds nothing: the answer may be reloaded."""
    here = unsure_place(request, visiting, workspace)
    promote, decline = _decided(sent, "promote"), _decided(sent, "decline")
    try:
        here = here.sure()
        outcome = _reviewing(here).record(workspace, session_id, promote=promote, decline=decline, partial=True)
    except MemoryPipelineError as error:
        if status_of(error) is not HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        # Browsers need not keep what was chosen on a page that is not to be stored.
        kept = {name: value for name, value in sent.items() if _CHOICE.fullmatch(name)}
        return here.page("unrecorded.html", status=status_of(error), error=error, session_id=session_id, kept=kept)
    return here.page("reviewed.html", outcome=outcome)


@router.get("/{session_id}/correct")
def foresee(here: Here, session_id: str, retract: str = "", phase: str = "") -> Response:
    """Say what taking decisions away would do, and ask."""
    return _foreseen(here, session_id, retract.strip(), phase)


@router.post("/{session_id}/correct")
def correct(here: Here, session_id: str, sent: Sent) -> Response:
    """Take decisions away. Sent again, it adds nothing: the answer may be reloaded."""
    retract, phase = (str(sent.get(name, "")).strip() for name in ("retract", "phase"))
    reason, after = str(sent.get("reason", "")).strip(), whole("after", sent.get("after"))
    correction = _correction(retract, phase)
    try:
        outcome = _reviewing(here).correct(here.workspace, session_id, correction, reason=reason, after=after)
    except ReviewOvertaken as error:
        return _foreseen(here, session_id, retract, phase, reason=reason, error=error)
    return here.page("reviewed.html", outcome=outcome)


def _foreseen(
    here: Place, session_id: str, retract: str, phase: str, *, reason: str = "", error: ReviewOvertaken | None = None
) -> Response:
    found = _reviewing(here).foresee(here.workspace, session_id, _correction(retract, phase))
    status = HTTPStatus.CONFLICT if error else HTTPStatus.OK
    context = {"found": found, "retract": retract, "phase": phase, "reason": reason, "error": error}
    return here.page("correct.html", status=status, **context)


def _reviewing(here: Place) -> Reviewing:
    return services(here.request).reviewing(here.visit.principal)


def _decided(sent: FormData, choice: str) -> list[int]:
    """The seqs for which something was chosen."""
    return [int(found[1]) for name, value in sent.items() if value == choice and (found := _CHOICE.fullmatch(name))]


def _correction(seqs: str, phase: str) -> Correction:
    """What is to be taken away: the decisions that are named, or those of later phases."""
    if _SEQS.fullmatch(seqs) and not phase:
        return Retraction([int(seq) for seq in seqs.split(",")])
    if re.fullmatch("[0-9]", phase) and not seqs:
        return Rollback(int(phase))
    raise InvalidInput("name the decisions to take away by their numbers, or the phase to go back to")
