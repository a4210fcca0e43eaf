"""What administrators do, as one call each: saved whatever else is away, recallable when the index says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from memory_pipeline import completion as module
from memory_pipeline.archive import editing
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.listing import ListRequest
from memory_pipeline.cards import Dependency, Family
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change, Create, Delete, Link, Merge
from memory_pipeline.errors import (
    ArchiveUnavailable,
    CardNotFound,
    EmbedderUnavailable,
    IndexUnavailable,
    InvalidEdit,
    NotPermitted,
    UnknownWorkspace,
    VersionConflict,
)
from memory_pipeline.propagation import audit
from memory_pipeline.propagation.locks import alone
from memory_pipeline.recall import Recall
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import Archive, connected
from tests.builders import clarified, promoted
from tests.curating import (
    CLINIC,
    WARD,
    Gone,
    a_card,
    a_creation,
    a_runtime,
    a_workspace,
    all_away,
    granted,
    points,
)


@pytest.fixture
def opened(settings: Settings) -> Iterator[Runtime]:
    with a_runtime(settings) as runtime:
        yield runtime


@pytest.fixture
def clinic(opened: Runtime) -> Curation:
    """The curation of an empty workspace by its maker."""
    a_workspace(opened)
    return Curation(opened)


def state(runtime: Runtime, workspace: str = CLINIC) -> list[tuple]:
    """All that the archive says of a workspace's cards, but for their projections."""
    archive = Archive(runtime, workspace)
    tables = ("card", "card_link", "card_dependency", "card_literal", "card_source", "workspace_grant")
    return [
        tuple(row.values())
        for table in tables
        for row in archive.rows(f"SELECT t.* FROM {table} t WHERE workspace = :workspace ORDER BY t")
    ]


def test_a_card_with_links_and_dependencies_is_complete_after_everything_was_closed(settings):
    with a_runtime(settings) as first:
        a_workspace(first)
        curation = Curation(first)
        other = curation.save(CLINIC, a_creation(subject="flag")).card_id
        dependencies = (Dependency("dwh", "public", "patients", "flag_attivo"), Dependency(table="visits"))
        content = a_card(rationale="agreed", concepts=("patient", "activity"), dependencies=dependencies)
        links = (Link(other, "explains"), Link(other, "needs", outgoing=False))
        made = curation.save(CLINIC, Create(content, links))
        assert (made.saved, made.version) == (True, 1)
    with a_runtime(settings) as second:
        found = Curation(second).detail(CLINIC, made.card_id)
    assert found.content == a_card(
        rationale="agreed", concepts=("patient", "activity"), dependencies=tuple(sorted(dependencies))
    )
    assert {(link.other, link.meaning, link.outgoing) for link in found.links} == {
        (other, "explains", True),
        (other, "needs", False),
    }
    assert (found.origin, found.updated_by, found.sources) == ("hand", "tester", ())


@pytest.mark.parametrize("family", Family)
def test_what_is_saved_is_recallable_in_the_same_call(clinic, opened, family):
    texts = {"question": "how many patients?", "sql": "SELECT 1"}
    if family is not Family.SOLVED_QUESTION:
        texts = {"subject": "how many patients?", "detail": "count them"}
    content = a_card(**{"subject": "", "detail": "", "family": family, **texts})
    made = clinic.save(CLINIC, Create(content))
    assert (made.saved, made.recallable, made.reason) == (True, True, None)
    result = Recall(opened).search(CLINIC, "how many patients?")
    assert [hit.card_id for hit in result.hits] == [made.card_id]
    assert result.pending == 0


def test_a_deleted_card_is_gone_from_the_index_in_the_same_call_with_the_questions_that_only_it_had(opened):
    archive = Archive(opened)
    archive.given(clarified(1), promoted(2, 1), sql=None)
    curation = Curation(opened)
    curation.retry(CLINIC)
    assert set(points(opened)) == {"mem-0001", *archive.column("SELECT question_id FROM question")}
    gone = curation.save(CLINIC, Delete("mem-0001", 1))
    assert (gone.card_id, gone.version, gone.saved, gone.recallable) == ("mem-0001", None, True, True)
    assert points(opened) == {}
    assert archive.rows("SELECT * FROM projection") == []


