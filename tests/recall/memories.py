"""A memory for tests: cards, sources, links and points in short words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import text

from memory_pipeline import Recall, RecallResult
from memory_pipeline.archive import cards, workspaces
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.cards import CardContent, Collection, Dependency, Family
from memory_pipeline.embedding.base import Embedder, Role, Vectors
from memory_pipeline.index.base import Hit, Index, Point, Search, Target
from memory_pipeline.points import payload, point_id, target
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from tests.builders import WORKSPACE, Decision, a_session
from tests.doubles import HashEmbedder

LINK = text(
    "INSERT INTO card_link (workspace, source_id, target_id, meaning) VALUES (:workspace, :source, :target, :meaning)"
)


class AlikeEmbedder(HashEmbedder):
    """Embeds every text alike."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        return super().embed(["the same"], role).repeat(len(texts), axis=0)


class LyingIndex:
    """The real index, whose answers to searches a test may change."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.before = lambda target: None
        self.change = lambda target, hits: hits
        self.searched: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)

    def search(self, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
        self.searched.append(target.collection)
        self.before(target)
        return [self.change(target, hits) for hits in self._index.search(target, searches)]


class Memory:
    """One archive with its index. A hash stands for the model, unless a test asks for the real one."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.index = LyingIndex(runtime.index)
        self.embed_with(HashEmbedder(runtime.identity.dimension))
        runtime.index = self.index
        self.recall = Recall(runtime)

    def embed_with(self, embedder: Embedder) -> None:
        self.embedder = self.runtime.embedder = embedder

    def make(self, workspace: str = WORKSPACE, language: str = "english") -> None:
        workspaces.make(self.runtime.database, workspace, language=language, principal="tester")

    def hold(self, *contents: CardContent, workspace: str = WORKSPACE) -> list[str]:
        """Cards made by hand, one call for each, since a call numbers one family."""
        with self.runtime.database.transaction(workspace) as tx:
            return [cards.create(tx, [c], origin="hand", principal="tester")[0] for c in contents]

    def change(self, card_id: str, content: CardContent, workspace: str = WORKSPACE) -> None:
        with self.runtime.database.transaction(workspace) as tx:
            cards.update(tx, {card_id: content}, principal="tester")

    def remove(self, *card_ids: str, workspace: str = WORKSPACE) -> None:
        with self.runtime.database.transaction(workspace) as tx:
            cards.delete(tx, card_ids)

    def link(self, source: str, target_id: str, meaning: str = "see also", workspace: str = WORKSPACE) -> None:
        with self.runtime.database.transaction(workspace) as tx:
            tx.run(LINK, source=source, target=target_id, meaning=meaning)

    def session(self, *decisions: Decision, **entries: str | None) -> None:
        a_session(self.runtime.settings.sessions, *decisions, **{"language": "english", **entries})

    def ingest(self, workspace: str = WORKSPACE) -> None:
        ingest(self.runtime.database, workspace, self.runtime.settings, self.runtime.identity)

    def project(self, workspace: str = WORKSPACE) -> None:
        project(self.runtime, workspace)

    def search(self, question: str = "active patient", **options: object) -> RecallResult:
        return self.recall.search(options.pop("workspace", WORKSPACE), question, **options)

    def point(self, words: str, item: str, **payload_fields: str) -> Point:
        """A point of `memory_cards` that answers to a text better than any other, for an item that need not exist."""
        vector = self.embedder.embed([words], "query")[0]
        into = self.target(Collection.MEMORY_CARDS)
        made = Point(
            point_id(WORKSPACE, item),
            payload(WORKSPACE, item, 1, "f" * 32, {}),
            dict.fromkeys(into.schema.dense, vector),
        )
        return replace(made, payload={**made.payload, **payload_fields})

    def target(self, collection: Collection, workspace: str = WORKSPACE) -> Target:
        return target(workspace, collection, self.runtime.identity)

    def plant(self, *points: Point) -> None:
        self.runtime.index.upsert(self.target(Collection.MEMORY_CARDS), points)


def a_concept(subject: str = "active patient", detail: str = "flag_attivo = TRUE", **fields: object) -> CardContent:
    return CardContent(Family.CONCEPT, subject=subject, detail=detail, **fields)


def a_solved(
    question: str = "How many active patients are there?", sql: str = "SELECT 1", **fields: object
) -> CardContent:
    return CardContent(Family.SOLVED_QUESTION, question=question, sql=sql, **fields)


def depending(table: str, column: str = "") -> tuple[Dependency, ...]:
    return (Dependency("clinic_dwh", "public", table, column),)


def ids(result: RecallResult) -> list[str]:
    return [hit.card_id for hit in result.hits]
