"""Every address for everybody: who is let in where, by token and by cookie."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.testclient import TestClient

from memory_pipeline.archive.grants import Role
from memory_pipeline.curation import Curation
from memory_pipeline.web import create_app
from memory_pipeline.web.identity import IssuedTokens
from memory_pipeline.web.identity.sessions import COOKIE
from memory_pipeline.web.protection import Rate
from memory_pipeline.web.services import Services
from tests.builders import a_session, clarified
from tests.curating import CLINIC, WARD, a_creation, a_workspace
from tests.web.conftest import HOST, csrf

A, API = CLINIC, "/api/v1/workspaces/{workspace}"
ISSUER, AUDIENCE = "https://issuer.example", "memory"
READER, REVIEWER, ADMINISTRATOR = Role
ANYBODY, SIGNED_IN = "anybody", "whoever is signed in"

# Every address, and the role in its workspace that it takes.
API_ROUTES = {
    "GET /api/v1/workspaces": SIGNED_IN,
    f"GET {API}/cards": ADMINISTRATOR,
    f"POST {API}/cards": ADMINISTRATOR,
    f"GET {API}/cards/{{card_id}}": ADMINISTRATOR,
    f"PATCH {API}/cards/{{card_id}}": ADMINISTRATOR,
    f"DELETE {API}/cards/{{card_id}}": ADMINISTRATOR,
    f"GET {API}/cards/{{card_id}}/links": ADMINISTRATOR,
    f"POST {API}/cards/{{card_id}}/links": ADMINISTRATOR,
    f"GET {API}/duplicates": ADMINISTRATOR,
    f"POST {API}/merges": ADMINISTRATOR,
    f"GET {API}/pending": ADMINISTRATOR,
    f"POST {API}/retry": ADMINISTRATOR,
    f"POST {API}/recall": READER,
}
PAGES = {
    "GET /": SIGNED_IN,
    "POST /sign-out": SIGNED_IN,
    "GET /w/{workspace}/overview": ADMINISTRATOR,
    "GET /w/{workspace}/cards": ADMINISTRATOR,
    "GET /w/{workspace}/cards/{card_id}": ADMINISTRATOR,
    "GET /w/{workspace}/new-card": ADMINISTRATOR,
    "POST /w/{workspace}/new-card": ADMINISTRATOR,
    "GET /w/{workspace}/cards/{card_id}/edit": ADMINISTRATOR,
    "POST /w/{workspace}/cards/{card_id}/edit": ADMINISTRATOR,
    "GET /w/{workspace}/cards/{card_id}/delete": ADMINISTRATOR,
    "POST /w/{workspace}/cards/{card_id}/delete": ADMINISTRATOR,
    "GET /w/{workspace}/duplicates": ADMINISTRATOR,
    "GET /w/{workspace}/merge": ADMINISTRATOR,
    "POST /w/{workspace}/merge": ADMINISTRATOR,
    "GET /w/{workspace}/pending": ADMINISTRATOR,
    "POST /w/{workspace}/pending": ADMINISTRATOR,
    "GET /w/{workspace}/sessions": REVIEWER,
    "GET /w/{workspace}/sessions/{session_id}": REVIEWER,
    "GET /w/{workspace}/sessions/{session_id}/review": REVIEWER,
    "POST /w/{workspace}/sessions/{session_id}/review": REVIEWER,
    "GET /w/{workspace}/sessions/{session_id}/correct": REVIEWER,
    "POST /w/{workspace}/sessions/{session_id}/correct": REVIEWER,
    "GET /w/{workspace}/recall": READER,
    "POST /w/{workspace}/recall": READER,
}
OPEN = {
    f"{method} {path}": ANYBODY
    for method, path in [
        ("GET", "/sign-in"),
        ("POST", "/sign-in"),
        ("GET", "/health"),
        ("GET", "/ready"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/openapi.json"),
        ("GET", "/static/style.css"),
    ]
}

# What is sent where something has to be, so that it is refused for nothing but the role.
BODIES: dict[str, dict[str, Any]] = {
    f"POST {API}/cards": {"family": "concept", "subject": "new", "detail": "new"},
    f"PATCH {API}/cards/{{card_id}}": {"version": 1, "detail": "other"},
    f"POST {API}/cards/{{card_id}}/links": {"version": 1, "links": [{"other": "{other}", "meaning": "is"}]},
    f"POST {API}/merges": {"keep": "{card_id}", "keep_version": 1, "other": "{other}", "other_version": 1},
    f"POST {API}/retry": {},
    f"POST {API}/recall": {"question": "paziente"},
}
FORMS: dict[str, dict[str, str]] = {
    "POST /w/{workspace}/new-card": {"family": "concept", "version": "0", "subject": "new", "detail": "new"},
    "POST /w/{workspace}/cards/{card_id}/edit": {
        "family": "concept",
        "version": "1",
        "subject": "other",
        "detail": "other",
    },
    "POST /w/{workspace}/cards/{card_id}/delete": {"version": "1"},
    "POST /w/{workspace}/merge": {
        "keep": "{card_id}",
        "keep_version": "1",
        "other": "{other}",
        "other_version": "1",
    },
    "POST /w/{workspace}/sessions/{session_id}/review": {"decide.1": "promote"},
    "POST /w/{workspace}/sessions/{session_id}/correct": {"retract": "1", "after": "2"},
    "POST /w/{workspace}/recall": {"question": "paziente"},
}
QUERIES = {
    f"DELETE {API}/cards/{{card_id}}": {"version": "1"},
    "GET /w/{workspace}/merge": {"keep": "{card_id}", "other": "{other}"},
    "GET /w/{workspace}/sessions/{session_id}/correct": {"retract": "1"},
}

# Who asks: in which roles in A, and in B.
PEOPLE = {
    "reader of A": {A: READER},
    "reviewer of A": {A: REVIEWER},
    "administrator of A": {A: ADMINISTRATOR},
    "administrator of B": {WARD: ADMINISTRATOR},
}
INVALID = (
    "nobody",
    "expired",
    "not valid yet",
    "wrong audience",
    "wrong issuer",
    "wrong signature",
    "unsigned",
    "signed with the public key",
    "no principal",
)
VOUCHED = pytest.mark.parametrize("vouched", [False, True], ids=["grants of the archive", "roles of the token"])


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def other_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Door:
    """The web with an issuer's tokens, and what everybody brings to it."""

    def __init__(self, client: TestClient, curation: Curation, key, other_key, *, vouched: bool) -> None:
        self.client, self._curation = client, curation
        self._key, self._other, self._vouched = key, other_key, vouched

    def token(self, who: str) -> str | None:
        if who == "nobody":
            return None
        now = datetime.now(UTC)
        name = who if who in PEOPLE else "administrator of A"
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": name, "exp": now + timedelta(hours=1)}
        if self._vouched:
            claims["roles"] = {workspace: role.value for workspace, role in PEOPLE[name].items()}
        wrong: dict[str, dict[str, object]] = {
            "expired": {"exp": now - timedelta(minutes=5)},
            "not valid yet": {"nbf": now + timedelta(minutes=5)},
            "wrong audience": {"aud": "somebody else"},
            "wrong issuer": {"iss": "https://evil.example"},
            "no principal": {"sub": None},
        }
        said = {name: value for name, value in {**claims, **wrong.get(who, {})}.items() if value is not None}
        # PyJWT itself does not sign with a public key as such; whoever forges a token is not so kind.
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)["n"]
        signed: dict[str, tuple[Any, str]] = {
            "unsigned": (None, "none"),
            "signed with the public key": (public, "HS256"),
            "wrong signature": (self._other, "RS256"),
        }
        secret, algorithm = signed.get(who, (self._key, "RS256"))
        return jwt.encode(said, secret, algorithm=algorithm, headers={"kid": "1"})

    def by_token(self, route: str, who: str) -> int:
        token = self.token(who)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.ask(route, headers=headers, json=BODIES.get(route))

    def by_page(self, route: str, who: str) -> int:
        """Sign in with a token, and ask as a browser does, with the mark that its pages have."""
        self.client.cookies.clear()
        if (token := self.token(who)) is not None:
            self.client.post("/sign-in", data={"token": token})
        mark = csrf(self.client.get("/").text) if self.client.cookies.get(COOKIE) else "0" * 64
        status = self.ask(route, data={**FORMS.get(route, {}), "csrf": mark} if route.startswith("POST") else None)
        self.client.cookies.clear()
        return status

    def ask(self, route: str, **sent: Any) -> int:
        """Ask about two cards that nobody has touched yet, so that what others did before decides nothing."""
        method, path = route.split(" ")
        names = {"workspace": A, "session_id": "session-1", "card_id": self._card(), "other": self._card()}
        filled = {name: _filled(value, names) for name, value in sent.items()}
        query = _filled(QUERIES.get(route), names)
        return self.client.request(method, path.format(**names), params=query, **filled).status_code

    def _card(self) -> str:
        return self._curation.save(A, a_creation(), propagate=False).card_id