def test_an_edit_is_saved_and_reported_incomplete_while_index_and_model_are_away_and_completed_after_a_restart(
    settings,
):
    with all_away(a_runtime(settings)) as first:
        a_workspace(first)
        curation = Curation(first)
        made = curation.save(CLINIC, a_creation())
        assert (made.card_id, made.version, made.saved, made.recallable) == ("mem-0001", 1, True, False)
        assert "away" in made.reason
        changed = curation.save(CLINIC, Change("mem-0001", 1, {"detail": "flag_attivo IS TRUE"}))
        assert (changed.version, changed.saved, changed.recallable) == (2, True, False)
        assert curation.list(CLINIC, ListRequest()).total == 1
        assert curation.detail(CLINIC, "mem-0001").content.detail == "flag_attivo IS TRUE"
        (waiting,) = curation.pending(CLINIC)
        assert (waiting.item_id, waiting.collection, waiting.removal) == ("mem-0001", "memory_cards", False)
        assert waiting.attempts > 0
        assert "away" in waiting.reason
        with pytest.raises((IndexUnavailable, EmbedderUnavailable)):
            curation.retry(CLINIC)
    with a_runtime(settings) as second:
        curation = Curation(second)
        assert len(curation.pending(CLINIC)) == 1
        assert curation.retry(CLINIC).pending == 0
        assert curation.pending(CLINIC) == []
        assert points(second) == {"mem-0001": 2}


def test_a_deletion_with_the_index_away_stays_pending_until_the_point_is_gone(clinic, opened):
    clinic.save(CLINIC, a_creation())
    opened.index.away = True
    gone = clinic.save(CLINIC, Delete("mem-0001", 1))
    assert (gone.saved, gone.recallable, gone.reason) == (True, False, "the index is away")
    (waiting,) = clinic.pending(CLINIC)
    assert (waiting.item_id, waiting.removal) == ("mem-0001", True)
    assert Recall(opened).search(CLINIC, "active patient").hits == ()
    opened.index.away = False
    assert clinic.retry(CLINIC, "mem-0001").removed == 1
    assert points(opened) == {}
    with pytest.raises(CardNotFound):
        clinic.retry(CLINIC, "mem-0001")


def test_a_late_retry_neither_undoes_a_newer_change_nor_brings_a_deleted_card_back(clinic, opened):
    opened.index.away = True
    for subject in ("changed", "deleted"):
        clinic.save(CLINIC, a_creation(subject=subject))
    opened.index.away = False
    clinic.save(CLINIC, Change("mem-0001", 1, {"detail": "newer"}))
    clinic.save(CLINIC, Delete("mem-0002", 1))
    for _ in range(2):
        clinic.retry(CLINIC)
        assert points(opened) == {"mem-0001": 2}
        assert not audit(opened, CLINIC)
    assert clinic.detail(CLINIC, "mem-0001").content.detail == "newer"


def test_a_retry_that_is_overtaken_leaves_the_newer_change_pending_and_never_claims_it(clinic, opened):
    opened.index.away = True
    clinic.save(CLINIC, a_creation())
    opened.index.away = False
    newer = Change("mem-0001", 1, {"detail": "newer"})
    opened.index.before_upsert = once(lambda: clinic.save(CLINIC, newer, propagate=False))
    assert clinic.retry(CLINIC).pending == 0
    assert points(opened) == {"mem-0001": 2}


def once(do):
    """Do something the first time only."""
    todo = [do]
    return lambda: todo.pop()() if todo else None


def test_an_edit_does_not_wait_for_the_backlog_of_its_workspace(clinic, opened):
    for number in range(30):
        clinic.save(CLINIC, a_creation(subject=f"subject {number}"), propagate=False)
    made = clinic.save(CLINIC, a_creation())
    assert made.recallable
    assert points(opened) == {made.card_id: 1}
    assert len(clinic.pending(CLINIC)) == 30
    clinic.retry(CLINIC, "mem-0007")
    assert points(opened) == {made.card_id: 1, "mem-0007": 1}


