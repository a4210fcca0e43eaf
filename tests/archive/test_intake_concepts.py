"""Promoted clarifications become cards: equal ones one card, in whatever order they arrive, and administrators win."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import permutations

import pytest

from memory_pipeline.archive import cards, intake, workspaces
from memory_pipeline.archive.intake import intake_concepts
from memory_pipeline.archive.sessions import synchronize
from memory_pipeline.cards import CardContent, Dependency, Family, Flag
from tests.archives import Archive
from tests.builders import (
    MORNING,
    QUESTION,
    WORKSPACE,
    a_decision,
    clarified,
    declined,
    promoted,
    reopened,
    retracted,
    rewritten,
)
from tests.statements import counting

TEXT = {"subject": "active patient", "detail": "flag_attivo = TRUE"}


def by_hand(archive, family: Family = Family.CONCEPT, **texts: str) -> str:
    """A card that an administrator made; the workspace has to be there."""
    with archive.database.transaction(archive.workspace, writing=True) as tx:
        (card_id,) = cards.create(tx, [CardContent(family, **texts)], origin="hand", principal="administrator")
    return card_id


def delete(archive, *card_ids: str) -> None:
    with archive.database.transaction(archive.workspace, writing=True) as tx:
        cards.delete(tx, card_ids)


def given(archive, *decisions, session="session-1", **others):
    """A session that has nothing but these decisions, taken in."""
    return archive.given(*decisions, session=session, **{"sql": None, **others}).concepts


class TestPromotion:
    def test_a_promoted_clarification_becomes_a_card(self, archive):
        decision = clarified(1, rationale="by law", concepts=("patient",), tables=("dim_paziente",))
        given(archive, decision, promoted(2, 1))
        with archive.database.transaction(WORKSPACE) as tx:
            assert cards.contents(tx, ["mem-0001"])["mem-0001"] == CardContent(
                Family.CONCEPT,
                **TEXT,
                rationale="by law",
                database="clinic_dwh",
                schema="public",
                concepts=("patient",),
                dependencies=(Dependency("clinic_dwh", "public", "dim_paziente"),),
            )
        assert archive.sources("mem-0001") == [("session-1", 1)]
        card = archive.card()
        assert (card["version"], card["origin"], card["edited"], card["flags"]) == (1, "session", False, [])
        assert card["updated_by"] == "tester"

    @pytest.mark.parametrize(
        "decisions",
        [
            [clarified(1)],
            [clarified(1), declined(2, 1)],
            [clarified(1), promoted(2, 1), declined(3, 1)],
            [clarified(1), promoted(2, 1), retracted(3, 2)],
            [clarified(1), promoted(2, 1), retracted(3, 1)],
            [clarified(1, phase=2), promoted(2, 1, phase=2), reopened(3, 1)],
            [clarified(1, "dim_paziente"), promoted(2, 1)],
            [a_decision(1, "table_promoted"), promoted(2, 1)],
            [a_decision(1, "column_promoted"), promoted(2, 1)],
            [promoted(1, 9)],
        ],
        ids=lambda decisions: " ".join(d.type for d in decisions),
    )
    def test_nothing_else_becomes_one(self, archive, decisions):
        given(archive, *decisions)
        assert archive.card_ids() == []
        assert archive.questions() == []

    def test_a_repeated_intake_changes_nothing(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        before = archive.card()
        assert not archive.ingest().concepts
        assert archive.card() == before

    def test_a_name_that_no_database_could_hold_is_left_out_and_stops_nothing(self, archive):
        given(archive, clarified(1, tables=("t" * 9000, "dim_paziente")), promoted(2, 1))
        assert archive.column('SELECT "table" FROM card_dependency') == ["dim_paziente"]
        assert not archive.ingest().concepts


class TestEqualClarifications:
    def test_are_one_card_with_several_sources(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        report = given(
            archive, clarified(1, " Active  PATIENT.", "«flag_attivo = TRUE»"), promoted(2, 1), session="two"
        )
        assert archive.sources("mem-0001") == [("one", 1), ("two", 1)]
        assert archive.card_ids() == ["mem-0001"]
        assert (report.created, report.updated, report.sources_added) == (0, 0, 1)

    def test_within_one_session_are_one_card_too(self, archive):
        given(archive, clarified(1), clarified(2), promoted(3, 1), promoted(4, 2))
        assert archive.sources("mem-0001") == [("session-1", 1), ("session-1", 2)]

    def test_what_only_looks_alike_is_another_card(self, archive):
        given(archive, clarified(1, "limit", ">= 140"), promoted(2, 1), clarified(3, "limit", "< 140"), promoted(4, 3))
        assert len(archive.card_ids()) == 2

    @pytest.mark.parametrize("order", list(permutations(["first", "second", "third"])))
    def test_show_the_text_of_the_earliest_in_whatever_order_they_arrive(self, archive, order):
        texts = {"first": "active patient", "second": "Active patient", "third": "ACTIVE PATIENT"}
        for name in order:
            moment = MORNING + timedelta(days=list(texts).index(name))
            given(archive, clarified(1, texts[name], ts=moment), promoted(2, 1), session=name)
        assert archive.column("SELECT subject FROM card") == ["active patient"]
        assert len(archive.sources("mem-0001")) == 3

    def test_of_one_moment_show_the_smallest_session_and_then_the_smallest_seq(self, archive):
        given(archive, clarified(1, "ACTIVE PATIENT", ts=MORNING), promoted(2, 1), session="b")
        given(
            archive,
            clarified(1, "Active patient", ts=MORNING),
            clarified(2, "aCTIVE patient", ts=MORNING),
            promoted(3, 1),
            promoted(4, 2),
            session="a",
        )
        assert archive.card()["subject"] == "Active patient"

    def test_a_new_source_raises_no_version_and_makes_only_its_question_pending(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        archive.certify_all()
        given(archive, clarified(1), promoted(2, 1), session="two", question="Another question?")
        assert archive.card()["version"] == 1
        (pending,) = archive.pending()
        assert pending.startswith("q-")

    def test_an_earlier_source_with_another_spelling_is_a_change_of_content(self, archive):
        given(archive, clarified(1, "ACTIVE PATIENT"), promoted(2, 1), session="one")
        report = given(archive, clarified(1, ts=MORNING - timedelta(days=1)), promoted(2, 1), session="two")
        assert (archive.card()["subject"], archive.card()["version"], report.updated) == ("active patient", 2, 1)


def content(archive) -> set[tuple[object, ...]]:
    """What the archive holds, but for the cards' human ids, versions and times."""
    return {
        (
            row["family"],
            row["subject"],
            row["detail"],
            row["fingerprint"],
            tuple(row["sources"]),
            tuple(row["questions"]),
        )
        for row in archive.rows("""
            SELECT family, subject, detail, fingerprint,
                ARRAY(SELECT session_id || '/' || seq FROM card_source s WHERE s.card_id = card.card_id ORDER BY 1) AS sources,
                ARRAY(SELECT DISTINCT text FROM question JOIN card_source s USING (workspace, question_id)
                      WHERE s.card_id = card.card_id ORDER BY 1) AS questions
            FROM card""")
    }