def _filled(value: Any, names: dict[str, str]) -> Any:
    """What is sent, with the names of the cards that it is about."""
    if isinstance(value, dict):
        return {name: _filled(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, names) for each in value]
    return value.format(**names) if isinstance(value, str) and value in ("{card_id}", "{other}") else value


@pytest.fixture
def door(watched, tmp_path, key, other_key, vouched) -> Iterator[Door]:
    a_workspace(watched, WARD)
    curation = Curation(watched)
    a_session(watched.settings.sessions, clarified(1), status="open")
    for who, roles in PEOPLE.items() if not vouched else ():
        for workspace, role in roles.items():
            curation.give(workspace, who, role)
    keys = tmp_path / "keys.json"
    public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    keys.write_text(json.dumps({"keys": [{**public, "kid": "1", "use": "sig", "alg": "RS256"}]}))
    settings = watched.settings.model_copy(
        update={
            "jwt_issuer": ISSUER,
            "jwt_audience": AUDIENCE,
            "jwt_keys": str(keys),
            "jwt_roles_claim": "roles" if vouched else None,
            "web_requests_per_minute": 1_000_000,
        }
    )
    watched.settings = settings
    services = Services.of(watched, IssuedTokens(settings))
    object.__setattr__(services, "refusals", Rate(1_000_000))
    with TestClient(create_app(services), base_url=HOST, follow_redirects=False) as client:
        yield Door(client, curation, key, other_key, vouched=vouched)


