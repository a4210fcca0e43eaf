"""Finalized sessions with approved SQL become solved questions: one card for each session."""

from __future__ import annotations

import pytest

from memory_pipeline.archive import cards, intake
from memory_pipeline.cards import Dependency, Flag
from memory_pipeline.sql_dependencies import sql_dependencies
from tests.builders import QUESTION, SQL, WORKSPACE, approved, clarified, retracted, rewritten


def given(archive, *decisions, session="session-1", **others):
    return archive.given(*decisions, session=session, **others).solved_questions


def delete(archive, *card_ids: str) -> None:
    with archive.database.transaction(WORKSPACE, writing=True) as tx:
        cards.delete(tx, card_ids)


def content(archive, card_id="sq-0001"):
    with archive.database.transaction(WORKSPACE) as tx:
        return cards.contents(tx, [card_id])[card_id]


def solved(archive) -> list[str]:
    return archive.card_ids("solved_question")


class TestMaking:
    def test_a_finalized_session_with_approved_sql_is_one(self, archive):
        given(archive, clarified(1), approved(2))
        card = content(archive)
        assert (card.question, card.sql, card.dialect) == (QUESTION, SQL, "postgres")
        assert card.context == "active patient: flag_attivo = TRUE"
        assert (card.database, card.schema, card.tables) == ("clinic_dwh", "public", ("patients",))
        assert archive.sources("sq-0001") == [("session-1", 2)]
        assert archive.card("sq-0001")["version"] == 1

    @pytest.mark.parametrize(
        "lacking",
        [{"status": "open"}, {"sql": None}, {"sql": " \n\t"}, {"sql": b"\xff"}],
        ids=["finalized", "sql file", "sql text", "readable sql"],
    )
    def test_a_session_that_lacks_something_is_none(self, archive, lacking):
        given(archive, approved(1), **lacking)
        assert solved(archive) == []
        given(archive, approved(1))
        assert solved(archive) == ["sq-0001"]

    @pytest.mark.parametrize("decisions", [[clarified(1)], [approved(1), retracted(2, 1)]])
    def test_a_session_without_an_effective_approval_is_none(self, archive, decisions):
        given(archive, *decisions)
        assert solved(archive) == []

    def test_its_question_is_the_last_effective_rewriting(self, archive):
        given(
            archive,
            rewritten(1, "first?"),
            rewritten(2, "second?"),
            approved(3),
            rewritten(4, "third?"),
            retracted(5, 4),
        )
        assert content(archive).question == "second?"

    def test_two_sessions_with_an_equal_question_are_two(self, archive):
        given(archive, approved(1), session="one")
        given(archive, approved(1), session="two")
        assert solved(archive) == ["sq-0001", "sq-0002"]

    def test_its_question_is_no_question_of_the_other_collection(self, archive):
        given(archive, approved(1))
        assert archive.questions() == []

    def test_a_repeated_intake_changes_nothing(self, archive):
        given(archive, approved(1))
        before = archive.card("sq-0001")
        assert not archive.ingest().solved_questions
        assert archive.card("sq-0001") == before


class TestChanges:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"sql": "SELECT 2 FROM visits"}, "sql"),
            ({"question": "Another?"}, "question"),
            ({"database": "elsewhere"}, "database"),
            ({"schema": "dwh"}, "schema"),
            ({"dialect": "sqlite"}, "dialect"),
        ],
        ids=str,
    )
    def test_a_change_updates_the_card_and_makes_no_new_one(self, archive, change, field):
        given(archive, approved(1))
        report = given(archive, approved(1), **change)
        assert getattr(content(archive), field) == change[field]
        assert (report.created, report.updated, archive.card("sq-0001")["version"]) == (0, 1, 2)
        assert not archive.ingest().solved_questions

    def test_new_sql_brings_its_own_dependencies(self, archive):
        given(archive, approved(1))
        given(archive, approved(1), sql="SELECT v.id FROM visits v")
        assert content(archive).dependencies == (
            Dependency("clinic_dwh", "public", "visits"),
            Dependency("clinic_dwh", "public", "visits", "id"),
        )

    def test_a_change_of_sql_alone_leaves_the_embedded_question_as_it_was(self, archive):
        given(archive, approved(1), sql="SELECT id FROM patients")
        archive.certify_all()
        given(archive, approved(1), sql="SELECT DISTINCT id FROM patients")
        assert archive.pending() == set()

    def test_a_further_clarification_changes_the_context(self, archive):
        given(archive, clarified(1), approved(2))
        given(archive, clarified(1), approved(2), clarified(3, "b", "c"))
        assert content(archive).context.splitlines() == ["active patient: flag_attivo = TRUE", "b: c"]

    def test_a_later_approval_takes_the_place_of_the_earlier(self, archive):
        given(archive, approved(1))
        report = given(archive, approved(1), approved(2))
        assert archive.sources("sq-0001") == [("session-1", 2)]
        assert not report

    def test_a_session_that_is_open_again_withdraws_nothing_and_changes_nothing(self, archive):
        given(archive, approved(1))
        given(archive, approved(1), status="open", sql="SELECT 'draft'")
        assert content(archive).sql == SQL
        given(archive, approved(1), sql="SELECT 'final'")
        assert content(archive).sql == "SELECT 'final'"

    def test_nothing_is_withdrawn_by_sql_that_is_gone(self, archive):
        given(archive, approved(1))
        given(archive, approved(1), sql=None)
        assert content(archive).sql == SQL


