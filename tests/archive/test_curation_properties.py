"""Whatever administrators, ledgers and projections do in whatever order, the archive's rules hold after every step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_pipeline.cards import CardContent, Family
from memory_pipeline.edits import Change, Link, Merge
from memory_pipeline.errors import EmbedderUnavailable, InvalidEdit, VersionConflict
from memory_pipeline.points import question_fingerprint
from memory_pipeline.propagation import audit, project
from memory_pipeline.runtime import Runtime
from tests.builders import SQL as DEFAULT_SQL
from tests.builders import approved, clarified, declined, promoted, retracted, rewritten
from tests.doubles import HashEmbedder
from tests.editors import Editor
from tests.masking import fingerprints, named_literals

SOLVED = Family.SOLVED_QUESTION
LANGUAGE = "italian"
TEXTS = st.sampled_from(["alpha", "Alpha.", "beta", "gamma", "ALPHA", "gàmma"])
SQL = st.sampled_from(
    ["SELECT * FROM a WHERE x = 'alpha'", "SELECT id FROM b WHERE x IN ('beta', 'gàmma')", "SELECT (", "SELECT 1"]
)
PICK = st.integers(0, 1_000)
SESSIONS = st.sampled_from(["one", "two", "three"])
LINES = [
    lambda seq, target, text: clarified(seq, text, "detail"),
    lambda seq, target, text: promoted(seq, target),
    lambda seq, target, text: promoted(seq, target),
    lambda seq, target, text: declined(seq, target),
    lambda seq, target, text: retracted(seq, target),
    lambda seq, target, text: approved(seq),
    lambda seq, target, text: rewritten(seq, f"{text}?"),
]
_numbers = count(1)


@dataclass(frozen=True)
class Seen:
    """A card as it was after the last step."""

    version: int
    content: CardContent


class Curating(RuleBasedStateMachine):
    """One workspace of its own for every sequence."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.editor = Editor(runtime, f"w{next(_numbers)}")
        self.ledgers: dict[str, list] = {}
        self.sql: dict[str, str] = {}  # of sessions
        self.cards: dict[str, Seen] = {}
        self.gone: set[str] = set()
        self.decided: set[str] = set()  # cards that an administrator made or changed

    @initialize(text=TEXTS)
    def begin(self, text):
        self._grow("one", clarified(1, text, "detail"), promoted(2, 1), approved(3))

    @rule(family=st.sampled_from(Family), text=TEXTS, sql=SQL, pick=PICK, linked=st.booleans())
    def create(self, family, text, sql, pick, linked):
        texts = {"question": f"{text}?", "sql": sql} if family is SOLVED else {"subject": text, "detail": "detail"}
        links = [Link(self._card(pick), "near")] if linked and self.cards else []
        card_id = self.editor.create(*links, family=family, **texts)
        assert card_id not in self.cards.keys() | self.gone
        self.decided.add(card_id)

    @precondition(lambda self: self.cards)
    @rule(pick=PICK, text=TEXTS, sql=SQL, stale=st.booleans())
    def change(self, pick, text, sql, stale):
        card_id = self._card(pick)
        seen = self.cards[card_id]
        values = {"question": text, "sql": sql} if seen.content.family is SOLVED else {"subject": text}
        edit = Change(card_id, seen.version - stale, values)
        try:
            saved = self.editor.apply(edit)
        except VersionConflict:
            assert stale
            return
        assert not stale
        differs = any(getattr(seen.content, name) != value for name, value in values.items())
        assert saved.version == seen.version + differs
        self.decided |= {card_id} if differs else set()

    @precondition(lambda self: self.cards)
    @rule(pick=PICK)
    def delete(self, pick):
        self.editor.delete(self._card(pick))

    @precondition(lambda self: len(self.cards) > 1)
    @rule(pick=PICK, other=PICK, outgoing=st.booleans(), meaning=st.sampled_from([None, "near", "far"]))
    def link(self, pick, other, outgoing, meaning):
        card_id, other_id = self._card(pick), self._card(other)
        before = {(link.other, link.outgoing): link.meaning for link in self.editor.links(card_id)}
        try:
            self.editor.alter(card_id, Link(other_id, meaning, outgoing))
        except InvalidEdit:
            assert card_id == other_id
            return
        here = {(link.other, link.outgoing): link.meaning for link in self.editor.links(card_id)}
        assert here.get((other_id, outgoing)) == meaning
        differs = before.get((other_id, outgoing)) != meaning
        for end in (card_id, other_id):
            assert self.editor.version(end) == self.cards[end].version + differs
        self.decided |= {card_id} if differs else set()

    @precondition(lambda self: len(self.cards) > 1)
    @rule(pick=PICK, other=PICK)
    def merge(self, pick, other):
        keep, gone = self._card(pick), self._card(other)
        sources = {*self.editor.sources(keep), *self.editor.sources(gone)}
        try:
            self.editor.apply(Merge(keep, self.cards[keep].version, gone, self.cards[gone].version))
        except InvalidEdit:
            assert keep == gone or self.cards[keep].content.family != self.cards[gone].content.family
            return
        assert {*self.editor.sources(keep)} == sources
        self.decided.add(keep)

    @rule(session=SESSIONS, line=st.sampled_from(LINES), pick=PICK, text=TEXTS)
    def grow(self, session, line, pick, text):
        length = len(self.ledgers.get(session, ()))
        self._grow(session, line(length + 1, 1 + pick % max(length, 1), text))

    @rule(session=SESSIONS, text=TEXTS)
    def promote(self, session, text):
        length = len(self.ledgers.get(session, ()))
        self._grow(session, clarified(length + 1, text, "detail"), promoted(length + 2, length + 1))

    @rule(session=SESSIONS, sql=SQL)
    def solve(self, session, sql):
        self.sql[session] = sql
        self._grow(session, approved(len(self.ledgers.get(session, ())) + 1))

    @rule()
    def ingest_twice(self):
        self._grow("one")
        again = self.editor.ingest()
        assert not again.concepts
        assert not again.solved_questions

    @rule(away=st.booleans())
    def retry(self, away):
        self.editor.runtime.embedder.away = away
        try:
            report = project(self.editor.runtime, self.editor.workspace, retry_now=True)
        except EmbedderUnavailable:
            assert away
            return
        finally:
            self.editor.runtime.embedder.away = False
        assert report.pending == 0
        assert self.editor.pending() == set()
        assert not audit(self.editor.runtime, self.editor.workspace)

    @invariant()
    def the_rules_hold(self):
        self._versions_count_changes_of_content_and_no_id_comes_back()
        self._links_dependencies_and_sources_belong_to_living_cards()
        self._a_card_of_a_session_without_sources_was_edited()
        self._every_question_is_used()
        self._the_index_is_to_hold_what_lives_and_nothing_else()
        self._every_solved_question_names_the_literals_of_all()
        self._lists_count_what_there_is()

    def _versions_count_changes_of_content_and_no_id_comes_back(self):
        now = self._now()
        assert not now.keys() & self.gone
        for card_id in now.keys() & self.cards.keys():
            before, after = self.cards[card_id], now[card_id]
            assert after.version in (before.version, before.version + 1)
            assert after.content == before.content or after.version > before.version
        self.gone |= self.cards.keys() - now.keys()
        self.cards = now

    def _links_dependencies_and_sources_belong_to_living_cards(self):
        links = self.editor.rows("SELECT source_id, target_id FROM card_link")
        assert {end for link in links for end in link.values()} <= self.cards.keys()
        assert all(link["source_id"] != link["target_id"] for link in links)
        assert set(self.editor.column("SELECT DISTINCT card_id FROM card_dependency")) <= self.cards.keys()
        for source in self.editor.rows("SELECT card_id, question_id FROM card_source"):
            assert source["card_id"] in self.cards or source == {"card_id": None, "question_id": None}

    def _a_card_of_a_session_without_sources_was_edited(self):
        query = """SELECT card_id FROM card c WHERE NOT c.edited AND NOT EXISTS (
            SELECT FROM card_source s WHERE s.workspace = c.workspace AND s.card_id = c.card_id)"""
        assert self.editor.column(query) == []

    def _every_question_is_used(self):
        used = "SELECT DISTINCT question_id FROM card_source WHERE question_id IS NOT NULL"
        assert set(self.editor.column("SELECT question_id FROM question")) == set(self.editor.column(used))

    def _the_index_is_to_hold_what_lives_and_nothing_else(self):
        wanted = {
            (row["collection"], row["item_id"]): row["wanted"]
            for row in self.editor.rows("SELECT collection, item_id, wanted FROM projection WHERE wanted IS NOT NULL")
        }
        contents = {card_id: seen.content for card_id, seen in self.cards.items()}
        cards = {
            (contents[card_id].family.collection, card_id): fingerprint
            for card_id, fingerprint in fingerprints(contents, LANGUAGE).items()
        }
        questions = {
            ("questions", row["question_id"]): question_fingerprint(row["text"], LANGUAGE)
            for row in self.editor.rows("SELECT question_id, text FROM question")
        }
        assert wanted == cards | questions

    def _every_solved_question_names_the_literals_of_all(self):
        named = self.editor.rows("SELECT card_id, named_literals FROM card WHERE family = 'solved_question'")
        contents = {card_id: seen.content for card_id, seen in self.cards.items()}
        assert {row["card_id"]: row["named_literals"] for row in named} == named_literals(contents, LANGUAGE)

    def _lists_count_what_there_is(self):
        assert self.editor.list(limit=1).total == len(self.cards)

    def _card(self, pick: int) -> str:
        ids = sorted(self.cards)
        return ids[pick % len(ids)]

    def _grow(self, session: str, *decisions) -> None:
        """Append to a ledger and take it in: what administrators decided stays as it is."""
        self.ledgers.setdefault(session, []).extend(decisions)
        decided = {card_id: seen for card_id, seen in self.cards.items() if card_id in self.decided}
        self.editor.given(*self.ledgers[session], session=session, sql=self.sql.get(session, DEFAULT_SQL))
        now = self._now()
        assert {card_id: now.get(card_id) for card_id in decided} == decided

    def _now(self) -> dict[str, Seen]:
        return {
            card.card_id: Seen(card.version, self.editor.content(card.card_id))
            for card in self.editor.list(limit=1_000).cards
        }


def test_the_archive_s_rules_hold_after_every_step(runtime):
    runtime.embedder = HashEmbedder()
    run_state_machine_as_test(
        lambda: Curating(runtime),
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],  # a step costs too much to look for the shortest sequence that fails
            suppress_health_check=list(HealthCheck),
        ),
    )
