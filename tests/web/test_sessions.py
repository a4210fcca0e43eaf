"""Signing in and out, the cookie between, and that no other site acts in a visitor's name."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.cookies import SimpleCookie
from random import Random

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.web import create_app
from memory_pipeline.web.identity import Identity, InvalidToken, Sessions
from memory_pipeline.web.identity.sessions import COOKIE
from memory_pipeline.web.pages.notices import Notice, read_notice, with_notice
from memory_pipeline.web.services import Services
from tests.curating import CLINIC, a_creation
from tests.web.conftest import HOST, TOKEN, csrf
from tests.web.issuing import Key, issued_by
from tests.web.serving import Issuer, served
from tests.web.walking import filled, forms

SECRET = b"a secret of thirty-two characters"
ANNA = Identity(Principal("anna"))


def signing_in(client: TestClient, **others: str):
    return client.post("/sign-in", data={"token": TOKEN, **others})


def given(answer, name: str = COOKIE):
    """The cookie that an answer gives."""
    return SimpleCookie(answer.headers["set-cookie"])[name]


class TestACookie:
    def test_says_who_signed_in_with_which_roles_and_until_when(self):
        sessions = Sessions(SECRET, hours=8)
        who = Identity(Principal("anna", {"clinic": Role.REVIEWER}), datetime.now(UTC) + timedelta(hours=1))

        cookie, until = sessions.begin(who)

        assert until == who.until
        assert sessions.read(cookie).principal == who.principal
        assert sessions.read(cookie).until == until

    def test_of_a_token_that_holds_for_longer_holds_for_its_own_time(self):
        _, until = Sessions(SECRET, hours=8).begin(Identity(Principal("anna"), datetime.now(UTC) + timedelta(days=9)))
        assert timedelta(hours=7) < until - datetime.now(UTC) <= timedelta(hours=8)

    def test_holds_no_more_when_its_time_is_over(self):
        sessions = Sessions(SECRET, hours=1e-9)
        cookie, _ = sessions.begin(ANNA)
        time.sleep(0.01)
        assert sessions.read(cookie) is None

    def test_is_not_given_for_a_token_that_is_over(self):
        with pytest.raises(InvalidToken, match="expired"):
            Sessions(SECRET, hours=8).begin(Identity(Principal("anna"), datetime.now(UTC) - timedelta(seconds=1)))

    def test_of_which_anything_was_changed_holds_no_more(self):
        sessions = Sessions(SECRET, hours=8)
        cookie, _ = sessions.begin(ANNA)

        for place in range(len(cookie) - 1):  # the last character of a signature has bits that say nothing
            other = "A" if cookie[place] != "A" else "B"
            assert sessions.read(cookie[:place] + other + cookie[place + 1 :]) is None
        for other in ("", ".", cookie[:-2], f"{cookie}.x", f".{cookie}", cookie.split(".")[0], "é", "x" * 100_000):
            assert sessions.read(other) is None

    def test_of_another_secret_or_for_another_purpose_is_none(self):
        sessions = Sessions(SECRET, hours=8)
        cookie, _ = Sessions(SECRET[::-1], hours=8).begin(ANNA)
        notice = str(sessions.notices.dumps({"name": "anna", "roles": None, "until": 2**33}))

        assert sessions.read(cookie) is None
        assert sessions.read(notice) is None

    def test_that_browsers_would_drop_is_not_given(self):
        many = {f"workspace-{hash(str(n)):x}": Role.READER for n in range(1_000)}

        with pytest.raises(InvalidToken, match="1000 workspaces"):
            Sessions(SECRET, hours=8).begin(Identity(Principal("anna", many)))

    def test_with_as_many_roles_as_it_can_hold_fits_into_what_browsers_keep(self):
        held = {}
        with pytest.raises(InvalidToken):
            for number in range(10_000):
                held[f"workspace-{hash(str(number)):x}"] = Role.READER
                longest, _ = Sessions(SECRET, hours=8).begin(Identity(Principal("anna", held)))

        assert 3_800 < len(longest) + len(COOKIE) <= 4_096


class TestSigningIn:
    def test_gives_a_cookie_that_scripts_and_other_sites_do_not_reach(self, client):
        cookie = given(signing_in(client))

        assert cookie["httponly"]
        assert cookie["samesite"].lower() == "lax"
        assert cookie["path"] == "/"
        assert not cookie["domain"]  # no host beside ours gets it
        assert not cookie["secure"]  # or it would not come back over HTTP
        assert parsedate_to_datetime(cookie["expires"]) > datetime.now(UTC) + timedelta(hours=7)
        assert TOKEN not in cookie.value

    def test_over_https_gives_one_for_https_alone(self, app_services):
        with TestClient(
            create_app(app_services), base_url=HOST.replace("http", "https"), follow_redirects=False
        ) as client:
            assert given(signing_in(client))["secure"]

    def test_with_a_wrong_token_gives_none_and_does_not_show_it(self, client):
        answer = client.post("/sign-in", data={"token": "a wrong <b>token</b>"})

        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert "wrong" not in answer.text

    def test_with_more_roles_than_a_browser_keeps_says_so(self, watched, tmp_path):
        key = Key()
        roles = {f"workspace-{hash(str(number)):x}": "reader" for number in range(1_000)}
        services = Services.of(watched, issued_by(tmp_path, key, jwt_roles_claim="roles"))
        with TestClient(create_app(services), base_url=HOST, follow_redirects=False) as client:
            answer = client.post("/sign-in", data={"token": key.token(roles=roles)})

        assert answer.status_code == 401
        assert "more than a browser keeps" in answer.text
        assert "set-cookie" not in answer.headers

    @pytest.mark.parametrize(
        "to",
        ["//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "\t//evil.example",
         "/\n/evil.example", "/\r\nSet-Cookie: a=b", "https://evil.example", "http:evil.example", "javascript:alert(1)",
         "data:text/html,x", "evil.example", "", " /w/clinic", "/\x00/evil.example", "/\u2028/evil.example"],
        ids=ascii,
    )  # fmt: skip  # one group a line
    def test_leads_to_no_other_site(self, client, to):
        answer = signing_in(client, to=to)

        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        assert set(answer.headers.get_list("set-cookie")) == {answer.headers["set-cookie"]}
        assert 'name="to" value="/"' in client.get("/sign-in", params={"to": to}).text

    @pytest.mark.parametrize("to", [f"/w/{CLINIC}/cards?text=a%20b&size=25", "/"])
    def test_leads_to_the_page_that_was_asked_for(self, client, to):
        assert client.get(f"/w/{CLINIC}/cards").headers["location"].startswith("/sign-in?to=%2Fw%2Fclinic%2Fcards")
        assert signing_in(client, to=to).headers["location"] == to

    def test_out_takes_the_cookie_back(self, admin):
        answer = admin.post("/sign-out", data={"csrf": csrf(admin.get(f"/w/{CLINIC}/cards").text)})

        assert answer.headers["location"] == "/sign-in"
        assert given(answer).value == ""
        assert COOKIE not in admin.cookies
        assert admin.get(f"/w/{CLINIC}/cards").status_code == 303


def test_a_cookie_holds_with_the_process_after_the_next_start_and_not_with_another_token(admin, watched):
    kept = admin.cookies[COOKIE]

    for token, status in ((TOKEN, 200), ("another token", 303)):
        tokens = type(admin.app.state.services.authority)(token, watched.settings.acting_principal)
        with TestClient(create_app(Services.of(watched, tokens)), base_url=HOST, follow_redirects=False) as client:
            client.cookies.set(COOKIE, kept)
            assert client.get(f"/w/{CLINIC}/cards").status_code == status


def test_every_form_is_refused_without_what_only_our_pages_know(admin, curation):
    curation.save(CLINIC, a_creation(), propagate=False)
    mine = csrf(admin.get(f"/w/{CLINIC}/cards").text)
    others = admin.app.state.services.sessions.read(
        admin.app.state.services.sessions.begin(Identity(Principal("another")))[0]
    ).csrf

    for path in forms(admin.app):
        if path == "/sign-in":
            continue
        for wrong in ({}, {"csrf": ""}, {"csrf": mine[:-1]}, {"csrf": others}, {"csrf": "é\x00"}, {"CSRF": mine}):
            answer = admin.post(filled(path), data={"version": "1", "family": "concept", **wrong})
            assert answer.status_code == 403, (path, wrong)
        assert admin.post(filled(path), params={"csrf": mine}).status_code == 403, path
    assert curation.detail(CLINIC, "mem-0001").version == 1
    assert len(forms(admin.app)) >= 8


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:81", "http://127.0.0.1.evil.example", "http://localhost",
     "http://x@127.0.0.1:80", "", "http://[", "http://127.0.0.1\u00e9"],
)  # fmt: skip  # one group a line
def test_every_form_of_another_site_is_refused_signing_in_too(admin, curation, origin):
    curation.save(CLINIC, a_creation(), propagate=False)
    mine = csrf(admin.get(f"/w/{CLINIC}/cards").text)

    for path in forms(admin.app):
        sent = {"csrf": mine, "token": TOKEN, "version": "1", "family": "concept"}
        answer = admin.post(filled(path), data=sent, headers={"Origin": origin.encode("latin-1")})
        assert answer.status_code == 403, path
        assert "another site" in answer.text
        assert "set-cookie" not in answer.headers
    assert curation.detail(CLINIC, "mem-0001").version == 1


def test_a_form_of_our_own_pages_is_taken(admin):
    sent = {"csrf": csrf(admin.get(f"/w/{CLINIC}/cards").text)}

    assert admin.post(f"/w/{CLINIC}/pending", data=sent, headers={"Origin": HOST}).status_code == 303


def test_no_page_is_changed_by_only_looking_at_it(admin, curation):
    """What a link or a picture of another site asks for, with the visitor's cookie, changes nothing."""
    curation.save(CLINIC, a_creation(), propagate=False)
    mine = csrf(admin.get(f"/w/{CLINIC}/cards").text)

    for path in forms(admin.app):
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = admin.request(method, filled(path), params={"csrf": mine, "version": "1"})
            assert answer.status_code != 500, (method, path)
    assert curation.detail(CLINIC, "mem-0001").version == 1
    assert admin.cookies.get(COOKIE)