def test_solved_questions_whose_shape_an_edit_changes_stay_recallable(clinic, opened):
    solved = {"subject": "", "detail": "", "family": Family.SOLVED_QUESTION}
    other = clinic.save(CLINIC, Create(a_card(question="how many ablations?", sql="SELECT 1", **solved)))
    clinic.save(CLINIC, a_creation(subject="backlog"), propagate=False)
    made = clinic.save(CLINIC, Create(a_card(question="what?", sql="SELECT 1 WHERE kind = 'ablations'", **solved)))
    result = Recall(opened).search(CLINIC, "how many biopsies?", families=[Family.SOLVED_QUESTION])
    assert ({hit.card_id for hit in result.hits}, result.dropped) == ({other.card_id, made.card_id}, {})
    assert [left.item_id for left in clinic.pending(CLINIC)] == ["mem-0001"]


def test_a_projector_at_work_takes_the_edit_along(clinic, opened, monkeypatch):
    monkeypatch.setattr(module, "_PROJECTOR_WAIT", 0.0)
    with alone(opened, CLINIC, Family.CONCEPT.collection):
        made = clinic.save(CLINIC, a_creation())
    assert (made.saved, made.recallable) == (True, False)
    assert "another process" in made.reason
    assert clinic.retry(CLINIC).pending == 0


def test_an_edit_that_was_not_to_be_propagated_says_so(clinic, opened):
    made = clinic.save(CLINIC, a_creation(), propagate=False)
    assert (made.saved, made.recallable) == (True, False)
    assert "next projection" in made.reason
    assert opened.index.upserted == 0


def test_an_edit_that_changes_no_point_is_recallable_at_once_with_the_index_away(clinic, opened):
    clinic.save(CLINIC, a_creation())
    clinic.save(CLINIC, a_creation(subject="other"))
    all_away(opened)
    linked = clinic.save(CLINIC, Change("mem-0001", 1, {"rationale": "why"}, (Link("mem-0002", "see"),)))
    assert (linked.version, linked.saved, linked.recallable) == (2, True, True)


def test_a_merge_moves_the_sources_and_takes_the_other_point_away(opened):
    archive = Archive(opened)
    archive.given(clarified(1), promoted(2, 1), session="s1", question="how many?", sql=None)
    archive.given(clarified(1, "patient", "any"), promoted(2, 1), session="s2", question="which?", sql=None)
    curation = Curation(opened)
    merged = curation.save(CLINIC, Merge("mem-0001", 1, "mem-0002", 1))
    assert (merged.card_id, merged.version, merged.recallable) == ("mem-0001", 2, True)
    assert archive.sources("mem-0001") == [("s1", 1), ("s2", 1)]
    assert points(opened).keys() == {"mem-0001", *archive.column("SELECT question_id FROM question")}


def test_a_card_is_not_recallable_before_the_questions_behind_it_are(opened):
    archive = Archive(opened)
    archive.given(clarified(1), promoted(2, 1), sql=None)
    curation = Curation(opened)
    changed = curation.save(CLINIC, Change("mem-0001", 1, {"rationale": "why"}), propagate=False)
    assert not changed.recallable
    assert curation.save(CLINIC, Change("mem-0001", 2, {"rationale": "because"})).recallable
    assert curation.pending(CLINIC) == []


def test_postgres_going_away_before_the_commit_is_an_error_and_nothing_was_saved_or_propagated(
    clinic, opened, superuser, monkeypatch
):
    clinic.save(CLINIC, a_creation())
    before, written = state(opened), opened.index.upserted
    apply = editing.apply

    def applied_and_lost(tx, edit, *, principal):
        saved = apply(tx, edit, principal=principal)
        pid = tx.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        return saved

    monkeypatch.setattr(editing, "apply", applied_and_lost)
    for edit in (a_creation(subject="new"), Change("mem-0001", 1, {"detail": "new"}), Delete("mem-0001", 1)):
        with pytest.raises(ArchiveUnavailable):
            clinic.save(CLINIC, edit)
    assert (state(opened), opened.index.upserted, opened.index.deleted) == (before, written, 0)
    assert clinic.pending(CLINIC) == []


