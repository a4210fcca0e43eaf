"""What recall answers: cards as the archive has them now, why each was found, and how complete the answer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from memory_pipeline.cards import Family

_IN_JSON = (
    "card_id",
    "family",
    "subject",
    "detail",
    "rationale",
    "question",
    "sql",
    "context",
    "tables",
    "sessions",
    "score",
    "signals",
)


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """The link by which a card came along.

    Attributes:
        hit: the id of the hit from which links were followed.
        source: the id of the card that the link goes out from.
        target: the id of the card that it points to; either it or the source is the card that came along.
        meaning: what the link says.
    """

    hit: str
    source: str
    target: str
    meaning: str


@dataclass(frozen=True, slots=True)
class RecallHit:
    """One card that was found.

    Attributes:
        card_id: its human id.
        family: what kind of knowledge it is.
        subject: what it is about; like detail and rationale empty for a solved question.
        detail: what it says.
        rationale: why.
        question: of a solved question, like sql and context; otherwise empty.
        sql: the approved SQL.
        context: what that session had clarified.
        tables: the tables that the card depends on, sorted.
        sessions: in how many distinct sessions reviewers confirmed it.
        score: how well it fits beside the other hits, falling from hit to hit: the sum of its signals. Up to 1, of a
            solved question less (see `memory_pipeline.recall.fusion.WEIGHTS`), and above only when the very question is
            known. 0 for a card that came along by a link.
        signals: what each signal that speaks for it contributed to the score: its weight times what it says, from 0 to
            1 (see `memory_pipeline.recall.signals`). One that says nothing for it is left out.
        version: counts the changes of the card's content.
        concepts: the names of the concepts that it belongs to.
        link: the link by which it came along, or None for a card that was found.
    """

    card_id: str
    family: Family
    subject: str
    detail: str
    rationale: str
    question: str
    sql: str
    context: str
    tables: tuple[str, ...]
    sessions: int
    score: float
    signals: Mapping[str, float]
    version: int
    concepts: tuple[str, ...]
    link: FollowedLink | None = None

    def as_json(self) -> dict[str, Any]:
        """The hit as JSON-ready values; with its `link` when it came along by one."""
        values = {name: getattr(self, name) for name in _IN_JSON}
        values |= {"family": self.family.value, "tables": list(self.tables), "signals": dict(self.signals)}
        return values | ({"link": asdict(self.link)} if self.link else {})


class Omission(StrEnum):
    """Why a card that was found is not in the answer."""

    CONFIRMED = "confirmed"
    CITED = "cited"
    REJECTED = "rejected"
    OUTSIDE_SCOPE = "outside_scope"
    BEYOND_LIMIT = "beyond_limit"

    @property
    def meaning(self) -> str:
        """What it says of a card, in words for people."""
        return _MEANINGS[self]


_MEANINGS = {
    Omission.CONFIRMED: "the session has confirmed it",
    Omission.CITED: "a clarification of the session cites it",
    Omission.REJECTED: "the session has rejected it",
    Omission.OUTSIDE_SCOPE: "it is outside the scope that was asked for",
    Omission.BEYOND_LIMIT: "as many as were asked for fit better",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A card that was found and is not in the answer.

    Attributes:
        card_id: its human id.
        family: what kind of knowledge it is.
        title: what it is about, or the question that it solved.
        reason: why it is not there.
        score: of a card beyond the limit, as that of a hit; else None.
    """

    card_id: str
    family: Family
    title: str
    reason: Omission
    score: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The card as JSON-ready values, the reason also in words; with its `score` when it has one."""
        values = {"card_id": self.card_id, "family": self.family.value, "title": self.title}
        values |= {"reason": self.reason.value, "meaning": self.reason.meaning}
        return values | ({} if self.score is None else {"score": self.score})


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer to one search.

    Attributes:
        hits: the cards, best first, then those that came along by links.
        dropped: reason → how many points of the index were found and not believed.
        pending: how many points of the workspace do not yet hold what the archive wants; 0 for a complete answer.
        degraded: whether PostgreSQL answered by words alone, because the index or the embedding model is away.
        explained: whether what is left out was asked for; the two below are empty where it was not.
        left_out: cards that were found and are not among the hits: all that the session has decided about, and the best
            ten each of those outside the scope and of those beyond the limit.
        left_out_counts: reason → how many were found and left out for it, the listed ones among them.
    """

    hits: tuple[RecallHit, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
    degraded: bool = False
    explained: bool = False
    left_out: tuple[LeftOut, ...] = ()
    left_out_counts: Mapping[Omission, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON-ready values, with what is left out where that was asked for."""
        answer = {
            "hits": [hit.as_json() for hit in self.hits],
            "dropped": dict(self.dropped),
            "pending": self.pending,
            "degraded": self.degraded,
        }
        if self.explained:
            left_out = [card.as_json() for card in self.left_out]
            counts = {reason.value: number for reason, number in self.left_out_counts.items()}
            answer |= {"left_out": left_out, "left_out_counts": counts}
        return answer