def allowed(needed: str, who: str) -> bool:
    if needed in (ANYBODY, SIGNED_IN):
        return needed == ANYBODY or who in PEOPLE
    held = PEOPLE.get(who, {}).get(A)
    return held is not None and held.includes(Role(needed))


ANSWERED = {  # forms after which another page follows are answered with its address
    route: 303 if route.startswith("POST") and not route.endswith(("/review", "/correct", "/recall")) else 200
    for route in PAGES
} | dict.fromkeys(API_ROUTES, 200)


def answer(route: str, who: str) -> int:
    if allowed({**API_ROUTES, **PAGES}[route], who):
        return ANSWERED[route]
    if who in PEOPLE:
        return 403
    return 303 if route in PAGES and route.startswith("GET") else 401  # to where one signs in


@VOUCHED
@pytest.mark.parametrize("who", [*INVALID, *PEOPLE])
def test_the_interface_lets_in_whom_it_should(door, who):
    assert {route: door.by_token(route, who) for route in API_ROUTES} == {
        route: answer(route, who) for route in API_ROUTES
    }


@VOUCHED
@pytest.mark.parametrize("who", [*INVALID, *PEOPLE])
def test_pages_let_in_whom_they_should(door, who):
    assert {route: door.by_page(route, who) for route in PAGES} == {route: answer(route, who) for route in PAGES}


@pytest.mark.parametrize("vouched", [False])
def test_what_is_open_is_open_to_everybody(door):
    assert {door.by_token(route, "nobody") for route in OPEN if route != "POST /sign-in"} == {200}


@pytest.mark.parametrize("vouched", [False])
def test_a_cookie_does_not_open_the_interface_nor_a_token_pages(door):
    token = door.token("administrator of A")
    door.client.post("/sign-in", data={"token": token})
    assert {door.by_token(route, "nobody") for route in API_ROUTES} == {401}

    door.client.cookies.clear()
    bearer = {"Authorization": f"Bearer {token}"}
    for route in PAGES:
        method, path = route.split(" ")
        path = path.format(workspace=A, card_id="mem-0001", session_id="session-1")
        answer = door.client.request(method, path, headers=bearer)
        assert answer.status_code == (303 if method == "GET" else 401), route
        assert answer.headers.get("location", "/sign-in?").startswith("/sign-in?")


def paths(routes: Any, seen: set[str]) -> set[str]:
    """Method and path of every route, however deep the routers."""
    for route in routes:
        if hasattr(route, "effective_candidates"):  # FastAPI's own, of a router that was included
            paths(route.effective_candidates(), seen)
        else:
            methods = getattr(route, "methods", None) or {"GET"}
            seen |= {f"{method} {route.path}" for method in methods if method != "HEAD"}
    return seen


@pytest.mark.parametrize("vouched", [False])
def test_no_address_is_missing_here(door):
    known = {route for route in {**API_ROUTES, **PAGES, **OPEN} if "/static/" not in route} | {"GET /static"}
    assert paths(door.client.app.routes, set()) == known
