"""What is examined: the settings of a test, with a fault planted."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import make_url

from memory_pipeline.doctor import Result, State, examine
from memory_pipeline.settings import Examined, Settings
from tests.archives import connected

Report = dict[str, list[Result]]
CANARY = "c4nary-p4ss"


def report_of(examined: Examined, **given: float) -> Report:
    """What was found, by check."""
    found: Report = {}
    for result in examine(examined, **given):
        found.setdefault(result.check, []).append(result)
    return found


@pytest.fixture
def examined(settings: Settings) -> Callable[..., Report]:
    """Examines the test's settings with some changed."""
    return lambda **changed: report_of(Examined(settings.model_copy(update=changed)))


def only(report: Report, check: str) -> tuple[State, str, str]:
    """The one thing that a check found."""
    [result] = report[check]
    return result.state, result.found, result.do


def as_role(url: SecretStr, **changed: object) -> SecretStr:
    """The same URL with another part."""
    return SecretStr(make_url(url.get_secret_value()).set(**changed).render_as_string(hide_password=False))


@contextlib.contextmanager
def silent_server() -> Iterator[int]:
    """The port of a server that lets everybody in and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def owner(settings: Settings) -> Iterator[psycopg.Connection]:
    """A connection of the owner, whom row security does not bind."""
    with connected(settings.owner_url) as connection:
        yield connection