LEDGERS = {
    "a": (clarified(1), promoted(2, 1)),
    "b": (clarified(1, "ACTIVE PATIENT", ts=MORNING), promoted(2, 1), clarified(3, "other"), promoted(4, 3)),
    "c": (clarified(1, "Other", ts=MORNING), promoted(2, 1), retracted(3, 2)),
    "d": (clarified(1, "«other»", ts=MORNING), declined(2, 1), promoted(3, 1), rewritten(4, "Rewritten?")),
}


@pytest.mark.parametrize("order", list(permutations(LEDGERS))[::3], ids="".join)
def test_the_same_ledgers_give_the_same_cards_in_whatever_order_and_portions(runtime, order):
    at_once, one_by_one, line_by_line = (Archive(runtime, name) for name in ("at-once", "one-by-one", "line-by-line"))
    for name, decisions in LEDGERS.items():
        at_once.session(*decisions, session=name, sql=None)
    at_once.ingest()
    for name in order:
        given(one_by_one, *LEDGERS[name], session=name)
    for length in range(1, 5):
        for name in order:
            line_by_line.session(*LEDGERS[name][:length], session=name, sql=None)
        line_by_line.ingest()
    assert content(at_once) == content(one_by_one) == content(line_by_line)
    assert len(content(at_once)) == 2


