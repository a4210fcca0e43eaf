"""The token of a home: made once, kept for its owner alone, and never weaker than it looks."""

from __future__ import annotations

import os
import re
import stat

import pytest

from memory_pipeline.archive.grants import Principal
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.web.identity import Identity, InvalidToken, LocalToken
from tests.processes import finished, started


@pytest.fixture
def home(settings):
    """Settings whose home is there, and has no token yet."""
    settings.home.mkdir(exist_ok=True)
    return settings


def test_the_first_start_makes_a_token_for_its_owner_alone_and_the_next_one_keeps_it(home):
    made = LocalToken.of_home(home)
    kept = LocalToken.of_home(home)

    assert made.new
    assert re.fullmatch(r"[\w-]{43}", made.token)  # 256 bits
    assert stat.S_IMODE(LocalToken.place(home).stat().st_mode) == 0o600
    assert (kept.token, kept.new) == (made.token, False)
    assert kept.secret == made.secret
    assert made.token not in made.secret.hex()


def test_it_is_made_for_its_owner_alone_whatever_files_are_made_for_otherwise(home):
    before = os.umask(0)
    try:
        LocalToken.of_home(home)
    finally:
        os.umask(before)

    assert stat.S_IMODE(LocalToken.place(home).stat().st_mode) == 0o600


def test_processes_that_start_at_once_take_the_same_token_and_leave_nothing_beside_it(home):
    processes = [started(home, "tests.web.token_process", str(home.home)) for _ in range(4)]

    said = finished(processes)

    assert len(set(said)) == 1
    assert {file.name for file in home.home.iterdir() if "token" in file.name} == {LocalToken.place(home).name}
    assert LocalToken.of_home(home).token == said[0].strip()


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o666, 0o620, 0o601])
def test_a_token_that_others_may_reach_is_refused(home, mode):
    LocalToken.of_home(home)
    LocalToken.place(home).chmod(mode)

    with pytest.raises(InvalidSettings, match="delete it"):
        LocalToken.of_home(home)


@pytest.mark.parametrize("held", [b"", b"\n", b"  \n\t", b"\xff\xfe", "tokén".encode()])
def test_a_file_that_holds_no_token_is_refused_and_lets_nobody_in(home, held):
    LocalToken.of_home(home)
    LocalToken.place(home).write_bytes(held)

    with pytest.raises(InvalidSettings, match="holds no token"):
        LocalToken.of_home(home)


def test_what_cannot_be_used_is_said_without_what_it_holds(home):
    LocalToken.place(home).mkdir()

    with pytest.raises(InvalidSettings, match="cannot be used"):
        LocalToken.of_home(home)


@pytest.mark.parametrize("change", ["", " ", "x", "\x00", "\ud800", "é", "x" * 1_000_000])
def test_anything_but_the_token_stands_for_nobody(home, change):
    local = LocalToken.of_home(home)

    assert local.identify(local.token) == Identity(Principal(home.acting_principal))
    for other in (change, local.token + (change or "y"), (change or "y") + local.token, local.token[:-1] + change):
        with pytest.raises(InvalidToken) as refused:
            local.identify(other)
        assert local.token not in str(refused.value)
