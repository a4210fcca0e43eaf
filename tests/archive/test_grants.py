"""Who may do what: one rule, asked in the archive, and an administrator that is always left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg import errors

from memory_pipeline.archive import grants, workspaces
from memory_pipeline.archive.grants import Role
from memory_pipeline.errors import InvalidInput, NotPermitted, UnknownWorkspace

MAKER = "maker"


def require(database, workspace, principal, role) -> None:
    """Ask whether a principal may do what a role allows."""
    with grants.granted(database, workspace, principal, role):
        pass


@pytest.fixture
def clinic(database) -> str:
    """A workspace whose only grant is its maker's."""
    workspaces.make(database, "clinic", language="italian", principal=MAKER)
    return "clinic"


@pytest.mark.parametrize("held", [None, *Role])
@pytest.mark.parametrize("needed", Role)
def test_a_role_includes_those_below_it_and_no_grant_includes_none(database, clinic, held, needed):
    if held:
        grants.give(database, clinic, "anna", held, by=MAKER)
    permitted = held is not None and list(Role).index(held) >= list(Role).index(needed)
    if permitted:
        require(database, clinic, "anna", needed)
    else:
        with pytest.raises(NotPermitted, match=f"'anna' may not .* 'clinic'.* {needed}"):
            require(database, clinic, "anna", needed)


def test_an_unknown_workspace_is_another_error_than_a_missing_grant_and_names_no_other_principal(database, clinic):
    with pytest.raises(UnknownWorkspace):
        require(database, "nowhere", "anna", Role.READER)
    with pytest.raises(NotPermitted) as refused:
        require(database, clinic, "anna", Role.READER)
    assert MAKER not in str(refused.value)


def test_a_grant_holds_in_its_workspace_alone(database, clinic):
    workspaces.make(database, "ward", language="italian", principal="other")
    with pytest.raises(NotPermitted):
        require(database, "ward", MAKER, Role.READER)
    assert grants.held_by(database, MAKER) == {clinic: Role.ADMINISTRATOR}


def test_the_grants_of_a_workspace_say_who_gave_them(database, clinic):
    assert grants.give(database, clinic, "anna", Role.READER, by=MAKER)
    assert grants.give(database, clinic, "anna", Role.REVIEWER, by=MAKER)
    assert not grants.give(database, clinic, "anna", Role.REVIEWER, by=MAKER)
    found = [(grant.principal, grant.role, grant.granted_by) for grant in grants.of(database, clinic)]
    assert found == [("anna", "reviewer", MAKER), (MAKER, "administrator", MAKER)]
    assert grants.take(database, clinic, "anna", by=MAKER)
    assert not grants.take(database, clinic, "anna", by=MAKER)
    with pytest.raises(NotPermitted):
        require(database, clinic, "anna", Role.READER)


@pytest.mark.parametrize("role", [None, Role.READER, Role.REVIEWER])
def test_only_an_administrator_gives_and_takes(database, clinic, role):
    if role:
        grants.give(database, clinic, "anna", role, by=MAKER)
    before = grants.of(database, clinic)
    with pytest.raises(NotPermitted):
        grants.give(database, clinic, "anna", Role.ADMINISTRATOR, by="anna")
    with pytest.raises(NotPermitted):
        grants.take(database, clinic, MAKER, by="anna")
    assert grants.of(database, clinic) == before


def test_the_last_administrator_stays_one(database, clinic):
    grants.give(database, clinic, "anna", Role.REVIEWER, by=MAKER)
    with pytest.raises(NotPermitted, match="last administrator"):
        grants.take(database, clinic, MAKER, by=MAKER)
    with pytest.raises(NotPermitted, match="last administrator"):
        grants.give(database, clinic, MAKER, Role.REVIEWER, by=MAKER)
    grants.give(database, clinic, "anna", Role.ADMINISTRATOR, by=MAKER)
    assert grants.take(database, clinic, MAKER, by=MAKER)
    require(database, clinic, "anna", Role.ADMINISTRATOR)


def test_two_administrators_cannot_take_away_each_other_at_once(database, clinic):
    grants.give(database, clinic, "anna", Role.ADMINISTRATOR, by=MAKER)

    def take(other: str, by: str) -> bool:
        try:
            return grants.take(database, clinic, other, by=by)
        except NotPermitted:
            return False

    with ThreadPoolExecutor(2) as both:
        taken = list(both.map(take, ("anna", MAKER), (MAKER, "anna")))
    assert sorted(taken) == [False, True]
    assert [grant.role for grant in grants.of(database, clinic)] == ["administrator"]


@pytest.mark.parametrize("name", ["", "  ", "a" * 256, "a\x00b", "\ud800"])
def test_nobody_is_called_so(database, clinic, name):
    with pytest.raises(InvalidInput):
        grants.give(database, clinic, name, Role.READER, by=MAKER)
    with pytest.raises(InvalidInput):
        grants.take(database, clinic, name, by=MAKER)


def test_a_workspace_that_is_not_there_has_no_grants_to_give(database):
    with pytest.raises(UnknownWorkspace):
        grants.give(database, "nowhere", "anna", Role.READER, by=MAKER)
    with pytest.raises(UnknownWorkspace):
        grants.of(database, "nowhere")


@pytest.mark.parametrize("column", ["workspace", "principal"])
def test_the_runtime_role_cannot_turn_a_grant_into_somebody_elses(clinic, stranger, column):
    with pytest.raises(errors.InsufficientPrivilege):
        stranger.execute(f"UPDATE workspace_grant SET {column} = {column}")