class TestWithdrawal:
    WITHDRAWALS = (
        [clarified(1), promoted(2, 1), retracted(3, 1)],
        [clarified(1), promoted(2, 1), retracted(3, 2)],
        [clarified(1), promoted(2, 1), declined(3, 1)],
        [clarified(1, phase=2), promoted(2, 1, phase=2), reopened(3, 1)],
    )

    @pytest.fixture(params=WITHDRAWALS, ids=lambda decisions: decisions[-1].type + decisions[-1].detail)
    def withdrawing(self, request):
        return request.param

    def test_of_the_last_source_takes_the_card(self, archive, withdrawing):
        given(archive, *withdrawing[:2])
        archive.certify_all()
        report = given(archive, *withdrawing)
        assert archive.card_ids() == []
        assert (report.deleted, report.sources_withdrawn) == (1, 1)
        removed = archive.column("SELECT item_id FROM projection WHERE wanted IS NULL AND pending ORDER BY item_id")
        assert [item[:2] for item in removed] == ["me", "q-"]

    def test_of_one_of_several_sources_leaves_the_card(self, archive, withdrawing):
        given(archive, *withdrawing[:2], session="one")
        given(archive, clarified(1), promoted(2, 1), session="two")
        given(archive, *withdrawing, session="one")
        assert archive.sources("mem-0001") == [("two", 1)]
        assert archive.card()["version"] == 1

    def test_of_the_source_whose_text_is_shown_shows_the_next(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        given(archive, clarified(5, "Active Patient"), promoted(6, 5), session="two")
        given(archive, clarified(1), promoted(2, 1), retracted(3, 1), session="one")
        assert (archive.card()["subject"], archive.card()["version"]) == ("Active Patient", 2)

    def test_of_the_only_source_while_an_equal_one_arrives_keeps_the_card(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        archive.session(clarified(1), promoted(2, 1), retracted(3, 1), session="one", sql=None)
        given(archive, clarified(1), promoted(2, 1), session="two")
        assert archive.sources("mem-0001") == [("two", 1)]

    def test_is_undone_by_a_new_promotion_under_a_new_id(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        given(archive, clarified(1), promoted(2, 1), retracted(3, 2))
        given(archive, clarified(1), promoted(2, 1), retracted(3, 2), promoted(4, 1))
        assert archive.card_ids() == ["mem-0002"]

    def test_of_a_declined_clarification_that_is_promoted_after_all(self, archive):
        given(archive, clarified(1), declined(2, 1))
        given(archive, clarified(1), declined(2, 1), promoted(3, 1))
        assert archive.card_ids() == ["mem-0001"]


class TestAdministratorsWin:
    def test_an_edited_card_is_not_overwritten_but_flagged(self, archive):
        given(archive, clarified(5), promoted(6, 5), session="one")
        archive.edited("mem-0001", detail="as the board decided")
        report = given(archive, clarified(1, "Active patient"), promoted(2, 1), session="two")
        card = archive.card()
        assert (card["detail"], card["version"], card["flags"]) == ("as the board decided", 1, [Flag.LEDGER_DIFFERS])
        assert report.flagged == 1
        assert archive.sources("mem-0001") == [("one", 5), ("two", 1)]

    def test_a_flag_is_raised_once(self, archive):
        given(archive, clarified(5), promoted(6, 5), session="one")
        archive.edited("mem-0001", detail="as the board decided")
        for name in ("two", "three"):
            given(archive, clarified(1), promoted(2, 1), session=name)
        assert archive.card()["flags"] == [Flag.LEDGER_DIFFERS]

    def test_an_edited_card_without_sources_stays_flagged(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        archive.edited("mem-0001", rationale="by law")
        report = given(archive, clarified(1), promoted(2, 1), retracted(3, 1))
        assert archive.card()["flags"] == [Flag.SOURCES_WITHDRAWN]
        assert (report.deleted, report.flagged) == (0, 1)
        assert archive.questions() == []

    def test_an_edited_card_that_lost_its_sources_gets_new_ones_by_its_text(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        archive.edited("mem-0001", rationale="by law")
        given(archive, clarified(1), promoted(2, 1), retracted(3, 2))
        given(archive, clarified(1), promoted(2, 1), retracted(3, 2), promoted(4, 1))
        assert archive.card_ids() == ["mem-0001"]
        assert archive.card()["flags"] == [Flag.LEDGER_DIFFERS]

    def test_a_source_of_equal_text_is_found_even_after_the_card_was_edited(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            cards.update(tx, {"mem-0001": CardContent(Family.CONCEPT, "other", "text")}, principal="administrator")
        archive.change("UPDATE card SET edited = true")
        given(archive, clarified(1), promoted(2, 1), session="two")
        assert archive.card_ids() == ["mem-0001"]
        assert archive.card()["subject"] == "other"

    def test_a_card_made_by_hand_is_joined_by_equal_text(self, archive):
        given(archive, clarified(1, "something else"), promoted(2, 1), session="one")
        card_id = by_hand(archive, subject="Active patient.", detail="flag_attivo = TRUE")
        given(archive, clarified(1), promoted(2, 1), session="two")
        assert archive.sources(card_id) == [("two", 1)]
        card = archive.card(card_id)
        assert (card["subject"], card["origin"], card["flags"]) == ("Active patient.", "hand", [Flag.LEDGER_DIFFERS])

    def test_a_card_with_a_source_of_equal_text_comes_before_one_made_by_hand(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        by_hand(archive, **TEXT)
        given(archive, clarified(1), promoted(2, 1), session="two")
        assert archive.sources("mem-0001") == [("one", 1), ("two", 1)]

    def test_a_card_made_by_hand_stays_when_no_session_ever_confirms_it(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        card_id = by_hand(archive, subject="by hand", detail="only")
        archive.ingest()
        assert archive.card(card_id)["flags"] == []

    def test_an_edit_during_an_intake_is_not_overwritten(self, archive):
        given(archive, clarified(5), promoted(6, 5), session="one")
        archive.session(clarified(1, "ACTIVE patient"), promoted(2, 1), session="two", sql=None)
        synchronize(archive.database, archive.root, WORKSPACE)
        with archive.database.transaction(WORKSPACE, writing=True) as tx:
            intake = threading.Thread(
                target=intake_concepts, args=(archive.database, WORKSPACE), kwargs={"principal": "tester"}
            )
            intake.start()
            cards.update(tx, {"mem-0001": CardContent(Family.CONCEPT, "edited", "text")}, principal="administrator")
            tx.connection.exec_driver_sql("UPDATE card SET edited = true")
            intake.join(0.2)
        intake.join()
        assert (archive.card()["subject"], archive.card()["flags"]) == ("edited", [Flag.LEDGER_DIFFERS])

    def test_an_edit_that_differs_is_flagged_though_no_ledger_changed(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        archive.edited("mem-0001", detail="as the board decided")
        assert archive.ingest().concepts.flagged == 1
        assert (archive.card()["detail"], archive.card()["flags"]) == ("as the board decided", [Flag.LEDGER_DIFFERS])
        assert not archive.ingest().concepts

    def test_the_flag_goes_when_the_edit_comes_to_say_the_same(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        archive.edited("mem-0001", detail="as the board decided")
        archive.ingest()
        archive.edited("mem-0001", detail=TEXT["detail"])
        archive.ingest()
        assert archive.card()["flags"] == []

    def test_edited_cards_are_compared_without_a_question_for_each(self, archive):
        def edited(number: int) -> int:
            for index in range(number):
                given(archive, clarified(1, f"subject {index}"), promoted(2, 1), session=f"s{index}")
            archive.change("UPDATE card SET edited = true")
            return statements(archive)

        assert edited(2) == edited(20)


class TestDeletion:
    @pytest.fixture(autouse=True)
    def _deleted(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        given(archive, clarified(1), promoted(2, 1), promoted(3, 1), session="two")
        archive.certify_all()
        delete(archive, "mem-0001")

    def test_takes_card_and_questions_and_leaves_their_points_to_be_removed(self, archive):
        assert archive.card_ids() == archive.questions() == []
        removed = archive.column("SELECT item_id FROM projection WHERE wanted IS NULL AND pending ORDER BY item_id")
        assert [item[:2] for item in removed] == ["me", "q-"]

    def test_is_not_undone_by_the_decisions_that_made_the_card(self, archive):
        assert not archive.ingest().concepts
        given(archive, clarified(1), promoted(2, 1), rewritten(3, "Another?"), session="one")
        assert archive.card_ids() == archive.questions() == []

    def test_is_undone_by_a_later_promotion_under_a_new_id(self, archive):
        given(archive, clarified(1), promoted(2, 1), promoted(3, 1), session="one")
        assert archive.card_ids() == ["mem-0002"]
        assert archive.sources("mem-0002") == [("one", 1)]
        assert archive.questions() == [QUESTION]

    def test_is_undone_by_an_equal_clarification_of_another_session(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="three")
        assert archive.sources("mem-0002") == [("three", 1)]

    def test_consumes_a_later_promotion_that_stood_behind_the_card_as_well(self, archive):
        given(archive, clarified(1), promoted(2, 1), promoted(3, 1), session="one")
        given(archive, clarified(1), promoted(2, 1), promoted(3, 1), promoted(4, 1), session="one")
        delete(archive, "mem-0002")
        assert not archive.ingest().concepts

    def test_stays_consumed_when_the_ledger_withdraws_the_decision_as_well(self, archive):
        given(archive, clarified(1), promoted(2, 1), retracted(3, 2), session="one")
        assert archive.column("SELECT count(*) FROM card_source WHERE card_id IS NULL") == [2]
        given(archive, clarified(1), promoted(2, 1), retracted(3, 2), promoted(4, 1), session="one")
        assert archive.card_ids() == ["mem-0002"]

    def test_takes_links_and_dependencies_and_leaves_the_neighbours(self, archive):
        given(archive, clarified(1, "a", tables=("t",)), promoted(2, 1), clarified(3, "b"), promoted(4, 3))
        archive.change("INSERT INTO card_link VALUES (:workspace, 'mem-0002', 'mem-0003', 'explains')")
        delete(archive, "mem-0002")
        assert archive.card_ids() == ["mem-0003"]
        assert archive.column("SELECT 1 FROM card_link") == archive.column("SELECT 1 FROM card_dependency") == []

    def test_never_frees_a_number(self, archive):
        given(archive, clarified(1, "a"), promoted(2, 1))
        delete(archive, "mem-0002")
        given(archive, clarified(1, "a"), promoted(2, 1), clarified(3, "b"), promoted(4, 3))
        assert archive.card_ids() == ["mem-0003"]


class TestQuestions:
    def test_are_kept_once_for_all_that_came_from_them(self, archive):
        given(archive, clarified(1), promoted(2, 1), clarified(3, "b"), promoted(4, 3), session="one")
        given(archive, clarified(1, "c"), promoted(2, 1), session="two")
        assert archive.questions() == [QUESTION]

    def test_differ_when_they_are_written_differently_but_not_composed_differently(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one", question="Perche\u0301?")
        given(archive, clarified(1), promoted(2, 1), session="two", question="Perch\u00e9?")
        given(archive, clarified(1), promoted(2, 1), session="three", question="perch\u00e9?")
        assert archive.questions() == ["Perch\u00e9?", "perch\u00e9?"]

    def test_follow_a_session_whose_question_is_rewritten_later(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        archive.certify_all()
        given(archive, clarified(1), promoted(2, 1), rewritten(3, "Rewritten?"))
        assert archive.questions() == ["Rewritten?"]
        assert archive.card()["version"] == 1
        states = archive.rows("SELECT wanted IS NULL AS gone, pending FROM projection WHERE collection = 'questions'")
        assert sorted(tuple(row.values()) for row in states) == [(False, True), (True, True)]

    def test_stay_while_another_session_uses_them(self, archive):
        given(archive, clarified(1), promoted(2, 1), session="one")
        given(archive, clarified(1), promoted(2, 1), session="two")
        given(archive, clarified(1), promoted(2, 1), rewritten(3, "Rewritten?"), session="one")
        assert archive.questions() == [QUESTION, "Rewritten?"]

    def test_that_come_back_are_pending_again(self, archive):
        given(archive, clarified(1), promoted(2, 1))
        archive.certify_all()
        given(archive, clarified(1), promoted(2, 1), rewritten(3, "Rewritten?"))
        given(archive, clarified(1), promoted(2, 1), rewritten(3, "Rewritten?"), retracted(4, 3))
        assert archive.questions() == [QUESTION]
        wanted = archive.column("SELECT pending FROM projection WHERE collection = 'questions' AND wanted IS NOT NULL")
        assert wanted == [True]


def test_cards_follow_a_manifest_that_names_another_database(archive):
    decision = clarified(1, tables=("t",))
    given(archive, decision, promoted(2, 1))
    report = given(archive, decision, promoted(2, 1), database="elsewhere", schema="dwh")
    card = archive.card()
    assert (card["database"], card["schema"], card["version"], report.updated) == ("elsewhere", "dwh", 2, 1)
    assert archive.rows("SELECT database, schema FROM card_dependency") == [{"database": "elsewhere", "schema": "dwh"}]
    assert not archive.ingest().concepts


def test_a_card_confirmed_in_two_databases_shows_the_earlier_one_and_is_left_alone(archive):
    given(archive, clarified(1), promoted(2, 1), session="one")
    given(archive, clarified(5), promoted(6, 5), session="two", database="elsewhere")
    assert (archive.card()["database"], archive.card()["version"]) == ("clinic_dwh", 1)
    assert not archive.ingest().concepts


def test_a_card_confirmed_in_two_databases_is_not_read_again_at_each_intake(archive, monkeypatch):
    given(archive, clarified(1), promoted(2, 1), session="one")
    given(archive, clarified(5), promoted(6, 5), session="two", database="elsewhere")
    read: list[str] = []
    full_rows = cards.full_rows
    monkeypatch.setattr(cards, "full_rows", lambda tx, ids: read.extend(ids) or full_rows(tx, ids))
    archive.ingest()
    assert read == []


class TestBatches:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch):
        monkeypatch.setattr(intake, "_BATCH", 2)

    def test_give_the_cards_that_one_transaction_gives(self, archive, monkeypatch):
        whole = Archive(archive.runtime, "whole")
        for each, size in ((archive, 2), (whole, 250)):
            monkeypatch.setattr(intake, "_BATCH", size)
            for ending in ([], [retracted(5, 1)]):
                for number in range(7):
                    texts = (clarified(1, f"subject {number % 3}"), clarified(2, f"Subject {number % 2}"))
                    each.session(*texts, promoted(3, 1), promoted(4, 2), *ending, session=f"s{number}", sql=None)
                each.ingest()
            assert not each.ingest().concepts
        assert content(archive) == content(whole)
        assert len(content(archive)) == 2

    def test_make_cards_in_the_order_of_their_sources_and_change_none_again(self, archive):
        for number in range(5):
            moment = MORNING + timedelta(days=number)
            archive.session(clarified(1, f"subject {number}", ts=moment), promoted(2, 1), session=f"s{number}")
        archive.ingest()
        made = archive.rows("SELECT subject, version FROM card WHERE family = 'concept' ORDER BY card_id")
        assert [tuple(row.values()) for row in made] == [(f"subject {number}", 1) for number in range(5)]

    def test_are_transactions_between_which_others_write_and_progress_is_told(self, archive):
        for number in range(5):
            archive.session(clarified(1, f"subject {number}"), promoted(2, 1), session=f"s{number}", sql=None)
        workspaces.make(archive.database, WORKSPACE, language="italian", principal="tester")
        synchronize(archive.database, archive.root, WORKSPACE)
        seen = []

        def told(done, total):
            seen.append((done, total, len(archive.card_ids())))

        intake_concepts(archive.database, WORKSPACE, principal="tester", progress=told)
        assert seen == [(2, 5, 2), (4, 5, 4), (5, 5, 5)]


def test_an_intake_asks_no_question_for_each_card(archive):
    """The number of statements does not grow with the number of sessions."""
    few, many = Archive(archive.runtime, "few"), Archive(archive.runtime, "many")
    for each, number in ((few, 2), (many, 40)):
        for index in range(number):
            each.session(clarified(1, f"subject {index}"), promoted(2, 1), session=f"s{index}", question=f"{index}?")
    workspaces.names(archive.database)  # the first transaction also looks at the schema
    assert statements(few) == statements(many)


def statements(archive) -> int:
    with counting() as counted:
        archive.ingest()
    return len(counted.archive)


class TestTakenFromACard:
    """A clarification that cites the card that it was taken from, in its words."""

    @pytest.fixture
    def pitfall(self, archive) -> str:
        workspaces.make(archive.database, WORKSPACE, language="italian", principal="tester")
        return by_hand(archive, Family.PITFALL, **TEXT)

    def test_joins_a_rule_or_pitfall_which_an_equal_one_of_a_sessions_own_does_not(self, archive, pitfall):
        own, taken = (clarified(1), promoted(2, 1)), (clarified(1, rationale=f"from {pitfall}"), promoted(2, 1))
        for order in ((own, taken), (taken, own)):
            for number, decisions in enumerate(order):
                given(archive, *decisions, session=f"{'own' if decisions is own else 'taken'} {id(order)} {number}")
        [concept] = archive.card_ids()
        assert [session.split()[0] for session, _ in archive.sources(pitfall)] == ["taken", "taken"]
        assert [session.split()[0] for session, _ in archive.sources(concept)] == ["own", "own"]

    def test_leads_no_other_clarification_to_its_card_while_another_card_has_a_source_of_the_text(
        self, archive, pitfall
    ):
        given(archive, clarified(1), promoted(2, 1), session="first")
        [concept] = archive.card_ids()
        edited = by_hand(archive, **TEXT)
        archive.change("UPDATE card SET card_id = 'mem-0000' WHERE card_id = :card_id", card_id=edited)
        given(archive, clarified(1, rationale="from mem-0000"), promoted(2, 1), session="taken")
        given(archive, clarified(1), promoted(2, 1), session="last")
        assert [session for session, _ in archive.sources("mem-0000")] == ["taken"]
        assert [session for session, _ in archive.sources(concept)] == ["first", "last"]

    def test_is_no_difference_to_the_card_though_it_gives_another_rationale(self, archive, pitfall):
        given(archive, clarified(1, rationale=f"FROM {pitfall.upper()}."), promoted(2, 1))
        given(archive)
        assert (archive.sources(pitfall), archive.card(pitfall)["flags"]) == ([("session-1", 1)], [])

    def test_is_a_card_of_its_own_once_the_card_says_something_else(self, archive, pitfall):
        archive.change("UPDATE card SET text_key = 'another' WHERE card_id = :card_id", card_id=pitfall)
        given(archive, clarified(1, rationale=f"from {pitfall}"), promoted(2, 1))
        assert archive.sources(pitfall) == []
        assert archive.sources(*archive.card_ids()) == [("session-1", 1)]

    def test_or_cites_a_card_that_is_none_is_like_any_other(self, archive, pitfall):
        given(archive, clarified(1, rationale="from mem-0099, sq-0001 and not-mem-0001"), promoted(2, 1))
        assert (archive.sources(pitfall), len(archive.card_ids())) == ([], 1)

    def test_of_a_concept_shows_its_own_rationale_once_the_first_source_is_gone(self, archive):
        given(archive, clarified(1, rationale="asked the ward"), promoted(2, 1), session="a")
        given(archive, clarified(2, rationale="from mem-0001"), promoted(3, 2), session="b")
        assert archive.card()["rationale"] == "asked the ward"
        given(archive, clarified(1, rationale="asked the ward"), promoted(2, 1), retracted(3, 1), session="a")
        assert archive.card()["rationale"] == "from mem-0001"
