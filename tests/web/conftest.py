"""The web over a real archive and a real index, asked without a network, by people and programs of several roles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.curation import Curation
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from memory_pipeline.web import create_app
from memory_pipeline.web.identity import Identity, LocalToken
from memory_pipeline.web.identity.sessions import COOKIE
from memory_pipeline.web.services import Services
from tests.curating import a_runtime, a_workspace

TOKEN = "the token of this home"  # noqa: S105  # of a test
HOST = "http://127.0.0.1"


@pytest.fixture
def watched(settings: Settings) -> Iterator[Runtime]:
    """The services behind the web: real ones, with a stand-in for the model."""
    with a_runtime(settings) as runtime:
        a_workspace(runtime)
        yield runtime


@pytest.fixture
def curation(watched: Runtime) -> Curation:
    """The administration behind the web, as the holder of the local token has it."""
    return Curation(watched)


@pytest.fixture
def app_services(watched: Runtime) -> Services:
    return Services.of(watched, LocalToken(TOKEN, watched.settings.acting_principal))


@pytest.fixture
def client(app_services: Services) -> Iterator[TestClient]:
    """A browser without scripts that nobody has signed in."""
    with TestClient(create_app(app_services), base_url=HOST, follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def program(app_services: Services) -> Iterator[TestClient]:
    """A program that holds the local token, and no cookie."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create_app(app_services), base_url=HOST, follow_redirects=False, headers=headers) as opened:
        yield opened


@pytest.fixture
def admin(client: TestClient) -> TestClient:
    """A browser without scripts in which the administrator has signed in."""
    assert client.post("/sign-in", data={"token": TOKEN}).status_code == 303
    return client


def csrf(page: str) -> str:
    """What the forms of a page carry against other sites."""
    return re.search(r'name="csrf" value="([0-9a-f]{64})"', page)[1]


def let_in(curation: Curation, principal: str, role: Role, workspace: str = "clinic") -> str:
    """Give somebody a role; their name."""
    curation.give(workspace, principal, role)
    return principal


def signed_in_as(client: TestClient, services: Services, name: str) -> TestClient:
    """The browser in which somebody has signed in who has the archive's grants."""
    cookie, _ = services.sessions.begin(Identity(Principal(name)))
    client.cookies.set(COOKIE, cookie)
    return client