class TestWithdrawal:
    def test_of_the_approval_takes_the_card(self, archive):
        given(archive, approved(1))
        archive.certify_all()
        report = given(archive, approved(1), retracted(2, 1))
        assert solved(archive) == []
        assert (report.deleted, report.sources_withdrawn) == (1, 1)
        assert archive.pending() == {"sq-0001"}

    def test_of_the_last_of_two_approvals_leaves_the_card_to_the_other(self, archive):
        given(archive, approved(1), approved(2))
        given(archive, approved(1), approved(2), retracted(3, 2))
        assert archive.sources("sq-0001") == [("session-1", 1)]

    def test_is_undone_by_a_new_approval_under_a_new_id(self, archive):
        given(archive, approved(1))
        given(archive, approved(1), retracted(2, 1))
        given(archive, approved(1), retracted(2, 1), approved(3))
        assert solved(archive) == ["sq-0002"]

    def test_of_an_edited_card_leaves_it_flagged(self, archive):
        given(archive, approved(1))
        archive.edited("sq-0001", context="by hand")
        given(archive, approved(1), retracted(2, 1))
        assert archive.card("sq-0001")["flags"] == [Flag.SOURCES_WITHDRAWN]


class TestAdministratorsWin:
    def test_an_edited_card_is_not_overwritten_but_flagged_once(self, archive):
        given(archive, approved(1))
        archive.edited("sq-0001", sql="SELECT 'by hand'")
        assert archive.ingest().solved_questions.flagged == 1
        assert not given(archive, approved(1), sql="SELECT 'by the session'")
        assert content(archive).sql == "SELECT 'by hand'"
        assert archive.card("sq-0001")["flags"] == [Flag.LEDGER_DIFFERS]

    def test_the_flag_goes_when_the_session_says_the_same_again(self, archive):
        given(archive, approved(1))
        archive.edited("sq-0001", sql="SELECT 'by hand'")
        archive.ingest()
        given(archive, approved(1), sql="SELECT 'by hand'")
        assert archive.card("sq-0001")["flags"] == []

    def test_a_deleted_card_is_not_made_again_from_its_approval(self, archive):
        given(archive, approved(1))
        delete(archive, "sq-0001")
        given(archive, approved(1), sql="SELECT 'changed'")
        assert solved(archive) == []

    def test_a_deleted_card_is_made_again_from_a_later_approval_until_that_is_retracted(self, archive):
        given(archive, approved(1))
        delete(archive, "sq-0001")
        given(archive, approved(1), approved(2))
        assert solved(archive) == ["sq-0002"]
        given(archive, approved(1), approved(2), retracted(3, 2))
        assert solved(archive) == []
        assert not archive.ingest().solved_questions

    def test_deleted_twice_it_needs_yet_another_approval(self, archive):
        given(archive, approved(1))
        delete(archive, "sq-0001")
        given(archive, approved(1), approved(2))
        delete(archive, "sq-0002")
        assert not archive.ingest().solved_questions
        given(archive, approved(1), approved(2), approved(3))
        assert solved(archive) == ["sq-0003"]


class TestUnparsed:
    def test_sql_that_does_not_parse_is_kept_and_flagged(self, archive):
        given(archive, approved(1), sql="SELECT FROM WHERE (")
        assert content(archive).sql == "SELECT FROM WHERE ("
        assert content(archive).dependencies == ()
        assert archive.card("sq-0001")["flags"] == [Flag.SQL_UNPARSED]

    def test_the_flag_goes_with_the_fault(self, archive):
        given(archive, approved(1), sql="SELECT FROM WHERE (")
        given(archive, approved(1))
        assert archive.card("sq-0001")["flags"] == []

    def test_a_dialect_that_nobody_knows_is_flagged_until_the_manifest_is_mended(self, archive):
        given(archive, approved(1), dialect="klingon")
        assert archive.card("sq-0001")["flags"] == [Flag.SQL_UNPARSED]
        given(archive, approved(1))
        assert archive.card("sq-0001")["flags"] == []
        assert content(archive).tables == ("patients",)

    def test_sql_without_tables_is_parsed_all_the_same(self, archive):
        given(archive, approved(1), sql="SELECT 1")
        assert archive.card("sq-0001")["flags"] == []

    def test_sql_that_is_too_long_to_be_parsed_is_kept_and_flagged(self, archive):
        sql = "SELECT 1 FROM patients WHERE " + " OR ".join(["a = 1"] * 6_000)
        given(archive, approved(1), sql=sql)
        assert content(archive).sql == sql
        assert archive.card("sq-0001")["flags"] == [Flag.SQL_UNPARSED]


class TestBatches:
    def test_are_parsed_while_others_write(self, archive, monkeypatch):
        free = []

        def observed(*args, **kwargs):
            query = "SELECT pg_try_advisory_xact_lock(hashtextextended('writer of ' || :workspace, 0))"
            free.extend(archive.column(query))
            return sql_dependencies(*args, **kwargs)

        monkeypatch.setattr(intake, "sql_dependencies", observed)
        given(archive, approved(1), sql="SELECT parsed FROM while_others_write")
        given(archive, approved(1), sql="SELECT parsed FROM while_others_write_again")
        assert free == [True, True]

    def test_give_what_one_transaction_gives(self, archive, monkeypatch):
        monkeypatch.setattr(intake, "_BATCH", 2)
        for sql in ("SELECT 1", "SELECT 2"):
            for number in range(5):
                archive.session(approved(1), session=f"s{number}", sql=sql)
            archive.ingest()
            assert set(archive.column("SELECT sql FROM card")) == {sql}
        assert len(solved(archive)) == 5
        for number in range(5):
            archive.session(approved(1), retracted(2, 1), session=f"s{number}")
        archive.ingest()
        assert solved(archive) == []
