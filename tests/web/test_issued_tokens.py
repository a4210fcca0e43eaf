"""The tokens of an issuer: whom they stand for, and that no other ones stand for anybody."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import UTC, datetime

import jwt
import pytest
from starlette.testclient import TestClient

from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.web import create_app
from memory_pipeline.web.identity import Identity, InvalidToken, IssuedTokens, IssuerUnavailable, issued
from memory_pipeline.web.services import Services
from tests.curating import CLINIC
from tests.web.conftest import HOST
from tests.web.issuing import AUDIENCE, ISSUER, Key, issued_by, key_set, serving, settings_of


def forged(header: object, claims: object, signature: bytes = b"") -> str:
    """A token of any header and claims; bytes stand as they are."""
    parts = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in (header, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*parts, signature))


def test_a_token_stands_for_whom_it_names_until_it_expires(tmp_path):
    key, moment = Key(), int(time.time()) + 600

    found = issued_by(tmp_path, key).identify(key.token(exp=moment))

    assert found == Identity(Principal("anna"), datetime.fromtimestamp(moment, UTC))


def test_another_claim_may_name_the_principal(tmp_path):
    key = Key()
    tokens = issued_by(tmp_path, key, jwt_principal_claim="email")

    assert tokens.identify(key.token(email="anna@clinic.example")).principal == Principal("anna@clinic.example")
    with pytest.raises(InvalidToken):
        tokens.identify(key.token())


FAR = 2**32  # seconds since 1970: in the next century


@pytest.mark.parametrize("claim", ["exp", "iss", "aud", "sub"])
def test_a_token_without_one_of_its_claims_is_refused(tmp_path, claim):
    key = Key()

    with pytest.raises(InvalidToken):
        issued_by(tmp_path, key).identify(key.token(without=claim))


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"nbf": FAR},
        {"iat": FAR},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"exp": None},
        {"exp": [1]},
    ],
    ids=str,
)
def test_a_token_of_another_or_for_another_or_for_no_moment_is_refused(tmp_path, claims):
    key = Key()

    with pytest.raises(InvalidToken):
        issued_by(tmp_path, key).identify(key.token(**claims))


@pytest.mark.parametrize("exp", [10**11, 10**20, 1e300, "99999999999", str(10**30)], ids=str)
def test_a_moment_that_no_calendar_has_is_as_late_as_there_is_one(tmp_path, exp):
    key = Key()

    until = issued_by(tmp_path, key).identify(key.token(exp=exp)).until

    assert until is not None
    assert until.year > 3000


@pytest.mark.parametrize(
    "name", [None, 7, True, ["anna"], {"anna": 1}, "", "   ", "x" * 256, "an\x00na", "an\ud800na"], ids=ascii
)
@pytest.mark.parametrize("claim", ["sub", "name"])
def test_a_token_that_names_nobody_is_refused(tmp_path, claim, name):
    key = Key()

    with pytest.raises(InvalidToken):
        issued_by(tmp_path, key, jwt_principal_claim=claim).identify(key.token(**{claim: name}))


def test_clocks_may_differ_by_seconds_and_not_by_a_minute(tmp_path):
    key = Key()
    tokens = issued_by(tmp_path, key)

    assert tokens.identify(key.token(exp=int(time.time()) - 3)).principal.name == "anna"
    assert tokens.identify(key.token(nbf=int(time.time()) + 3)).principal.name == "anna"
    with pytest.raises(InvalidToken, match="expired"):
        tokens.identify(key.token(exp=int(time.time()) - 60))


@pytest.mark.parametrize(
    "said",
    [None, 7, "administrator", ["clinic"], {"clinic": "owner"}, {"clinic": ["administrator"]}, {"clinic": {"a": 1}},
     {"clinic": None}, {"clinic": "Administrator"}, {"clinic": True}, {"clinic": "reader\x00"}],
    ids=str,
)  # fmt: skip  # one group a line
def test_roles_that_are_none_are_none(tmp_path, said):
    key = Key()

    found = issued_by(tmp_path, key, jwt_roles_claim="roles").identify(key.token(roles=said))

    assert found.principal == Principal("anna", {})


def test_known_roles_count_beside_others(tmp_path):
    key = Key()
    said = {"clinic": "reviewer", "ward": "king", "x\x00y": "reader"}

    found = issued_by(tmp_path, key, jwt_roles_claim="roles").identify(key.token(roles=said))

    assert found.principal.roles == {"clinic": Role.REVIEWER, "x\x00y": Role.READER}
    assert issued_by(tmp_path, key, jwt_roles_claim="roles").identify(key.token()).principal.roles == {}
    assert issued_by(tmp_path, key).identify(key.token(roles=said)).principal.roles is None


def test_a_token_that_nobody_signed_or_another_one_is_refused(tmp_path):
    key = Key()
    tokens = issued_by(tmp_path, key)
    header, claims, signature = key.token().split(".")
    others = json.dumps({"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": 2**33}).encode()
    mine = {"alg": "ES256", "kid": "one", "jwk": key.public, "jku": "https://evil.example"}

    for token in (
        jwt.encode(json.loads(others), None, algorithm="none", headers={"kid": "one"}),
        forged({"alg": "None", "kid": "one"}, others),
        forged(mine, others),
        f"{header}.{claims}.",
        f"{header}.{claims}",
        f"{header}.{base64.urlsafe_b64encode(others).decode().rstrip('=')}.{signature}",
        Key().token(),
    ):
        with pytest.raises(InvalidToken):
            tokens.identify(token)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_secret_to_sign_with(tmp_path, algorithm):
    key = Key()
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": 2**33}
    hashed = algorithm.replace("HS", "sha")
    unsigned = forged({"alg": algorithm, "kid": "one"}, claims).removesuffix(".")

    for secret in (key.pem, json.dumps(key.public).encode()):
        signature = base64.urlsafe_b64encode(hmac.digest(secret, unsigned.encode(), hashed)).rstrip(b"=").decode()
        with pytest.raises(InvalidToken):
            issued_by(tmp_path, key).identify(f"{unsigned}.{signature}")


def test_a_shared_secret_among_the_keys_verifies_nothing(tmp_path):
    secret = b"a secret of thirty-two characters"
    listed = Key()
    listed.public = {"kty": "oct", "kid": "one", "k": base64.urlsafe_b64encode(secret).decode().rstrip("=")}
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": 2**33}

    with pytest.raises(InvalidToken):
        issued_by(tmp_path, listed).identify(jwt.encode(claims, secret, algorithm="HS256", headers={"kid": "one"}))


@pytest.mark.parametrize("by", ["file", "address"])
def test_a_key_for_encryption_signs_nothing(tmp_path, by):
    signing, encrypting = Key("one"), Key("two", use="enc")
    with serving(signing, encrypting) as keys:
        tokens = (
            issued_by(tmp_path, signing, encrypting)
            if by == "file"
            else IssuedTokens(settings_of(tmp_path, keys.address))
        )

        assert tokens.identify(signing.token()).principal.name == "anna"
        with pytest.raises(InvalidToken):
            tokens.identify(encrypting.token())


@pytest.mark.parametrize(
    "token",
    [
        "", ".", "..", "a.b.c", "€", "\ud800", "x" * 1_000_000, "a.b.c.d.e",
        forged([], {}), forged({}, {}), forged({"alg": ["ES256"], "kid": "one"}, {}),
        forged({"alg": "ES256", "kid": 7}, {}), forged({"alg": "ES256", "kid": "one"}, []),
        forged({"alg": "ES256", "kid": "one", "crit": ["x"]}, {}), forged(b"\xff", b"\xff"),
        forged(b"[" * 200_000, {}), forged({"alg": "ES256", "kid": "one"}, b'{"a":' * 200_000),
        forged(b'{"alg": ' + b"9" * 5_000 + b"}", {}),
    ],
    ids=lambda token: ascii(token[:20]),
)  # fmt: skip  # one group a line
@pytest.mark.parametrize("by", ["file", "address"])
def test_what_is_no_token_is_refused(tmp_path, by, token):
    with serving(Key()) as keys:
        tokens = issued_by(tmp_path, Key()) if by == "file" else IssuedTokens(settings_of(tmp_path, keys.address))

        with pytest.raises(InvalidToken):
            tokens.identify(token)


@pytest.mark.parametrize("written", ["", "{}", "[]", "null", '{"keys": []}', '{"keys": 7}', "[" * 100_000, "\ufeff{"])
def test_a_file_that_holds_no_keys_is_refused_at_the_start(tmp_path, written):
    file = tmp_path / "keys.json"
    file.write_text(written)

    with pytest.raises(InvalidSettings, match="no readable JWK set"):
        IssuedTokens(settings_of(tmp_path, str(file)))


def test_a_file_of_several_keys_needs_tokens_that_name_theirs(tmp_path):
    one, two = Key("one"), Key("two")
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "exp": 2**33}
    nameless = jwt.encode(claims, one.private, algorithm="ES256")

    assert issued_by(tmp_path, one).identify(nameless).principal.name == "anna"
    with pytest.raises(InvalidToken):
        issued_by(tmp_path, one, two).identify(nameless)


class TestAnIssuerAtAnAddress:
    def test_a_new_key_is_fetched_and_known_ones_are_not_fetched_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr(issued, "_PAUSE", 0.0)
        old, new = Key("old"), Key("new")
        with serving(old) as keys:
            tokens = IssuedTokens(settings_of(tmp_path, keys.address))
            tokens.identify(old.token())
            keys.body = key_set(old, new)

            assert tokens.identify(new.token()).principal.name == "anna"
            assert keys.asked == 2
            for _ in range(5):
                tokens.identify(old.token())
            assert keys.asked == 2

    def test_a_key_that_was_withdrawn_is_none_once_the_kept_ones_are_too_old(self, tmp_path, monkeypatch):
        monkeypatch.setattr(issued, "_KEPT", 0.01)
        old, new = Key("old"), Key("new")
        with serving(old) as keys:
            tokens = IssuedTokens(settings_of(tmp_path, keys.address))
            tokens.identify(old.token())
            keys.body = key_set(new)
            time.sleep(0.02)

            with pytest.raises(InvalidToken):
                tokens.identify(old.token())

    def test_tokens_of_made_up_keys_do_not_have_the_issuer_asked_each_time(self, tmp_path):
        key = Key()
        with serving(key) as keys:
            tokens = IssuedTokens(settings_of(tmp_path, keys.address))
            for number in range(20):
                with pytest.raises(InvalidToken):
                    tokens.identify(key.token(kid=f"made up {number}"))

            assert keys.asked == 1
            assert tokens.identify(key.token()).principal.name == "anna"

    @pytest.mark.parametrize(
        ("status", "body"),
        [(500, ""), (302, ""), (404, "{}"), (200, "<h1>Maintenance</h1>"), (200, "[]"), (200, "{}"),
         (200, '{"keys": []}'), (200, '{"keys": [{"kty": "RSA", "n": 5, "e": []}]}'), (200, "[" * 100_000)],
    )  # fmt: skip  # one group a line
    def test_whatever_it_answers_that_is_no_key_set_does_not_make_a_token_invalid(self, tmp_path, status, body):
        key = Key()
        with serving(key) as keys:
            keys.status, keys.body = status, body

            with pytest.raises(IssuerUnavailable):
                IssuedTokens(settings_of(tmp_path, keys.address)).identify(key.token())

    def test_known_keys_outlast_an_issuer_that_goes_away_for_a_while(self, tmp_path, monkeypatch):
        monkeypatch.setattr(issued, "_PAUSE", 0.0)
        key, new = Key(), Key("new")
        with serving(key) as keys:
            tokens = IssuedTokens(settings_of(tmp_path, keys.address))
            tokens.identify(key.token())
            keys.away()

            with pytest.raises(IssuerUnavailable):
                tokens.identify(new.token())
            assert tokens.identify(key.token()).principal.name == "anna"

    def test_while_it_is_away_nobody_waits_for_it_time_and_again(self, tmp_path):
        key = Key()
        with serving(key) as keys:
            keys.status = 503
            tokens = IssuedTokens(settings_of(tmp_path, keys.address))
            for _ in range(10):
                with pytest.raises(IssuerUnavailable):
                    tokens.identify(key.token())

            assert keys.asked == 1

    def test_programs_and_people_are_told_that_it_is_away_and_not_that_their_token_is_wrong(self, tmp_path, watched):
        key = Key()
        with serving(key) as keys:
            keys.status = 503
            services = Services.of(watched, IssuedTokens(settings_of(tmp_path, keys.address)))
            with TestClient(create_app(services), base_url=HOST, follow_redirects=False) as client:
                bearer = {"Authorization": f"Bearer {key.token()}"}
                program = client.get(f"/api/v1/workspaces/{CLINIC}/cards", headers=bearer)
                person = client.post("/sign-in", data={"token": key.token()})

        assert (program.status_code, program.json()["error"]["kind"]) == (503, "IssuerUnavailable")
        assert program.headers["Retry-After"]
        assert person.status_code == 503
        assert "issuer cannot be read now" in person.text
        assert "set-cookie" not in person.headers


def test_keys_are_not_taken_from_an_address_that_anybody_on_the_way_could_answer_for(tmp_path):
    with pytest.raises(InvalidSettings, match="https"):
        settings_of(tmp_path, "http://login.example/keys")
