"""What became of a change, said once on the page that follows it. It travels in a cookie that holds for a minute."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from itsdangerous import BadData

from memory_pipeline.web.services import services

if TYPE_CHECKING:
    from fastapi import Request
    from fastapi.responses import Response

    from memory_pipeline.curation import Outcome

Kind = Literal["done", "under way", "incomplete"]
"""All of it is done; somebody is at what is not yet; something keeps it from being done. What is not saved at all is
said on the page that it was sent from, with all that was typed."""

_COOKIE = "memory_notice"
_SECONDS = 60
_LONGEST = 4_000  # characters of a cookie; browsers drop one that has, with its name, more than 4,096
_LENGTHS = (1_000, 500, 250, 100)  # characters of a text, of which as many are kept as fit; a hundred always do


@dataclass(frozen=True, slots=True)
class Notice:
    """What became of a change.

    Attributes:
        kind: which of the outcomes.
        title: the outcome, in a word or two.
        text: what it was, in a sentence.
        reason: why it is not complete; "" where it is.
    """

    kind: Kind
    title: str
    text: str
    reason: str = ""


def notice_of(outcome: Outcome, text: str) -> Notice:
    """What an edit's outcome says, which `text` tells in a sentence."""
    if outcome.recallable:
        return Notice("done", "Done", text)
    if outcome.under_way:
        return Notice("under way", "Saved, under way", text, outcome.reason or "")
    return Notice("incomplete", "Saved, but not recallable yet", text, outcome.reason or "")


def read_notice(request: Request) -> Notice | None:
    """What the last change left to say."""
    try:
        said = services(request).sessions.notices.loads(request.cookies.get(_COOKIE, ""), max_age=_SECONDS)
    except BadData:
        return None
    return Notice(**said)


def with_notice(request: Request, response: Response, notice: Notice | None) -> Response:
    """The answer that has the next page say a notice, or none any more."""
    if notice is None:
        response.delete_cookie(_COOKIE)
        return response
    response.set_cookie(
        _COOKIE,
        _signed(request, notice),
        max_age=_SECONDS,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


def _signed(request: Request, notice: Notice) -> str:
    signer = services(request).sessions.notices
    short = ({**asdict(notice), "text": notice.text[:n], "reason": notice.reason[:n]} for n in _LENGTHS)
    return next(cookie for said in short if len(cookie := str(signer.dumps(said))) <= _LONGEST)
