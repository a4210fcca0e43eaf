"""A reviewer's calls, each from the ledger to recall: real PostgreSQL, a real index, a stand-in for the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memory_pipeline.archive.effects import Change
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.waiting import candidates as archived_candidates
from memory_pipeline.candidates import Retraction, Rollback
from memory_pipeline.cards import Family
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change as Edit
from memory_pipeline.edits import Delete
from memory_pipeline.errors import (
    ArchiveUnavailable,
    IndexUnavailable,
    InvalidInput,
    InvalidReview,
    LedgerUnavailable,
    NotPermitted,
    SessionNotFound,
    UnknownWorkspace,
)
from memory_pipeline.ledger import LEDGER_FILE, LOCK_FILE, MANIFEST_FILE, SQL_FILE, LedgerWriter, read_session
from memory_pipeline.recall import Recall
from memory_pipeline.reviewing import Reviewing
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import Archive
from tests.builders import a_ledger, approved, clarified, declined, promoted, rejected, reopened, retracted, rewritten
from tests.curating import CLINIC, Gone, a_creation, a_runtime, a_workspace, all_away, points

SESSION = "session-1"


@pytest.fixture
def opened(settings: Settings) -> Iterator[Runtime]:
    with a_runtime(settings) as runtime:
        yield runtime


@pytest.fixture
def archive(opened: Runtime) -> Archive:
    a_workspace(opened)
    return Archive(opened)


@pytest.fixture
def reviewing(archive: Archive) -> Reviewing:
    """The review of a workspace by its maker."""
    return Reviewing(archive.runtime)


def granted(runtime: Runtime, role: Role) -> Reviewing:
    Curation(runtime).give(CLINIC, f"a {role}", role)
    return Reviewing(runtime, f"a {role}")


def lines(archive: Archive, session: str = SESSION) -> list[tuple[int, str, str]]:
    decisions = read_session(archive.root / CLINIC / session, CLINIC).decisions
    return [(decision.seq, decision.type, decision.detail) for decision in decisions]


def changes(outcome) -> list[tuple[str | None, Change]]:
    cards = outcome.followed.cards if hasattr(outcome, "followed") else outcome.cards
    return [(effect.card_id, effect.change) for effect in cards]


class TestPreview:
    def test_shows_every_candidate_with_all_that_was_written(self, archive, reviewing):
        texts = [clarified(n, f"concept {n}", f"c{n} = 1", rationale=f"because {n}") for n in range(1, 41)]
        archive.session(*texts, rewritten(41, "What was meant?"), status="open")
        found = reviewing.preview(CLINIC, SESSION)
        assert [(c.seq, c.subject, c.detail, c.rationale) for c in found.candidates] == [
            (n, f"concept {n}", f"c{n} = 1", f"because {n}") for n in range(1, 41)
        ]
        assert {c.question for c in found.candidates} == {"What was meant?"}
        assert reviewing.preview(CLINIC, SESSION) == found

    def test_changes_nothing(self, archive, reviewing):
        session = archive.session(clarified(1), status="open")
        before = sorted(path.name for path in session.iterdir())
        reviewing.preview(CLINIC, SESSION)
        assert sorted(path.name for path in session.iterdir()) == before
        assert archive.rows("SELECT FROM decision") == []

    def test_names_the_card_that_a_clarification_would_confirm_and_those_that_are_like_it(self, archive, reviewing):
        archive.given(clarified(1, "Febbre", "codice 1 significa febbre"), promoted(2, 1), session="earlier")
        archive.session(
            clarified(1, "febbre", "codice 1 significa febbre."),
            clarified(2, "(Febbre)", "«codice 1» significa febbre"),
            clarified(3, "Febbre", "codice 1: febbre"),
            clarified(4, "Febbre", "codice 2: febbre"),
        )
        found = reviewing.preview(CLINIC, SESSION).candidates
        assert [(c.joins, c.makes_card) for c in found] == [(("mem-0001",), False), *[((), True)] * 3]
        assert [[(a.card.card_id, a.kind) for a in c.alike] for c in found[1:]] == [
            [("mem-0001", "form")],
            [("mem-0001", "near")],
            [("mem-0001", "subject")],
        ]

    def test_warns_of_a_subject_that_is_a_table_of_the_session(self, archive, reviewing):
        archive.session(
            clarified(1, "Visite", tables=["visite"]), clarified(2, "fact_visite"), clarified(3, "visite x")
        )
        found = reviewing.preview(CLINIC, SESSION)
        assert [len(c.warnings) for c in found.candidates] == [1, 0]
        assert "Visite is a table" in found.candidates[0].warnings[0]
        assert found.refused == {2: "fact_visite"}

    def test_warns_of_what_was_decided_about_the_same(self, archive, reviewing):
        archive.session(clarified(1), clarified(2), promoted(3, 1))
        [candidate] = reviewing.preview(CLINIC, SESSION).candidates
        assert candidate.warnings == ("the same was promoted already, as seq 1",)

    def test_warns_of_a_card_that_says_something_else_than_when_it_was_taken(self, archive, reviewing):
        Curation(archive.runtime).save(CLINIC, a_creation())
        archive.session(clarified(1, rationale="from mem-0001"), clarified(2, "x", rationale="from mem-0009"))
        Curation(archive.runtime).save(CLINIC, Edit("mem-0001", 1, {"detail": "flag_attivo IS TRUE"}))
        first, second = reviewing.preview(CLINIC, SESSION).candidates
        assert (first.joins, first.makes_card) == ((), True)
        assert (
            "mem-0001, which it cites, says something else (active patient: flag_attivo IS TRUE)" in first.warnings[0]
        )
        assert second.warnings == ("mem-0009, which it cites, is gone",)

    def test_shows_what_of_the_session_cannot_be_used(self, archive, reviewing):
        archive.session(ledger=a_ledger(clarified(1), promoted(2, 9)) + b"{broken\n", status="open")
        faults = reviewing.preview(CLINIC, SESSION).faults
        assert [(fault.line, fault.kind) for fault in faults] == [(3, "not_json"), (2, "dangling_reference")]

    def test_leaves_a_line_that_is_being_written_for_later(self, archive, reviewing):
        whole = a_ledger(clarified(1), clarified(2, "other"))
        archive.session(ledger=whole.removesuffix(b"\n"), status="open")
        found = reviewing.preview(CLINIC, SESSION)
        assert ([c.seq for c in found.candidates], found.unfinished_line) == ([1], True)


class TestReview:
    def test_writes_markers_and_makes_cards_that_recall_finds(self, archive, reviewing):
        archive.session(clarified(1), clarified(2, "other", "x = 1"), clarified(3, "third"), status="open")
        outcome = reviewing.record(CLINIC, SESSION, promote=[1], decline=[2])
        assert lines(archive)[3:] == [(4, "memory_promoted", "seq:1"), (5, "memory_promotion_declined", "seq:2")]
        assert [decision.seq for decision in outcome.recorded] == [4, 5]
        assert changes(outcome) == [("mem-0001", Change.CREATED)]
        assert (outcome.followed.saved, outcome.followed.recallable, outcome.followed.reason) == (True, True, None)
        assert outcome.candidates_left == 1
        hits = Recall(archive.runtime).search(CLINIC, "active patient").hits
        assert [hit.card_id for hit in hits] == ["mem-0001"]

    def test_made_again_adds_nothing(self, archive, reviewing):
        session = archive.session(clarified(1), clarified(2, "other"), status="open")
        reviewing.record(CLINIC, SESSION, promote=[1], decline=[2])
        before = (session / LEDGER_FILE).read_bytes()
        outcome = reviewing.record(CLINIC, SESSION, promote=[1], decline=[2])
        assert (session / LEDGER_FILE).read_bytes() == before
        assert (outcome.recorded, outcome.unchanged, changes(outcome)) == ((), ("seq 1", "seq 2"), [])

    def test_of_what_a_card_says_already_is_one_more_source(self, archive, reviewing):
        archive.given(clarified(1), promoted(2, 1), session="earlier")
        archive.session(clarified(1, "Active patient"), status="open")
        outcome = reviewing.record(CLINIC, SESSION, promote=[1])
        assert changes(outcome) == [("mem-0001", Change.JOINED)]
        assert archive.sources("mem-0001") == [("earlier", 1), (SESSION, 1)]

    def test_that_comes_before_what_a_card_shows_says_that_the_card_is_rewritten(self, archive, reviewing):
        archive.given(clarified(5, rationale="later"), promoted(6, 5), session="later")
        archive.session(clarified(1, rationale="earlier"), status="open")
        [effect] = reviewing.record(CLINIC, SESSION, promote=[1]).followed.cards
        assert (effect.change, effect.rewritten) == (Change.JOINED, True)
        assert archive.card()["rationale"] == "earlier"

    def test_refuses_all_of_it_where_something_is_no_candidate(self, archive, reviewing):
        archive.session(clarified(1), approved(2), status="open")
        before = lines(archive)
        with pytest.raises(InvalidReview, match=r"seq 2: it is no clarification .*nothing was recorded") as refused:
            reviewing.record(CLINIC, SESSION, promote=[1, 2])
        assert list(refused.value.faults) == ["seq 2"]
        assert lines(archive) == before

    def test_can_leave_out_what_somebody_else_decided_meanwhile(self, archive, reviewing):
        archive.session(clarified(1), clarified(2, "other"), declined(3, 1), status="open")
        outcome = reviewing.record(CLINIC, SESSION, promote=[1, 2], partial=True)
        assert [d.detail for d in outcome.recorded] == ["seq:2"]
        assert "declined already" in outcome.refused["seq 1"]

    def test_counts_on_from_what_the_archive_knows_of_a_ledger_that_lost_lines(self, archive, reviewing):
        archive.given(clarified(1), clarified(2, "other"), clarified(3, "third"), status="open")
        archive.session(clarified(1), status="open")
        outcome = reviewing.record(CLINIC, SESSION, promote=[2])
        assert [(d.seq, d.detail) for d in outcome.recorded] == [(4, "seq:2")]
        assert changes(outcome) == [("mem-0001", Change.CREATED)]

    def test_goes_behind_a_torn_line_which_counts_if_it_is_whole(self, archive, reviewing):
        torn = a_ledger(clarified(1), clarified(2, "other"), retracted(3, 2)).removesuffix(b"\n")
        archive.session(ledger=torn, status="open")
        with pytest.raises(InvalidReview, match="seq 2: a later decision took it away"):
            reviewing.record(CLINIC, SESSION, promote=[2])
        assert [d.seq for d in reviewing.record(CLINIC, SESSION, promote=[1]).recorded] == [4]

    def test_of_a_subject_as_long_as_a_line_may_be_repeats_only_its_beginning(self, archive, reviewing):
        archive.session(clarified(1, "x" * (1024**2 - 300)), clarified(2, "y"), status="open")
        outcome = reviewing.record(CLINIC, SESSION, promote=[1, 2])
        assert [len(d.subject) for d in outcome.recorded] == [200, 1]

    def test_takes_a_reviewer_or_an_administrator(self, archive):
        archive.session(clarified(1), clarified(2, "other"), status="open")
        for nobody in (Reviewing(archive.runtime, "nobody"), granted(archive.runtime, Role.READER)):
            with pytest.raises(NotPermitted):
                nobody.record(CLINIC, SESSION, promote=[1])
            with pytest.raises(NotPermitted):
                nobody.correct(CLINIC, SESSION, Retraction([1]))
            with pytest.raises(NotPermitted):
                nobody.take(CLINIC, SESSION, ["mem-0001"])
            with pytest.raises(NotPermitted):
                nobody.require_reviewer(CLINIC)
        assert not (archive.root / CLINIC / SESSION / LOCK_FILE).exists()
        for role, seq in ((Role.REVIEWER, 1), (Role.ADMINISTRATOR, 2)):
            assert granted(archive.runtime, role).record(CLINIC, SESSION, promote=[seq]).recorded

    def test_shows_candidates_to_whoever_has_a_grant_alone(self, archive):
        archive.session(clarified(1), status="open")
        assert granted(archive.runtime, Role.READER).preview(CLINIC, SESSION).candidates
        nobody = Reviewing(archive.runtime, "nobody")
        for look in (nobody.preview, nobody.view, nobody.propose):
            with pytest.raises(NotPermitted):
                look(CLINIC, SESSION)
        with pytest.raises(NotPermitted):
            nobody.waiting(CLINIC)


class TestWhateverFailsAfterTheLedger:
    def test_with_index_and_model_away_it_is_saved_and_said_to_be_pending(self, archive):
        archive.session(clarified(1), status="open")
        outcome = Reviewing(all_away(archive.runtime)).record(CLINIC, SESSION, promote=[1])
        assert (outcome.followed.saved, outcome.followed.recallable) == (True, False)
        assert outcome.followed.reason in {"the index is away", "the model is away"}
        assert changes(outcome) == [("mem-0001", Change.CREATED)]

    def test_with_the_archive_lost_after_the_marker_it_is_recorded_and_the_next_ingest_does_the_rest(
        self, archive, reviewing, monkeypatch
    ):
        archive.session(clarified(1), status="open")

        def away(*_, **__):
            raise ArchiveUnavailable("PostgreSQL went away")

        monkeypatch.setattr("memory_pipeline.reviewing.following.intake_concepts", away)
        outcome = reviewing.record(CLINIC, SESSION, promote=[1])
        assert [d.detail for d in outcome.recorded] == ["seq:1"]
        assert (outcome.followed.saved, outcome.followed.reason) == (False, "PostgreSQL went away")
        assert archive.ingest().concepts.created == 1

    def test_with_the_archive_lost_after_the_intake_it_is_said_to_be_saved(self, archive, reviewing, monkeypatch):
        archive.session(clarified(1), status="open")

        def broken(*_, **__):
            raise KeyError("what a card says")

        monkeypatch.setattr("memory_pipeline.reviewing.following.effects", broken)
        outcome = reviewing.record(CLINIC, SESSION, promote=[1])
        assert (outcome.followed.saved, outcome.followed.recallable) == (True, False)
        assert outcome.followed.reason == "an unexpected KeyError"
        assert archive.card_ids() == ["mem-0001"]

    def test_made_again_it_is_completed(self, archive, reviewing, monkeypatch):
        archive.session(clarified(1), status="open")
        index = archive.runtime.index
        archive.runtime.index = Gone(IndexUnavailable("the index is away"))
        reviewing.record(CLINIC, SESSION, promote=[1])
        archive.runtime.index = index
        outcome = reviewing.record(CLINIC, SESSION, promote=[1])
        assert (outcome.recorded, outcome.followed.recallable) == ((), True)
        assert set(points(archive.runtime)) >= {"mem-0001"}

    @pytest.mark.parametrize("lost", [MANIFEST_FILE, LEDGER_FILE])
    def test_with_the_session_itself_gone_it_is_not_said_to_be_saved(self, archive, reviewing, monkeypatch, lost):
        session = archive.session(clarified(1), status="open")
        append = LedgerWriter.append

        def lose(writer, entries, *, after):
            written = append(writer, entries, after=after)
            (session / lost).unlink()
            return written

        monkeypatch.setattr(LedgerWriter, "append", lose)
        outcome = reviewing.record(CLINIC, SESSION, promote=[1])
        assert (len(outcome.recorded), outcome.followed.saved, outcome.followed.recallable) == (1, False, False)
        assert "there is no" in outcome.followed.reason

    def test_with_the_archive_away_before_it_nothing_is_recorded(self, archive, reviewing):
        archive.session(clarified(1), status="open")
        archive.runtime.database = Gone(ArchiveUnavailable("no connection to PostgreSQL"))
        before = lines(archive)
        with pytest.raises(ArchiveUnavailable):
            reviewing.record(CLINIC, SESSION, promote=[1])
        assert lines(archive) == before


class TestCorrecting:
    def test_a_retraction_is_foreseen_and_then_done(self, archive, reviewing):
        archive.session(clarified(1), clarified(2, "other"), status="open")
        reviewing.record(CLINIC, SESSION, promote=[1, 2])
        foreseen = reviewing.foresee(CLINIC, SESSION, Retraction([1]))
        assert [d.seq for d in foreseen.taken_away] == [1]
        assert changes(foreseen) == [("mem-0001", Change.DELETED)]
        assert len(lines(archive)) == 4
        assert archive.card_ids() == ["mem-0001", "mem-0002"]
        done = reviewing.correct(CLINIC, SESSION, Retraction([1]))
        assert changes(done) == changes(foreseen)
        assert archive.card_ids() == ["mem-0002"]
        assert done.followed.recallable
        assert set(points(archive.runtime)) & {"mem-0001", "mem-0002"} == {"mem-0002"}

    def test_a_retracted_promotion_takes_those_of_equal_clarifications_along(self, archive, reviewing):
        archive.session(clarified(1), clarified(2), clarified(3, "other"), status="open")
        reviewing.record(CLINIC, SESSION, promote=[1, 3])
        foreseen = reviewing.foresee(CLINIC, SESSION, Retraction([4]))
        assert [d.detail for d in foreseen.taken_away] == ["seq:1", "seq:2"]
        assert changes(foreseen) == [("mem-0001", Change.DELETED)]
        assert [d.detail for d in reviewing.correct(CLINIC, SESSION, Retraction([4])).recorded] == ["seq:4", "seq:5"]
        assert [c.seqs for c in reviewing.preview(CLINIC, SESSION).candidates] == [(1, 2)]

    def test_a_retracted_clarification_leaves_its_equals_and_says_so(self, archive, reviewing):
        archive.session(clarified(1), clarified(2), clarified(3, "other"), status="open")
        reviewing.record(CLINIC, SESSION, promote=[1])
        foreseen = reviewing.foresee(CLINIC, SESSION, Retraction([1]))
        assert ([d.seq for d in foreseen.taken_away], foreseen.said_still) == ([1], (2,))
        assert changes(foreseen) == [("mem-0001", Change.WITHDRAWN)]

    def test_a_rollback_takes_the_markers_back_and_leaves_candidates(self, archive, reviewing):
        archive.session(clarified(1), approved(2), promoted(3, 1))
        archive.ingest()
        foreseen = reviewing.foresee(CLINIC, SESSION, Rollback(3))
        assert [d.seq for d in foreseen.taken_away] == [2, 3]
        assert foreseen.candidates_left == 1
        assert changes(foreseen) == [("mem-0001", Change.DELETED), ("sq-0001", Change.DELETED)]
        outcome = reviewing.correct(CLINIC, SESSION, Rollback(3), reason="the wrong table")
        assert lines(archive)[-1] == (4, "phase_reopened", "phase:3")
        assert outcome.recorded[0].rationale == "the wrong table (decided by tester)"
        assert changes(outcome) == changes(foreseen)

    def test_what_others_keep_only_loses_a_source(self, archive, reviewing):
        archive.given(clarified(1, rationale="first"), promoted(2, 1), session="earlier")
        archive.given(clarified(1, rationale="second"), promoted(2, 1))
        [effect] = reviewing.foresee(CLINIC, "earlier", Retraction([2])).cards
        assert (effect.card_id, effect.change, effect.sources, effect.rewritten) == (
            *("mem-0001", Change.WITHDRAWN),
            *(1, True),
        )

    def test_what_an_administrator_edited_stays_flagged(self, archive, reviewing):
        archive.given(clarified(1), promoted(2, 1))
        Curation(archive.runtime).save(CLINIC, Edit("mem-0001", 1, {"detail": "another"}))
        [effect] = reviewing.foresee(CLINIC, SESSION, Retraction([2])).cards
        assert (effect.change, effect.flags) == (Change.WITHDRAWN, ("sources_withdrawn",))

    def test_of_what_the_archive_has_not_read_yet_is_foreseen_as_it_happens(self, archive, reviewing):
        archive.session(clarified(1), promoted(2, 1), clarified(3, "other"), promoted(4, 3), status="open")
        foreseen = reviewing.foresee(CLINIC, SESSION, Retraction([3])).cards
        assert [(effect.card_id, effect.title, effect.change) for effect in foreseen] == [
            (None, "active patient", Change.CREATED)
        ]
        assert archive.rows("SELECT FROM card") == []
        assert changes(reviewing.correct(CLINIC, SESSION, Retraction([3]))) == [("mem-0001", Change.CREATED)]

    def test_of_a_last_line_without_its_newline_is_foreseen_as_it_happens(self, archive, reviewing):
        torn = a_ledger(clarified(1), promoted(2, 1)).removesuffix(b"\n")
        archive.session(ledger=torn, status="open")
        foreseen = reviewing.foresee(CLINIC, SESSION, Retraction([2]))
        assert [d.seq for d in foreseen.taken_away] == [2]
        assert [d.detail for d in reviewing.correct(CLINIC, SESSION, Retraction([2])).recorded] == ["seq:2"]

    def test_for_a_reason_that_cannot_be_written_is_refused(self, archive, reviewing):
        archive.session(clarified(1), status="open")
        with pytest.raises(InvalidInput, match="reason"):
            reviewing.correct(CLINIC, SESSION, Retraction([1]), reason="nul \x00")

    def test_of_a_solved_question_is_foreseen_too(self, archive, reviewing):
        archive.given(clarified(1), rewritten(2, "As rewritten?"), approved(3))
        [effect] = reviewing.foresee(CLINIC, SESSION, Retraction([2])).cards
        assert (effect.card_id, effect.change, effect.rewritten) == ("sq-0001", Change.CHANGED, True)

    def test_made_again_adds_nothing(self, archive, reviewing):
        archive.session(clarified(1), retracted(2, 1), status="open")
        outcome = reviewing.correct(CLINIC, SESSION, Retraction([1]))
        assert (outcome.recorded, outcome.unchanged) == ((), ("seq 1",))

    def test_of_what_is_not_there_is_refused(self, archive, reviewing):
        archive.session(clarified(1), status="open")
        for attempt in (reviewing.foresee, reviewing.correct):
            with pytest.raises(InvalidReview, match="seq 7"):
                attempt(CLINIC, SESSION, Retraction([7]))


class TestProposing:
    @pytest.fixture
    def known(self, archive, reviewing):
        """A workspace with three cards and a solved question."""
        archive.session(
            clarified(1),
            clarified(2, "ablation", "code LIKE '37.3%'"),
            clarified(3, "readmission", "within 30 days"),
            approved(4),
            session="earlier",
        )
        reviewing.record(CLINIC, "earlier", promote=[1, 2, 3])
        return archive

    def proposed(self, reviewing) -> list[str]:
        return sorted(hit.card_id for hit in reviewing.propose(CLINIC, SESSION).cards)

    def test_shows_cards_and_solved_questions_for_the_sessions_question(self, known, reviewing):
        known.session(rewritten(1, "ablation of an active patient"), status="open")
        found = reviewing.propose(CLINIC, SESSION)
        assert found.question == "ablation of an active patient"
        assert self.proposed(reviewing) == ["mem-0001", "mem-0002", "mem-0003"]
        assert [hit.card_id for hit in found.solved_questions] == ["sq-0001"]

    def test_leaves_out_what_the_session_has_decided_though_the_archive_has_not_read_it(self, known, reviewing):
        known.session(
            clarified(1, "(Active patient)"),
            clarified(2, "something", rationale="from mem-0002"),
            status="open",
        )
        assert self.proposed(reviewing) == ["mem-0003"]

    def test_fills_up_what_it_leaves_out(self, known, reviewing):
        known.session(clarified(1), status="open")
        assert len(reviewing.propose(CLINIC, SESSION, limit=2).cards) == 2

    def test_offers_again_what_was_taken_and_then_retracted(self, known, reviewing):
        known.session(clarified(1, "x", rationale="from mem-0002"), retracted(2, 1), status="open")
        assert "mem-0002" in self.proposed(reviewing)

    def test_taking_one_is_a_clarification_that_cites_it(self, known, reviewing):
        known.session(rewritten(1), status="open")
        outcome = reviewing.take(CLINIC, SESSION, ["mem-0001"])
        [written] = outcome.recorded
        assert (written.type, written.subject, written.detail, written.rationale, written.phase) == (
            *("concept_clarified", "active patient", "flag_attivo = TRUE"),
            *("from mem-0001", 1),
        )
        assert self.proposed(reviewing) == ["mem-0002", "mem-0003"]
        assert reviewing.take(CLINIC, SESSION, ["mem-0001"]).unchanged == ("mem-0001",)

    def test_one_that_is_promoted_again_gains_a_source(self, known, reviewing):
        known.session(rewritten(1), status="open")
        reviewing.take(CLINIC, SESSION, ["mem-0001"])
        [candidate] = reviewing.preview(CLINIC, SESSION).candidates
        assert candidate.joins == ("mem-0001",)
        assert changes(reviewing.record(CLINIC, SESSION, promote=[2])) == [("mem-0001", Change.JOINED)]
        assert known.sources("mem-0001") == [("earlier", 1), (SESSION, 2)]

    @pytest.mark.parametrize("family", [Family.CONCEPT, Family.SQL_RULE, Family.PITFALL])
    def test_one_made_by_hand_gains_a_source_and_no_flag(self, known, reviewing, family):
        made = Curation(known.runtime).save(
            CLINIC, a_creation(family=family, subject="unit", detail="mg", rationale="by hand", concepts=("dose",))
        )
        known.session(rewritten(1), status="open")
        reviewing.take(CLINIC, SESSION, [made.card_id])
        assert changes(reviewing.record(CLINIC, SESSION, promote=[2])) == [(made.card_id, Change.JOINED)]
        assert known.sources(made.card_id) == [(SESSION, 2)]
        assert known.card(made.card_id)["flags"] == []

    def test_one_that_an_administrator_has_worded_so_gains_the_source_that_equal_words_have_elsewhere(
        self, known, reviewing
    ):
        curation = Curation(known.runtime)
        made = curation.save(CLINIC, a_creation(subject="beta", detail="b = 1"))
        curation.save(CLINIC, Edit(made.card_id, 1, {"subject": "active patient", "detail": "flag_attivo = TRUE"}))
        known.session(rewritten(1), status="open")
        reviewing.take(CLINIC, SESSION, [made.card_id])
        [candidate] = reviewing.preview(CLINIC, SESSION).candidates
        assert (candidate.joins, candidate.warnings) == ((made.card_id,), ())
        assert changes(reviewing.record(CLINIC, SESSION, promote=[2])) == [(made.card_id, Change.JOINED)]

    def test_rejecting_a_solved_question_shows_it_no_more_though_the_archive_has_not_read_it(self, known, reviewing):
        known.session(rejected(1, "sq-0001"), status="open")
        assert reviewing.propose(CLINIC, SESSION).solved_questions == ()

    def test_said_again_without_citing_it_is_shown_to_make_a_card_of_its_own(self, known, reviewing):
        made = Curation(known.runtime).save(CLINIC, a_creation(family=Family.PITFALL, subject="unit", detail="mg"))
        known.session(clarified(1, "unit", "mg", rationale=f"from {made.card_id}"), clarified(2, "Unit", "mg"))
        [candidate] = reviewing.preview(CLINIC, SESSION).candidates
        assert (candidate.seqs, candidate.joins, candidate.makes_card) == ((1, 2), (made.card_id,), True)
        assert "not every time taken from the same card" in candidate.warnings[0]
        assert (
            sorted(changes(reviewing.record(CLINIC, SESSION, promote=[1])))
            == [
                ("mem-0005", Change.CREATED),
                (made.card_id, Change.JOINED),
            ][::-1]
        )

    def test_rejecting_one_shows_it_no_more_and_leaving_it_writes_nothing(self, known, reviewing):
        known.session(rewritten(1), status="open")
        reviewing.propose(CLINIC, SESSION)
        assert len(lines(known)) == 1
        outcome = reviewing.take(CLINIC, SESSION, [], reject=["mem-0003"])
        assert [(d.type, d.detail) for d in outcome.recorded] == [("memory_rejected", "mem-0003")]
        assert self.proposed(reviewing) == ["mem-0001", "mem-0002"]

    def test_does_not_take_what_it_has_rejected_nor_the_other_way_round(self, known, reviewing):
        known.session(rewritten(1), status="open")
        reviewing.take(CLINIC, SESSION, ["mem-0001"], reject=["mem-0002"])
        for take, reject in (["mem-0002"], []), ([], ["mem-0001"]):
            with pytest.raises(InvalidReview, match="retract that decision first"):
                reviewing.take(CLINIC, SESSION, take, reject=reject)
        reviewing.correct(CLINIC, SESSION, Retraction([3]))
        assert reviewing.take(CLINIC, SESSION, ["mem-0002"]).recorded

    @pytest.mark.parametrize(
        ("take", "reject", "why"),
        [
            (["mem-0099"], [], "no such card"),
            (["sq-0001"], [], "advice"),
            (["mem-0001"], ["mem-0001"], "at once"),
            (["x\x00"], [], "no such card"),
        ],
    )
    def test_refuses_what_cannot_be_taken(self, known, reviewing, take, reject, why):
        known.session(rewritten(1), status="open")
        with pytest.raises(InvalidReview, match=why):
            reviewing.take(CLINIC, SESSION, take, reject=reject)
        assert len(lines(known)) == 1

    def test_begins_the_ledger_of_a_session_that_has_none(self, known, reviewing):
        session = known.session(status="open")
        (session / LEDGER_FILE).unlink()
        assert [d.seq for d in reviewing.take(CLINIC, SESSION, ["mem-0001"]).recorded] == [1]


class TestWaiting:
    def test_lists_sessions_by_what_waits_in_them(self, archive, reviewing):
        archive.given(clarified(2, "later"), clarified(3, "more"), session="b", status="open")
        archive.given(clarified(1), promoted(2, 1), session="c")
        archive.given(clarified(1), session="a")
        archive.session(clarified(1), session="d")
        found = reviewing.waiting(CLINIC)
        assert [(s.session_id, s.status, s.candidates) for s in found.sessions] == [
            ("a", "finalized", 1),
            ("b", "open", 2),
        ]
        assert (found.candidates, found.unread) == (3, 1)
        with archive.database.transaction(CLINIC) as tx:
            assert archived_candidates(tx, 10)[0] == 3


class TestSessionView:
    def test_lists_approved_memories_first_and_then_the_declined(self, archive, reviewing):
        archive.session(
            clarified(1, "first", "x"),
            clarified(2, "second", "*y*"),
            clarified(3, "dim_x"),
            declined(4, 1),
            promoted(5, 2),
        )
        found = reviewing.view(CLINIC, SESSION)
        assert [(m.subject, m.outcome) for m in found.memories] == [("second", "promoted"), ("first", "declined")]
        assert found.as_markdown().splitlines()[2:] == [
            *("## Approved", "", "- **second**: \\*y\\*", ""),
            *("## Declined", "", "- **first**: x"),
        ]

    def test_is_made_of_the_ledger_as_it_is_now(self, archive, reviewing):
        archive.session(clarified(1), promoted(2, 1))
        assert len(reviewing.view(CLINIC, SESSION).memories) == 1
        archive.session(clarified(1), promoted(2, 1), reopened(3, 1))
        assert reviewing.view(CLINIC, SESSION).memories == ()


class TestFinalizing:
    def test_makes_the_solved_question_recallable(self, archive, reviewing):
        archive.session(clarified(1), approved(2), status="open")
        outcome = reviewing.finalize(CLINIC, SESSION)
        assert (outcome.changed, outcome.solved_question, outcome.unsolved, outcome.recover) == (
            True,
            "sq-0001",
            None,
            None,
        )
        assert Recall(archive.runtime).search(CLINIC, "How many?", families=["solved_question"]).hits

    def test_is_repeatable(self, archive, reviewing):
        archive.session(approved(1), status="open")
        reviewing.finalize(CLINIC, SESSION)
        manifest = (archive.root / CLINIC / SESSION / MANIFEST_FILE).read_bytes()
        outcome = reviewing.finalize(CLINIC, SESSION)
        assert (outcome.changed, outcome.solved_question) == (False, "sq-0001")
        assert (archive.root / CLINIC / SESSION / MANIFEST_FILE).read_bytes() == manifest

    def test_does_not_fail_with_index_and_model_away(self, archive):
        archive.session(approved(1), status="open")
        outcome = Reviewing(all_away(archive.runtime)).finalize(CLINIC, SESSION)
        assert (outcome.changed, outcome.solved_question, outcome.followed.recallable) == (True, "sq-0001", False)
        assert outcome.recover == "memory-pipeline project --retry --workspace clinic"

    def test_does_not_fail_with_the_archive_away_or_the_workspace_unknown(self, archive):
        session = archive.session(approved(1), status="open")
        archive.runtime.database = Gone(ArchiveUnavailable("no connection to PostgreSQL"))
        outcome = Reviewing(archive.runtime).finalize(CLINIC, SESSION)
        assert read_session(session, CLINIC).manifest.status == "finalized"
        assert (outcome.followed.saved, outcome.followed.reason) == (False, "no connection to PostgreSQL")
        assert outcome.recover.startswith("memory-pipeline ingest --workspace clinic && ")

    @pytest.mark.parametrize("fault", [ArchiveUnavailable("PostgreSQL went away"), KeyError("a fault of ours")])
    def test_does_not_fail_where_the_intake_does(self, archive, reviewing, monkeypatch, fault):
        archive.session(approved(1), status="open")

        def broken(*_, **__):
            raise fault

        monkeypatch.setattr("memory_pipeline.reviewing.following.intake_solved_questions", broken)
        outcome = reviewing.finalize(CLINIC, SESSION)
        assert (outcome.changed, outcome.followed.saved) == (True, False)

    def test_says_why_there_is_no_solved_question(self, archive, reviewing):
        archive.session(clarified(1), status="open")
        assert reviewing.finalize(CLINIC, SESSION).unsolved == "its ledger approves no SQL"
        session = archive.session(approved(1), session="b", status="open")
        (session / SQL_FILE).unlink()
        assert "sql_final.sql is missing" in reviewing.finalize(CLINIC, "b").unsolved
        session = archive.session(approved(1), session="d", status="open")
        (session / LEDGER_FILE).unlink()
        (session / LEDGER_FILE).mkdir()
        outcome = reviewing.finalize(CLINIC, "d")
        nothing = archive.session(session="e", status="open")
        (nothing / LEDGER_FILE).unlink()
        begun = reviewing.finalize(CLINIC, "e")
        assert (begun.followed.saved, begun.recover) == (True, None)
        assert (outcome.unsolved, outcome.followed.saved) == ("review_decisions.jsonl is missing or unreadable", False)
        assert outcome.recover
        archive.given(approved(1), session="c")
        Curation(archive.runtime).save(CLINIC, Delete("sq-0001", 1))
        assert reviewing.finalize(CLINIC, "c").unsolved == "an administrator deleted it"

    def test_takes_no_grant(self, archive):
        archive.session(approved(1), status="open")
        assert Reviewing(archive.runtime, "an assistant").finalize(CLINIC, SESSION).changed


def test_over_settings_it_opens_and_closes_the_services(archive, settings):
    archive.session(clarified(1), status="open")
    with Reviewing.from_settings(settings, "tester") as reviewing:
        assert reviewing.preview(CLINIC, SESSION).candidates


def test_of_two_sessions_whose_names_look_the_same_the_one_that_is_named_is_meant(archive, reviewing):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for name in (composed, decomposed):
        archive.session(clarified(1, name), session=name, status="open")
        assert [d.subject for d in reviewing.record(CLINIC, name, promote=[1]).recorded] == [name]


def test_a_session_whose_name_the_file_system_has_decomposed_is_found(archive, reviewing):
    archive.session(clarified(1), session="cafe\u0301", status="open", id="caf\u00e9")
    assert reviewing.preview(CLINIC, "caf\u00e9").candidates


@pytest.mark.parametrize("name", [" ", "x" * 256, "half \ud800"])
def test_nobody_acts_under_a_name_that_cannot_be_kept(archive, name):
    for kind in (Reviewing, Curation):
        with pytest.raises(InvalidInput, match="principal"):
            kind(archive.runtime, name)


class TestWhatIsNoSession:
    @pytest.mark.parametrize("session", ["unknown", "../ward/session-1", ".", "", "session-1/"])
    def test_is_not_found(self, archive, reviewing, session):
        archive.session()
        for attempt in (reviewing.preview, reviewing.view, reviewing.record, reviewing.finalize, reviewing.propose):
            with pytest.raises(SessionNotFound):
                attempt(CLINIC, session)

    def test_of_an_unknown_workspace_says_so(self, archive, reviewing):
        with pytest.raises(UnknownWorkspace):
            reviewing.preview("nowhere", SESSION)

    def test_with_a_manifest_that_cannot_be_used_says_why(self, archive, reviewing):
        archive.session(status="half done")
        for attempt in (reviewing.preview, reviewing.record, reviewing.finalize):
            with pytest.raises(SessionNotFound, match="status is 'half done'"):
                attempt(CLINIC, SESSION)

    def test_with_a_ledger_that_cannot_be_read_or_is_gone_says_so(self, archive, reviewing):
        session = archive.session(clarified(1), status="open")
        archive.ingest()
        (session / LEDGER_FILE).unlink()
        with pytest.raises(LedgerUnavailable, match="is gone: restore it"):
            reviewing.record(CLINIC, SESSION, promote=[1])
        (session / LEDGER_FILE).mkdir()
        with pytest.raises(LedgerUnavailable, match="is a directory"):
            reviewing.preview(CLINIC, SESSION)
        assert archive.rows("SELECT FROM decision")