@pytest.mark.parametrize("letter", ["a", "è", "語", "\U0001f9e0", "\x01"])
def test_a_notice_fits_into_what_browsers_keep_whatever_it_says(client, letter):
    request = Request({"type": "http", "scheme": "http", "headers": [], "path": "/", "app": client.app})
    chance = Random(1)  # noqa: S311  # what repeats itself would be compressed
    varied = "".join(chr(ord(letter) + chance.randrange(1_000)) for _ in range(5_000))

    answer = with_notice(request, Response(), Notice("incomplete", "Not complete", varied, varied[::-1]))
    cookie = answer.headers["set-cookie"].split(";")[0]
    asking = Request({**request.scope, "headers": [(b"cookie", cookie.encode())]})

    assert len(cookie) <= 4_096
    said = read_notice(asking)
    assert varied.startswith(said.text)
    assert varied[::-1].startswith(said.reason)
    assert min(len(said.text), len(said.reason)) >= 100


def test_behind_a_proxy_that_does_tls_cookies_are_for_https_alone(settings, tmp_path):
    issuer = Issuer(tmp_path)
    with served(tmp_path / "log", issuer.environment(settings)) as web:
        sent = {"token": issuer.token("anna")}
        plain = httpx.post(f"{web.address}/sign-in", data=sent)
        behind = httpx.post(f"{web.address}/sign-in", data=sent, headers={"X-Forwarded-Proto": "https"})
        # What another name is told by is the Host that the proxy hands on, and nothing beside it.
        other = httpx.get(f"{web.address}/sign-in", headers={"X-Forwarded-Host": "evil.example"})

    assert not given(plain)["secure"]
    assert given(behind)["secure"]
    assert other.status_code == 200
    assert "evil" not in other.text