def test_postgres_going_away_after_the_commit_does_not_deny_what_was_saved(clinic, opened, monkeypatch):
    def away(*_, **__):
        raise ArchiveUnavailable("no connection to PostgreSQL")

    monkeypatch.setattr(module, "incomplete", away)
    made = clinic.save(CLINIC, a_creation())
    assert (made.saved, made.recallable, made.reason) == (True, False, "no connection to PostgreSQL")
    assert clinic.detail(CLINIC, made.card_id).version == 1


def test_a_refused_edit_saves_and_propagates_nothing(clinic, opened):
    clinic.save(CLINIC, a_creation())
    before = state(opened)
    with pytest.raises(InvalidEdit):
        clinic.save(CLINIC, Change("mem-0001", 1, {"subject": ""}))
    with pytest.raises(VersionConflict):
        clinic.save(CLINIC, Change("mem-0001", 2, {"subject": "new"}))
    assert state(opened) == before
    assert opened.index.upserted == 1


def test_before_anything_was_projected_all_is_pending(opened):
    Archive(opened).given()
    Archive(opened).change("DELETE FROM embedding_identity")
    assert {item.item_id for item in Curation(opened).pending(CLINIC)} >= {"mem-0001", "sq-0001"}


@pytest.fixture
def two(clinic: Curation, opened: Runtime) -> Curation:
    """Two cards in the ward, each of an id that the clinic does not have."""
    a_workspace(opened, WARD)
    clinic.save(CLINIC, a_creation(subject="ours"))
    for subject in ("first", "second", "theirs"):
        clinic.save(WARD, a_creation(subject=subject), propagate=subject == "theirs")
    return clinic


THEIRS = "mem-0003"


@pytest.mark.parametrize(
    "operation",
    [
        lambda curation: curation.detail(CLINIC, THEIRS),
        lambda curation: curation.retry(CLINIC, THEIRS),
        lambda curation: curation.save(CLINIC, Change(THEIRS, 1, {"detail": "ours now"})),
        lambda curation: curation.save(CLINIC, Delete(THEIRS, 1)),
        lambda curation: curation.save(CLINIC, Change(THEIRS, 1, {}, (Link("mem-0001", "see"),))),
        lambda curation: curation.save(CLINIC, Change("mem-0001", 1, {}, (Link(THEIRS, "see"),))),
        lambda curation: curation.save(CLINIC, Change("mem-0001", 1, {}, (Link(THEIRS, "see", outgoing=False),))),
        lambda curation: curation.save(CLINIC, a_creation(Link(THEIRS, "see"))),
        lambda curation: curation.save(CLINIC, Merge("mem-0001", 1, THEIRS, 1)),
        lambda curation: curation.save(CLINIC, Merge(THEIRS, 1, "mem-0001", 1)),
    ],
)
def test_an_id_of_another_workspace_is_not_found_and_neither_workspace_changes(two, opened, operation):
    def everything():
        return [(state(opened, name), points(opened, name), two.pending(name)) for name in (CLINIC, WARD)]

    before = everything()
    with pytest.raises(CardNotFound):
        operation(two)
    assert everything() == before


OPERATIONS = {
    "save": lambda curation: curation.save(CLINIC, a_creation()),
    "change": lambda curation: curation.save(CLINIC, Change("mem-0001", 1, {"detail": "new"})),
    "delete": lambda curation: curation.save(CLINIC, Delete("mem-0001", 1)),
    "merge": lambda curation: curation.save(CLINIC, Merge("mem-0001", 1, "mem-0002", 1)),
    "retry": lambda curation: curation.retry(CLINIC),
    "give": lambda curation: curation.give(CLINIC, "somebody", Role.READER),
    "take": lambda curation: curation.take(CLINIC, "somebody"),
    "removable": lambda curation: curation.removable(CLINIC),
    "remove": lambda curation: curation.remove_workspace(CLINIC),
}
READS = {
    "list": lambda curation: curation.list(CLINIC, ListRequest()),
    "detail": lambda curation: curation.detail(CLINIC, "mem-0001"),
    "pending": lambda curation: curation.pending(CLINIC),
    "grants": lambda curation: curation.grants(CLINIC),
}


