"""What recall answers: cards as the archive has them now, why each was found, and how complete the answer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer to one search.

    Attributes:
        hits: the cards, best first, then those that came along by links.
        dropped: reason → how many points of the index were found and not believed.
        pending: how many points of the workspace do not yet hold what the archive wants; 0 for a complete answer.
        degraded: whether PostgreSQL answered by words alone, because the index or the embedding model is away.
    """

    hits: tuple[RecallHit, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
    degraded: bool = False

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON-ready values."""
        return {
            "hits": [hit.as_json() for hit in self.hits],
            "dropped": dict(self.dropped),
            "pending": self.pending,
            "degraded": self.degraded,
        }
