"""Which literals solved questions name, whatever came before: always what all cards of the workspace together say."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from memory_pipeline.archive import cards, literals, queue
from memory_pipeline.archive import migrate as migrations
from memory_pipeline.archive.migrate import migrate
from memory_pipeline.archive.transfer import export, import_workspace
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change, Create, Delete, Merge
from memory_pipeline.runtime import Runtime
from tests.archives import connected
from tests.builders import approved, clarified, promoted, retracted
from tests.curating import a_card, a_workspace, all_away
from tests.editors import Editor
from tests.masking import fingerprints, named_literals
from tests.statements import counting

SOLVED = Family.SOLVED_QUESTION
_numbers = count(1)
COLUMNS = "card_id, fingerprint, named_literals"


def comparing(*values: str) -> str:
    """SQL that compares a column with values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return f"SELECT * FROM t WHERE c IN ({listed})" if values else "SELECT 1"


def a_solved(question: str, *values: str, **others) -> CardContent:
    return a_card(family=SOLVED, subject="", detail="", question=question, sql=comparing(*values), **others)


def stored(archive) -> dict[str, tuple[str, list[str]]]:
    rows = archive.rows(f"SELECT {COLUMNS} FROM card WHERE family = 'solved_question'")
    return {row["card_id"]: (row["fingerprint"], row["named_literals"]) for row in rows}


def contents(archive) -> dict[str, CardContent]:
    with archive.database.transaction(archive.workspace) as tx:
        return cards.contents(tx, archive.column("SELECT card_id FROM card"))


def due(archive, language: str = "italian") -> dict[str, tuple[str, list[str]]]:
    found = contents(archive)
    named, due_to = named_literals(found, language), fingerprints(found, language)
    return {card_id: (due_to[card_id], named[card_id]) for card_id in named}


@pytest.fixture
def editor(runtime: Runtime) -> Editor:
    return Editor(runtime)


def solve(editor: Editor, question: str, *values: str, **others) -> str:
    return editor.create(family=SOLVED, question=question, sql=comparing(*values), **others)


def named(editor: Editor, card_id: str) -> list[str]:
    return editor.card(card_id)["named_literals"]


def test_a_literal_that_comes_is_masked_in_every_question_that_names_it(editor):
    asked = solve(editor, "Quanti a roma?")
    other = solve(editor, "Quanti in tutto?")
    editor.certify_all()
    before = editor.card(asked)
    new = solve(editor, "Dove?", "Roma")
    assert named(editor, asked) == ["roma"]
    assert editor.pending() == {asked, new}
    after = editor.card(asked)
    assert after["fingerprint"] != before["fingerprint"]
    for column in ("version", "updated_by", "updated_at", "edited"):
        assert after[column] == before[column]
    assert stored(editor) == due(editor)
    assert named(editor, other) == []


def test_the_last_card_with_a_literal_takes_it_along_and_no_other_does(editor):
    asked = solve(editor, "Quanti a roma?")
    first, last = solve(editor, "Dove?", "roma"), solve(editor, "Dove altro?", "ROMA")
    editor.certify_all()
    editor.delete(first)
    assert (named(editor, asked), editor.pending()) == (["roma"], {first})
    editor.certify_all()
    editor.delete(last)
    assert (named(editor, asked), editor.pending()) == ([], {asked, last})
    assert stored(editor) == due(editor)


def test_other_sql_with_another_literal_changes_what_is_masked(editor):
    asked = solve(editor, "Quanti a roma e a pisa?")
    card = solve(editor, "Dove?", "roma")
    editor.certify_all()
    editor.alter(card, sql=comparing("pisa"))
    assert named(editor, asked) == ["pisa"]
    assert editor.pending() == {asked}


def test_an_edit_that_leaves_the_point_as_it_is_makes_nothing_pending(editor):
    card = solve(editor, "Quanti a roma?", "roma")
    solve(editor, "E quanti altri a roma?")
    editor.certify_all()
    assert editor.alter(card, context="in breve", sql=comparing("roma") + " ORDER BY 1").changed
    assert editor.pending() == set()
    assert stored(editor) == due(editor)


@pytest.mark.parametrize("word", ["o", "non", "il", "Di"])
def test_a_word_that_says_nothing_is_no_literal(editor, word):
    solve(editor, "Il primo o non di chi?", word)
    assert editor.column("SELECT literal FROM card_literal") == []