@pytest.fixture
def guarded(clinic: Curation, opened: Runtime) -> Curation:
    for subject in ("one", "two"):
        clinic.save(CLINIC, a_creation(subject=subject), propagate=False)
    a_workspace(opened, WARD)
    return clinic


@pytest.mark.parametrize("operation", [*OPERATIONS, *READS])
def test_without_a_grant_every_operation_is_refused(guarded, opened, operation):
    before = state(opened)
    with pytest.raises(NotPermitted):
        (OPERATIONS | READS)[operation](Curation(opened, "stranger"))
    assert (state(opened), points(opened)) == (before, {})


@pytest.mark.parametrize("role", [Role.READER, Role.REVIEWER])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_who_may_read_may_not_change(guarded, opened, operation, role):
    somebody = granted(opened, CLINIC, role)
    before = state(opened)
    with pytest.raises(NotPermitted):
        OPERATIONS[operation](somebody)
    assert (state(opened), points(opened)) == (before, {})


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("operation", READS)
def test_every_role_may_read(guarded, opened, operation, role):
    assert READS[operation](granted(opened, CLINIC, role))


@pytest.mark.parametrize("operation", [*OPERATIONS, *READS])
def test_a_workspace_that_is_not_there_is_unknown_to_every_operation(opened, operation):
    with pytest.raises(UnknownWorkspace):
        (OPERATIONS | READS)[operation](Curation(opened))


@pytest.mark.parametrize("operation", [*OPERATIONS, *READS])
def test_an_archive_that_is_away_is_said_by_every_operation(guarded, opened, operation):
    opened.database = Gone(ArchiveUnavailable("no connection to PostgreSQL"))
    with pytest.raises(ArchiveUnavailable):
        (OPERATIONS | READS)[operation](guarded)


EDITOR = """
import sys
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change
from memory_pipeline.errors import VersionConflict
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
with Runtime(load_settings()) as runtime:
    try:
        Curation(runtime).save("clinic", Change("mem-0001", 1, {"detail": sys.argv[1]}), propagate=False)
        print("saved")
    except VersionConflict as conflict:
        print("conflict", conflict.version, conflict.now["detail"])
"""


def test_of_two_processes_that_edit_at_once_exactly_one_wins(clinic, opened, owner_connection):
    clinic.save(CLINIC, a_creation(), propagate=False)
    with opened.database.transaction(CLINIC, writing=True):  # until both have come as far as to wait for it
        editors = [an_editor(opened.settings, detail) for detail in ("of one", "of the other")]
        while waiting_for_a_lock(owner_connection) < len(editors):
            assert all(editor.poll() is None for editor in editors)
    said = sorted(editor.communicate(timeout=60)[0].strip() for editor in editors)
    now = clinic.detail(CLINIC, "mem-0001")
    assert said == [f"conflict 2 {now.content.detail}", "saved"]
    assert now.version == 2


def an_editor(settings: Settings, detail: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "MEMORY_HOME": str(settings.home),
        "MEMORY_DATABASE_URL": settings.database_url.get_secret_value(),
        "MEMORY_OWNER_URL": settings.owner_url.get_secret_value(),
        "MEMORY_PRINCIPAL": "tester",
    }
    return subprocess.Popen([sys.executable, "-c", EDITOR, detail], env=environment, stdout=subprocess.PIPE, text=True)


def waiting_for_a_lock(connection) -> int:
    (number,) = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    return number


@pytest.fixture
def owner_connection(settings):
    with connected(settings.owner_url) as connection:
        yield connection


def test_an_administrators_word_stays_when_the_ledgers_are_read_again_without_index_and_model(opened):
    archive = Archive(opened)
    archive.given()
    curation = Curation(all_away(opened))
    curation.save(CLINIC, Change("mem-0001", 1, {"detail": "corrected"}))
    archive.given(session="later")
    assert curation.detail(CLINIC, "mem-0001").content.detail == "corrected"
