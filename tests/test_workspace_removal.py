"""A removed workspace is gone from archive and index, comes back with nothing, and takes nobody else's along."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields

import psycopg
import pytest
from psycopg import errors
from qdrant_client import QdrantClient

from memory_pipeline.archive import workspaces
from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.cards import Collection
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change, Delete, Link
from memory_pipeline.errors import (
    IndexUnavailable,
    NotPermitted,
    SessionsUnavailable,
    UnknownWorkspace,
    WorkspaceInUse,
)
from memory_pipeline.index.base import Point
from memory_pipeline.index.server import QdrantServerIndex
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, projector, removal
from memory_pipeline.propagation.locks import alone
from memory_pipeline.propagation.projector import project
from memory_pipeline.propagation.switch import make_live
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.archives import Archive, connected
from tests.builders import a_session, approved, clarified, promoted
from tests.command_line import runner
from tests.curating import CLINIC, WARD, a_creation, a_runtime, all_away, granted, points
from tests.doubles import WatchedIndex


@pytest.fixture(params=["embedded", "server"])
def opened(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Runtime]:
    """The services over either kind of index; on a server all workspaces share their collections."""
    if request.param == "embedded":
        with a_runtime(settings) as runtime:
            yield runtime
        return
    with a_runtime(settings.model_copy(update={"qdrant_url": "http://in-memory"})) as runtime:
        runtime.index = WatchedIndex(QdrantServerIndex(QdrantClient(":memory:")))
        yield runtime
        runtime.index.close()


@pytest.fixture
def embedded(settings: Settings) -> Iterator[Runtime]:
    with a_runtime(settings) as runtime:
        yield runtime


@pytest.fixture
def owner(settings: Settings) -> Iterator[psycopg.Connection]:
    with connected(settings.owner_url) as connection:
        yield connection


def filled(runtime: Runtime, workspace: str) -> Curation:
    """A workspace with rows in every table and points in every collection, whose session directories are gone."""
    root, sql = runtime.settings.sessions, "SELECT count(*) FROM patients WHERE city = 'Roma'"
    for number in range(3):
        decisions = (clarified(1, f"subject {number}"), approved(2), promoted(3, 1))
        a_session(root, *decisions, session=f"s{number}", workspace=workspace, question=f"question {number}?", sql=sql)
    a_session(root, session="faulty", workspace=workspace, ledger=b"not json\n", sql=None)
    ingest(runtime.database, workspace, runtime.settings, runtime.identity)
    curation = Curation(runtime)
    curation.retry(workspace)
    audit(runtime, workspace)
    curation.save(workspace, Change("mem-0001", 1, {"rationale": "why"}, (Link("mem-0002", "see"),)))
    curation.save(workspace, Delete("mem-0003", 1), propagate=False)
    curation.give(workspace, "anna", Role.READER)
    queued = "INSERT INTO admin_edit (workspace, principal, operation) VALUES (:workspace, 'tester', 'delete')"
    Archive(runtime, workspace).change(queued)
    shutil.rmtree(root / workspace)
    return curation


def rows(owner: psycopg.Connection, workspace: str) -> dict[str, list[tuple]]:
    """Table → all rows of a workspace, for whoever row security does not bind."""
    tables = [
        name
        for (name,) in owner.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND column_name = 'workspace' ORDER BY table_name"
        )
    ]
    assert len(tables) >= 16
    return {
        name: owner.execute(f"SELECT t.* FROM {name} t WHERE workspace = %s ORDER BY t::text", [workspace]).fetchall()
        for name in tables
    }


def everything(runtime: Runtime, owner: psycopg.Connection, workspace: str) -> tuple:
    return rows(owner, workspace), points(runtime, workspace)


def test_nothing_of_it_is_left_and_every_other_workspace_is_untouched(opened, owner):
    filled(opened, WARD)
    curation = filled(opened, CLINIC)
    before, others = everything(opened, owner, CLINIC), everything(opened, owner, WARD)
    assert [name for name, found in before[0].items() if not found] == []
    assert len(before[1]) >= 7
    removed = curation.remove_workspace(CLINIC)
    assert removed.cards == {"concept": 2, "sql_rule": 0, "pitfall": 0, "solved_question": 3}
    assert (removed.sources, removed.sessions, removed.grants, removed.waiting_edits) == (5, 4, 2, 1)
    assert removed.points == len(before[1])
    after, gone = everything(opened, owner, CLINIC)
    assert [name for name, found in after.items() if found] == []
    assert gone == {}
    assert not (opened.settings.home / "index" / CLINIC).exists()
    assert everything(opened, owner, WARD) == others
    assert workspaces.names(opened.database) == [WARD]
    with pytest.raises(UnknownWorkspace):
        curation.remove_workspace(CLINIC)


def test_what_went_counts_what_came_in_while_the_removal_waited(embedded, monkeypatch):
    curation = filled(embedded, CLINIC)
    forget = embedded.index.forget

    def forget_late(workspace):
        curation.save(CLINIC, a_creation(subject="late"), propagate=False)
        forget(workspace)

    monkeypatch.setattr(embedded.index, "forget", forget_late)
    assert curation.remove_workspace(CLINIC).cards["concept"] == 3


def test_its_name_can_be_used_again_without_the_old_content_coming_back(opened):
    curation = filled(opened, CLINIC)
    curation.remove_workspace(CLINIC)
    anew = Curation(opened, "somebody else")
    assert anew.make_workspace(CLINIC)
    made = anew.save(CLINIC, a_creation(subject="new"))
    assert (made.card_id, made.version, made.recallable) == ("mem-0001", 1, True)
    assert points(opened) == {"mem-0001": 1}
    assert not audit(opened, CLINIC)
    assert [grant.principal for grant in anew.grants(CLINIC)] == ["somebody else"]
    with pytest.raises(NotPermitted):
        curation.grants(CLINIC)


def test_points_of_other_embedding_identities_go_too(opened):
    curation = filled(opened, CLINIC)
    into = target(CLINIC, Collection.MEMORY_CARDS, opened.identity.__class__(**{**vars_of(opened), "revision": "old"}))
    opened.index.ensure(into)
    payload = {"workspace": CLINIC, "item": "mem-0001", "version": 1, "fingerprint": "old"}
    vector = opened.embedder.embed(["text"], "passage")[0]
    opened.index.upsert(into, [Point(point_id(CLINIC, "mem-0001"), payload, {"content": vector})])
    curation.remove_workspace(CLINIC)
    if opened.settings.qdrant_url:
        assert list(opened.index.scan(into)) == []
    else:
        assert opened.index.identities(CLINIC, "memory_cards") == frozenset()


def vars_of(runtime: Runtime) -> dict[str, object]:
    return {each.name: getattr(runtime.identity, each.name) for each in fields(runtime.identity) if each.init}


def test_it_is_refused_while_session_directories_would_bring_it_back(embedded, owner):
    curation = filled(embedded, CLINIC)
    directory = a_session(embedded.settings.sessions, workspace=CLINIC).parent
    before = everything(embedded, owner, CLINIC)
    with pytest.raises(WorkspaceInUse, match=f"{directory} holds sessions .* move that directory away"):
        curation.remove_workspace(CLINIC)
    assert everything(embedded, owner, CLINIC) == before
    shutil.rmtree(directory)
    directory.mkdir()
    curation.remove_workspace(CLINIC)
    assert workspaces.names(embedded.database) == []


def test_a_session_directory_that_cannot_be_read_is_not_none(embedded, monkeypatch):
    curation = filled(embedded, CLINIC)
    (embedded.settings.sessions / CLINIC).mkdir()

    def unreadable(*_):
        raise SessionsUnavailable("cannot be read")

    monkeypatch.setattr("memory_pipeline.ledger.list_sessions", unreadable)
    with pytest.raises(SessionsUnavailable):
        curation.remove_workspace(CLINIC)


@pytest.mark.parametrize("role", [Role.READER, Role.REVIEWER])
def test_only_an_administrator_of_it_may(embedded, owner, role):
    filled(embedded, CLINIC)
    filled(embedded, WARD)
    somebody = granted(embedded, CLINIC, role)
    granted(embedded, WARD, Role.ADMINISTRATOR).give(WARD, somebody.principal, Role.ADMINISTRATOR)
    before = everything(embedded, owner, CLINIC)
    for curation in (somebody, Curation(embedded, "stranger")):
        with pytest.raises(NotPermitted):
            curation.remove_workspace(CLINIC)
    assert everything(embedded, owner, CLINIC) == before


def test_with_the_index_away_nothing_is_removed(embedded, owner):
    filled(embedded, CLINIC)
    before = rows(owner, CLINIC)
    index = embedded.index
    with pytest.raises(IndexUnavailable):
        Curation(all_away(embedded)).remove_workspace(CLINIC)
    embedded.index = index
    assert rows(owner, CLINIC) == before


@pytest.mark.parametrize("step", ["drop", "forget", "archive"])
def test_what_was_interrupted_is_pending_and_completed_by_removing_it_again(opened, owner, monkeypatch, step):
    curation = filled(opened, CLINIC)
    with monkeypatch.context() as interrupted:

        def stop(*_):
            raise KeyboardInterrupt

        interrupted.setattr(
            *((workspaces, "remove") if step == "archive" else (opened.index, step)), stop, raising=False
        )
        with pytest.raises(KeyboardInterrupt):
            curation.remove_workspace(CLINIC)
    cards = rows(owner, CLINIC)["card"]
    assert {item.item_id for item in curation.pending(CLINIC)} >= {"mem-0001", "mem-0002", "sq-0001"}
    assert len(cards) == 5
    curation.remove_workspace(CLINIC)
    after, gone = everything(opened, owner, CLINIC)
    assert ([name for name, found in after.items() if found], gone) == ([], {})


def test_what_was_interrupted_can_be_projected_again_instead(opened, monkeypatch):
    curation, archive = filled(opened, CLINIC), Archive(opened)
    items = archive.column("SELECT card_id FROM card UNION SELECT question_id FROM question")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(workspaces, "remove", stop)
        with pytest.raises(KeyboardInterrupt):
            curation.remove_workspace(CLINIC)
    embedded = opened.embedder.embedded
    assert project(opened, CLINIC).pending == 0
    assert points(opened).keys() == set(items)
    assert not audit(opened, CLINIC)
    assert opened.embedder.embedded == embedded


def test_a_projector_at_work_is_not_disturbed(embedded, owner, monkeypatch):
    curation = filled(embedded, CLINIC)
    before = everything(embedded, owner, CLINIC)
    monkeypatch.setattr(removal, "alone", lambda *a, **k: alone(*a, **{**k, "wait": 0.0}))
    with alone(embedded, CLINIC, Collection.QUESTIONS), pytest.raises(IndexUnavailable, match="goes on projecting"):
        curation.remove_workspace(CLINIC)
    assert everything(embedded, owner, CLINIC) == before


def test_a_projector_that_waited_for_the_removal_brings_nothing_back(embedded, owner):
    curation = filled(embedded, CLINIC)
    run = projector._Run(embedded, CLINIC, embedded.identity, progress=lambda *_: None, items=None, wait=60.0)
    run.prepare(list(Collection), retry_now=True)
    curation.remove_workspace(CLINIC)
    with pytest.raises(UnknownWorkspace):
        run.collection(Collection.MEMORY_CARDS)
    with pytest.raises(UnknownWorkspace):
        make_live(embedded, CLINIC)
    assert not (embedded.settings.home / "index" / CLINIC).exists()


def test_the_runtime_role_removes_only_the_workspace_that_its_transaction_names(opened, owner, settings):
    for name in (CLINIC, WARD):
        filled(opened, name)
    with connected(settings.database_url) as connection:
        assert connection.execute("SELECT remove_workspace()").fetchone() == (False,)
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("DELETE FROM workspace")
        with connection.transaction():
            connection.execute("SELECT set_config('memory.workspace', %s, true)", [CLINIC])
            assert connection.execute("SELECT remove_workspace()").fetchone() == (True,)
    assert workspaces.names(opened.database) == [WARD]
    assert [name for name, found in rows(owner, WARD).items() if not found] == []


def test_nobody_but_the_runtime_role_may_call_it(owner, superuser):
    (rights,) = owner.execute("SELECT proacl::text FROM pg_proc WHERE proname = 'remove_workspace'").fetchone()
    assert {right.partition("=")[0] for right in rights.strip("{}").split(",")} == {"memory_owner", "memory_runtime"}
    (fixed,) = owner.execute("SELECT proconfig FROM pg_proc WHERE proname = 'remove_workspace'").fetchone()
    assert fixed == ["search_path=pg_catalog, public, pg_temp"]


@pytest.fixture
def run(embedded, settings, monkeypatch, capsys):
    filled(embedded, CLINIC)
    return runner(settings, monkeypatch, capsys)


def test_the_command_names_what_goes_and_asks(run, embedded):
    code, out, err = run("workspace", "remove", CLINIC, answer="n")
    assert code == 1
    for said in ("5 card(s)", "2 concept", "3 solved_question", "5 source(s)", "4 session(s)", "2 grant(s)"):
        assert said in err
    assert "1 waiting edit(s)" in err
    assert "Nothing was removed" in err
    assert workspaces.names(embedded.database) == [CLINIC]
    code, out, _ = run("workspace", "remove", CLINIC, answer="y")
    assert code == 0
    assert f"Removed {CLINIC}" in out
    assert workspaces.names(embedded.database) == []


def test_a_program_has_to_say_yes(run, embedded):
    code, out, err = run("workspace", "remove", CLINIC)
    assert (code, out) == (4, "")
    assert "5 card(s)" in err
    assert "--yes" in err
    code, out, err = run("workspace", "remove", CLINIC, "--yes", "--json")
    assert (code, err) == (0, "")
    removed = json.loads(out)
    assert removed["workspace"] == CLINIC
    assert removed["removed"]["cards"]["concept"] == 2
    assert run("workspace", "remove", CLINIC, "--yes")[0] == 6


def test_the_command_says_which_directory_has_to_go_first(run, embedded):
    directory = a_session(embedded.settings.sessions, workspace=CLINIC).parent
    code, out, err = run("workspace", "remove", CLINIC, "--yes")
    assert (code, out) == (16, "")
    assert str(directory) in err
    assert workspaces.names(embedded.database) == [CLINIC]