def test_a_literal_of_one_workspace_is_none_of_another(runtime):
    ours, theirs = Editor(runtime, "ours"), Editor(runtime, "theirs")
    asked = solve(theirs, "Quanti a roma?")
    solve(ours, "Quanti a roma?", "roma")
    assert named(theirs, asked) == []
    assert stored(theirs) == due(theirs)


def test_a_nul_that_sql_spells_out_does_not_stop_its_card(editor):
    editor.create(family=SOLVED, question="Quanti?", sql=r"SELECT * FROM t WHERE c = 'a\0b'", dialect="mysql")
    assert editor.column("SELECT literal FROM card_literal") == ["a b"]


def test_ledgers_that_change_or_withdraw_sql_change_what_is_masked(archive):
    archive.given(approved(1), session="asks", question="Quanti a roma e a pisa?")
    card = archive.card_ids("solved_question")[0]
    for sql, found in ((comparing("roma"), ["roma"]), (comparing("pisa"), ["pisa"])):
        archive.given(clarified(1), approved(2), promoted(3, 1), session="says", sql=sql)
        assert archive.card(card)["named_literals"] == found
        assert stored(archive) == due(archive)
    archive.given(clarified(1), approved(2), promoted(3, 1), retracted(4, 2), session="says", sql=comparing("pisa"))
    assert archive.card(card)["named_literals"] == []
    assert archive.card(card)["version"] == 1
    assert stored(archive) == due(archive)


# ── Any sequence ─────────────────────────────────────────────────────────────────────────────────────────────────────

VALUES = st.sampled_from(["roma", "Roma", "roma nord", "nord", "_pisa_", "città", "citta\u0300", "İzmir", "no", "x"])
QUESTIONS = st.lists(VALUES | st.sampled_from(["quanti", "a", "?", "\n", "«", "»"]), min_size=1, max_size=6).map(
    lambda parts: " ".join([*parts, "?"])
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "question", "sql", "context", "delete", "merge"]),
        st.integers(0, 100),
        QUESTIONS,
        st.lists(VALUES, max_size=3),
    ),
    min_size=3,
    max_size=14,
)


def take(editor: Editor, step: str, pick: int, question: str, values: list[str]) -> set[str]:
    """Take a step; the cards that it is about."""
    ids = editor.card_ids("solved_question")
    if step == "create" or not ids:
        return {solve(editor, question, *values)}
    card, other = ids[pick % len(ids)], ids[(pick + 1) % len(ids)]
    if step == "delete":
        editor.delete(card)
    elif step == "merge":
        if card != other:
            editor.merge(card, other)
    else:
        new = {"question": question, "sql": comparing(*values), "context": question}
        editor.alter(card, **{step: new[step]})
    return {card, other}


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_whatever_is_edited_in_whatever_order_every_card_names_what_it_should(runtime, steps):
    editor = Editor(runtime, f"w{next(_numbers)}")
    kept = "SELECT card_id, version, updated_by, updated_at FROM card"
    for step in steps:
        before = {row["card_id"]: row for row in editor.rows(kept)}
        about = take(editor, *step)
        assert stored(editor) == due(editor)
        assert all(row == before[row["card_id"]] for row in editor.rows(kept) if row["card_id"] not in about)
    wanted = (
        "SELECT p.item_id, p.wanted = c.fingerprint AS right FROM projection p JOIN card c ON c.card_id = p.item_id"
    )
    assert all(row["right"] for row in editor.rows(wanted))
    other = Editor(runtime, f"w{next(_numbers)}")
    found = contents(editor)
    for card_id in reversed(found):
        with other.database.transaction(other.workspace, writing=True) as tx:
            cards.insert(tx, {card_id: found[card_id]}, origin="hand", principal="anna")
    assert stored(other) == stored(editor)


def test_writers_at_once_leave_what_all_cards_together_say(runtime):
    editor = Editor(runtime)
    asked = [solve(editor, "Quanti a roma, a pisa e a bari?") for _ in range(3)]

    def write(value: str) -> None:
        for _ in range(5):
            card = solve(editor, f"Dove, se non a {value}?", value)
            editor.alter(card, sql=comparing(value, "bari"))
            editor.delete(card)
        solve(editor, f"Dove, se non a {value}?", value)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(write, ["roma", "pisa", "lodi"]))
    assert [named(editor, card) for card in asked] == [["pisa", "roma"]] * 3
    assert stored(editor) == due(editor)


