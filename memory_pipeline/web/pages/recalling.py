"""Trying recall: a question as a session would ask it, what comes back, why, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import APIRouter
from fastapi.responses import Response

from memory_pipeline.cards import Family
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable, InvalidInput
from memory_pipeline.recall import Drop, Scope
from memory_pipeline.web.failures import status_of
from memory_pipeline.web.pages.numbers import whole
from memory_pipeline.web.pages.signals import SIGNALS
from memory_pipeline.web.pages.visiting import Here, Place, Sent
from memory_pipeline.web.services import services

if TYPE_CHECKING:
    from starlette.datastructures import FormData

    from memory_pipeline.errors import MemoryPipelineError
    from memory_pipeline.recall import RecallResult

router = APIRouter(prefix="/w/{workspace}")

_LEVELS = ("database", "schema", "table", "column")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the form of recall holds."""

    question: str = ""
    limit: str = "10"
    families: tuple[str, ...] = ()
    session_id: str = ""
    database: str = ""
    schema: str = ""
    table: str = ""
    column: str = ""
    links: bool = False
    degraded: bool = False

    @classmethod
    def sent(cls, form: FormData) -> Asked:
        """What somebody sent."""
        names = ("question", "limit", "session_id", *_LEVELS)
        texts = {name: str(form.get(name, getattr(cls(), name))).strip() for name in names}
        families = tuple(str(each) for each in form.getlist("family"))
        return cls(families=families, links="links" in form, degraded="degraded" in form, **texts)

    @property
    def scope(self) -> Scope:
        """The database object that cards have to do with."""
        return Scope(**{level: getattr(self, level) or None for level in _LEVELS})

    @property
    def narrowed(self) -> bool:
        """Whether any of the rarer fields is used."""
        return any((self.session_id, self.families, *(getattr(self, level) for level in _LEVELS)))


@router.get("/recall")
def recall(here: Here) -> Response:
    """The form of a question."""
    return _page(here, Asked(), None)


# A question stands in no address, since addresses are kept: by browsers, proxies and logs.
@router.post("/recall")
def ask(here: Here, sent: Sent) -> Response:
    """The answer to a question."""
    asked = Asked.sent(sent)
    try:
        return _page(here, asked, _found(here, asked))
    except (InvalidInput, IndexUnavailable, IndexIncompatible, EmbedderUnavailable) as error:
        return _page(here, asked, None, error)


def _found(here: Place, asked: Asked) -> RecallResult:
    return (
        services(here.request)
        .recall(here.visit.principal, here.workspace)
        .search(
            here.workspace,
            asked.question,
            limit=whole("limit", asked.limit),
            families=asked.families or None,
            scope=asked.scope,
            session_id=asked.session_id or None,
            expand_links=asked.links,
            degraded=asked.degraded,
            explain=True,
        )
    )


def _page(here: Place, asked: Asked, found: RecallResult | None, error: MemoryPipelineError | None = None) -> Response:
    status = HTTPStatus.OK if error is None else status_of(error)
    away = isinstance(error, IndexUnavailable | EmbedderUnavailable)
    context = {"asked": asked, "found": found, "error": error, "away": away}
    words = {"signals": SIGNALS, "drops": {each: each.meaning for each in Drop}, "all_families": list(Family)}
    return here.page("recall.html", status=status, **context, **words)
