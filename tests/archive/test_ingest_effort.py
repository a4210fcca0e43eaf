"""What an ingest costs, in files and statements, and that what it leaves out makes no difference."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from memory_pipeline.archive import database
from memory_pipeline.archive.queries import load
from memory_pipeline.ledger import LEDGER_FILE, SQL_FILE
from tests.archives import Archive
from tests.builders import a_ledger, aged, approved, clarified, promoted
from tests.statements import counting

CARDS = """
SELECT subject, detail, rationale, question, sql, context, named_literals, (
    SELECT array_agg(session_id || ' ' || seq ORDER BY session_id, seq)
    FROM card_source s WHERE s.workspace = c.workspace AND s.card_id = c.card_id) AS sources
FROM card c ORDER BY family, subject, detail, question, sources
"""
_opened: list[str] | None = None


def _note(name: str, arguments: tuple[object, ...]) -> None:
    if name == "open" and _opened is not None:
        _opened.append(str(arguments[0]))


sys.addaudithook(_note)  # once: a hook stays for as long as the process


@contextmanager
def opened_below(root) -> Iterator[list[str]]:
    """The files below a directory that were opened, once the block has ended."""
    global _opened  # noqa: PLW0603  # a hook takes no more arguments
    _opened, found = [], []
    try:
        yield found
    finally:
        found += [name for name in _opened if name.startswith(f"{root}/")]
        _opened = None


def many(archive: Archive, count: int) -> None:
    for number in range(count):
        own = clarified(1, f"term {number}"), promoted(2, 1), clarified(3), promoted(4, 3), approved(5)
        archive.session(*own, session=f"s{number}", sql=f"SELECT a FROM t{number} WHERE city = 'Roma {number}'")


def statements(work: Callable[[], object]) -> int:
    with counting() as found:
        work()
    return len(found.archive)


class TestFiles:
    def test_are_opened_where_they_changed_alone(self, archive):
        many(archive, 20)
        archive.ingest()
        with opened_below(archive.root) as unchanged:
            archive.ingest()
        archive.session(clarified(1), promoted(2, 1), session="s7")
        with opened_below(archive.root) as changed:
            archive.ingest()
        assert unchanged == []
        assert changed
        assert all(f"/{archive.workspace}/s7/" in name for name in changed)


class TestStatements:
    def test_are_as_many_for_many_sessions_as_for_a_few(self, archive):
        many(archive, 3)
        archive.ingest()
        few = statements(lambda: self._more(archive, range(3, 6)))
        assert statements(lambda: self._more(archive, range(6, 40))) == few

    def _more(self, archive: Archive, numbers: range) -> None:
        for number in numbers:
            own = clarified(1, f"term {number}"), promoted(2, 1), clarified(3), promoted(4, 3), approved(5)
            archive.session(*own, session=f"s{number}", sql=f"SELECT a FROM t WHERE city = 'Roma {number}'")
        archive.ingest()

    def test_take_some_rows_at_a_time_where_they_are_long(self, archive, monkeypatch):
        monkeypatch.setattr(database, "_ARRAY_LENGTH", 2_000)
        many(archive, 10)
        archive.ingest()
        assert len(archive.card_ids()) == 11
        assert archive.column("SELECT count(*) FROM decision") == [50]

    def test_that_compare_whole_tables_are_planned_without_nested_loops_and_no_others(self, archive):
        many(archive, 1)
        archive.ingest()
        with archive.database.transaction(archive.workspace) as tx:
            with tx.comparing():
                query = text(f"EXPLAIN {load('intake')['moved_questions'].text}")
                plan = "\n".join(str(row["QUERY PLAN"]) for row in tx.rows(query, limit=10))
            assert "Nested Loop" not in plan
            assert tx.row(text("SHOW enable_nestloop"))["enable_nestloop"] == "on"


class TestWhatIsLeftOut:
    @pytest.mark.parametrize("seed", range(6))
    def test_changes_nothing_an_ingest_of_everything_at_once_gives_the_same(self, runtime, seed):
        draw = random.Random(seed)  # noqa: S311  # a sample is no secret
        step_by_step, at_once = Archive(runtime), Archive(runtime, "ward")
        for archive in (step_by_step, at_once):
            for name in "abc":
                archive.session(clarified(1, f"of {name}"), promoted(2, 1), approved(3), session=name)
        for seq in range(4, 16, 2):
            self._change(draw.choice("abc"), draw.choice(["append", "sql", "touch"]), seq, step_by_step, at_once)
            if draw.random() < 0.7:
                step_by_step.ingest()
        step_by_step.ingest()
        at_once.ingest()
        assert step_by_step.rows(CARDS) == at_once.rows(CARDS)

    def _change(self, session: str, how: str, seq: int, *archives: Archive) -> None:
        for archive in archives:
            directory = archive.root / archive.workspace / session
            if how == "append":
                with (directory / LEDGER_FILE).open("ab") as file:
                    file.write(a_ledger(clarified(seq, f"term {seq % 8}"), promoted(seq + 1, seq)))
            elif how == "sql":
                (directory / SQL_FILE).write_text(f"SELECT a FROM t WHERE city = 'city {seq:02d}'")
            else:
                aged(directory, seconds=seq)