HOLDS_WRITERS_LOCK = text(
    "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND granted AND "
    "(classid::bigint << 32) | objid::bigint = hashtextextended('writer of ' || :workspace, 0)) AS held"
)


@pytest.fixture
def watched(monkeypatch) -> list[bool]:
    """For each time that literals were looked at in order to write, whether other writers were kept waiting."""
    held, look = [], literals.named

    def looked(tx, *args):
        held.append(tx.row(HOLDS_WRITERS_LOCK)["held"])
        return look(tx, *args)

    monkeypatch.setattr(literals, "named", looked)
    return held


def test_whatever_writes_solved_questions_lets_other_writers_wait(archive, watched):
    runtime = archive.runtime
    clinic = a_workspace(runtime)
    curation = Curation(all_away(runtime), "tester")
    writers = [
        lambda: archive.given(clarified(1), approved(2), promoted(3, 1), sql=comparing("roma")),
        lambda: archive.given(clarified(1), approved(2), promoted(3, 1), sql=comparing("pisa")),
        lambda: curation.save(clinic, Create(a_solved("Dove?", "roma"))),
        lambda: curation.save(clinic, Change("sq-0002", 1, {"sql": comparing("bari")})),
        lambda: curation.save(clinic, Merge("sq-0002", 2, "sq-0001", 2)),
        lambda: curation.save(clinic, Delete("sq-0002", 3)),
        lambda: queued(archive, Create(a_solved("Dove?", "roma"))),
        lambda: copied(archive, "copy"),
    ]
    for write in writers:
        watched.clear()
        write()
        assert watched
        assert all(watched)


def queued(archive, *edits) -> None:
    with archive.database.transaction(archive.workspace) as tx:
        queue.submit(tx, "tester", edits)
    assert queue.apply_waiting(archive.database, archive.workspace, archive.runtime.identity).applied == len(edits)


def copied(archive, name: str):
    """Export a workspace and import it under another name."""
    stream = io.BytesIO()
    export(archive.database, archive.workspace, stream, principal="tester")
    stream.seek(0)
    import_workspace(archive.database, name, stream, archive.runtime.identity, principal="tester")
    return type(archive)(archive.runtime, name)


def test_a_copy_has_the_fingerprints_of_its_original(editor, monkeypatch):
    monkeypatch.setattr("memory_pipeline.archive.transfer._BATCH", 2)  # what comes later concerns what came before
    for n, values in enumerate([(), ("roma",), ("pisa", "roma"), (), ("bari",)]):
        solve(editor, f"Quanti a roma, a bari e a pisa, {n}?", *values)
    assert stored(copied(editor, "copy")) == stored(editor) == due(editor)


# ── Many and large ───────────────────────────────────────────────────────────────────────────────────────────────────


def filled(editor: Editor, number: int) -> None:
    with editor.database.transaction(editor.workspace, writing=True) as tx:
        made = [a_solved(f"Quanti a roma e a citta{n}?", f"citta{n}") for n in range(number)]
        cards.create(tx, made, origin="hand", principal="anna")


def test_an_edit_takes_as_many_statements_whatever_the_number_of_questions_that_it_concerns(runtime):
    taken = {}
    for number in (2, 2_000):
        editor = Editor(runtime, f"w{number}")
        filled(editor, number)
        with counting() as statements:
            editor.alter("sq-0001", sql=comparing("roma"))
        assert editor.column("SELECT count(*) FROM card WHERE named_literals @> ARRAY['roma']") == [number]
        with counting() as again:
            editor.alter("sq-0001", sql=comparing("pisa"))
        taken[number] = (len(statements.archive), len(again.archive))
    assert taken[2] == taken[2_000]
    assert max(taken[2]) < 30


def test_an_edit_that_brings_no_literal_reads_no_other_question(editor):
    filled(editor, 3)
    solve(editor, "Dove?", "roma")
    editor.change("UPDATE card SET question = 'unreadable', named_literals = '{wrong}' WHERE card_id = 'sq-0003'")
    solve(editor, "Dove altro?", "roma")
    assert named(editor, "sq-0003") == ["wrong"]


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        ("Quanti ha Rossi a roma. " * 40_000, comparing("roma")),
        ("Quanti a roma?", comparing(*(f"valore {n}" for n in range(60_000)))),
        ("Quanti a roma?", comparing("roma") + "\n-- " + "x" * 900_000),
        ("«" * 900_000, "SELECT 1 WHERE c = 'roma' AND d = '" + "y " * 400_000),
    ],
)
def test_a_card_of_a_megabyte_is_kept_in_few_statements(editor, question, sql):
    card = solve(editor, "Quanti a roma?")
    with counting() as statements:
        editor.create(family=SOLVED, question=question, sql=sql)
    assert len(statements.archive) < 30
    assert stored(editor) == due(editor)
    editor.delete(card)


# ── Written before ───────────────────────────────────────────────────────────────────────────────────────────────────

BEFORE = """INSERT INTO card (workspace, card_id, family, origin, question, sql, text_key, fingerprint, updated_by)
    VALUES ('clinic', %s, %s, 'session', %s, %s, 'key', 'old', 'anna')"""


@pytest.fixture
def written_before(blank_settings, monkeypatch):
    """Settings of an archive with solved questions of a version that masked no literals."""
    monkeypatch.setattr("memory_pipeline.archive.cards._READ_AT_ONCE", 2)
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "SCHEMA_REVISION", "0004")
        earlier.setattr(cards, "read_unread", lambda _: None)
        migrate(blank_settings.owner_url, blank_settings.database_url)
    with connected(blank_settings.owner_url) as owner:
        owner.execute("INSERT INTO workspace (workspace, language, created_by) VALUES ('clinic', 'italian', 'anna')")
        owner.execute("INSERT INTO embedding_identity VALUES ('clinic', 'identity', '{}')")
        owner.execute(BEFORE, ["mem-0001", "concept", "", ""])
        for n, values in enumerate([(), ("roma",), ("pisa",), (), ("no",)], 1):
            owner.execute(
                BEFORE, [f"sq-{n:04d}", "solved_question", f"Quanti a Roma e a pisa, {n}?", comparing(*values)]
            )
        owner.execute(BEFORE, ["sq-0006", "solved_question", "Quanti ne ha Rossi?", "SELECT 1"])
        owner.execute("UPDATE projection SET pending = false, certified = wanted")
    return blank_settings


def test_a_migration_reads_what_was_written_before_once(written_before, monkeypatch):
    migrate(written_before.owner_url, written_before.database_url)
    with Runtime(written_before) as runtime:
        editor = Editor(runtime, "clinic")
        assert stored(editor) == due(editor)
        assert {tuple(named) for _, named in stored(editor).values()} == {("pisa", "roma"), ()}
        assert editor.column("SELECT card_id FROM card WHERE question_words IS NULL") == ["mem-0001"]
        assert set(editor.column("SELECT version FROM card")) == {1}
        assert editor.pending() >= {f"sq-{n:04d}" for n in range(1, 7)}
        picture = editor.picture()
        with monkeypatch.context() as nothing:
            nothing.setattr(literals, "keep", lambda *_: pytest.fail("everything was read before"))
            migrate(written_before.owner_url, written_before.database_url)
        assert editor.picture() == picture
        assert editor.alter("sq-0002", sql="SELECT 2").changed
        assert stored(editor) == due(editor)


def test_a_migration_that_is_cut_off_while_it_reads_leaves_the_archive_as_it_was(written_before, monkeypatch):
    look, looked = literals.named, []

    def cut_off(*args):
        if looked:
            raise KeyboardInterrupt
        looked.append(args)
        return look(*args)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(literals, "named", cut_off)
        with pytest.raises(KeyboardInterrupt):
            migrate(written_before.owner_url, written_before.database_url)
    with connected(written_before.owner_url) as owner:
        assert owner.execute("SELECT version_num FROM alembic_version").fetchall() == [("0004",)]
        assert owner.execute("SELECT DISTINCT fingerprint FROM card").fetchall() == [("old",)]
        assert owner.execute("SELECT to_regclass('card_literal')").fetchone() == (None,)
    migrate(written_before.owner_url, written_before.database_url)
    with Runtime(written_before) as runtime:
        editor = Editor(runtime, "clinic")
        assert stored(editor) == due(editor)


def test_a_migration_waits_for_whoever_writes_before_it_locks_a_table(settings):
    with Runtime(settings) as runtime, ThreadPoolExecutor(1) as thread:
        editor = Editor(runtime)
        with editor.database.transaction(editor.workspace, writing=True) as tx:
            migrating = thread.submit(migrate, settings.owner_url, settings.database_url)
            time.sleep(0.5)
            assert not migrating.done()
            cards.create(tx, [a_solved("Quanti a roma?", "roma")], origin="hand", principal="anna")
        migrating.result(30)
        assert stored(editor) == due(editor)
