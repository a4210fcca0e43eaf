"""Tokens that somebody else issues: JSON Web Tokens (RFC 7519), verified with the issuer's public keys (RFC 7517)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import jwt
from jwt import PyJWKClient, PyJWKClientConnectionError, PyJWKSet

from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.errors import InvalidInput, InvalidSettings
from memory_pipeline.web.identity.authority import Identity, InvalidToken, IssuerUnavailable

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings

# Signatures by a private key that the issuer alone has. With a shared secret (HS…) whoever verifies could also sign,
# and a public key could be passed off as one.
_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_LEEWAY = 10  # seconds by which clocks may differ
_TIMEOUT = 5  # seconds for the issuer's keys
_KEPT = 300  # seconds; after that keys that were withdrawn are none any more
_PAUSE = 5.0  # seconds before the keys are asked for again: a token may name any key, and an issuer may not answer
_KEY_SET_LIMIT = 1_000_000  # bytes
# What is raised by whatever is no JWK set, or holds a key of an unheard-of form.
_UNREADABLE = (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError, jwt.PyJWTError)


class _Keys(Protocol):
    def get_signing_key_from_jwt(self, token: str) -> jwt.PyJWK: ...
    def get_signing_keys(self) -> list[jwt.PyJWK]: ...


class IssuedTokens:
    """Verifies the tokens of one issuer, for one audience.

    Args:
        settings: whose, for whom, and which claims name the principal and the roles.

    Raises:
        InvalidSettings: the keys are a file that holds none.
    """

    def __init__(self, settings: Settings) -> None:
        self._issuer, self._audience = settings.jwt_issuer, settings.jwt_audience
        self._name, self._roles = settings.jwt_principal_claim, settings.jwt_roles_claim
        self._keys = _keys(settings.jwt_keys or "")

    def identify(self, token: str) -> Identity:
        """See `Authority.identify`."""
        claims = self._verified(token)
        name = claims.get(self._name)
        try:
            principal = Principal.of(Principal(name if isinstance(name, str) else "", self._vouched(claims)))
        except InvalidInput:
            raise InvalidToken(f"the token names nobody in its claim {self._name!r}") from None
        return Identity(principal, _moment(claims["exp"]))

    def count_keys(self) -> int:
        """How many keys for signatures the issuer has now.

        Raises:
            IssuerUnavailable: it cannot be told now.
            InvalidSettings: it has none.
        """
        try:
            return len(self._keys.get_signing_keys())
        except PyJWKClientConnectionError:
            raise IssuerUnavailable("the keys of the tokens' issuer cannot be read: see MEMORY_JWT_KEYS") from None
        except jwt.PyJWTError:
            raise InvalidSettings("MEMORY_JWT_KEYS: it names a JWK set without a key for signatures") from None

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token),
                algorithms=_ALGORITHMS,
                issuer=self._issuer,
                audience=self._audience,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", self._name]},
            )
        except PyJWKClientConnectionError:
            raise IssuerUnavailable("the keys of the tokens' issuer cannot be read now: try again later") from None
        except jwt.ExpiredSignatureError:
            raise InvalidToken("the token has expired: get a new one from its issuer") from None
        except (jwt.PyJWTError, ValueError, OverflowError, RecursionError):  # whose messages may quote it
            raise InvalidToken("the token is not one of this service: get one from its issuer") from None

    def _vouched(self, claims: Mapping[str, Any]) -> dict[str, Role] | None:
        """Workspace → role, as far as the token says roles that are known; None where the archive's grants say."""
        if self._roles is None:
            return None
        said = claims.get(self._roles)
        pairs = said.items() if isinstance(said, dict) else ()
        return {workspace: Role(role) for workspace, role in pairs if isinstance(role, str) and role in set(Role)}


def _moment(exp: Any) -> datetime:
    """When a token expires; PyJWT takes digits for a number, and years that no calendar has."""
    try:
        return datetime.fromtimestamp(int(exp), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


class _KeyFile:
    """A JWK set in a file, read at the start: a new key takes a new start."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._set = PyJWKSet.from_json(file.read(_KEY_SET_LIMIT).decode())
        except _UNREADABLE:
            raise InvalidSettings(f"MEMORY_JWT_KEYS: {path} is no readable JWK set") from None

    def get_signing_keys(self) -> list[jwt.PyJWK]:
        if not (keys := [key for key in self._set.keys if _signs(key)]):
            raise jwt.InvalidKeyError("no key for signatures")
        return keys

    def get_signing_key_from_jwt(self, token: str) -> jwt.PyJWK:
        wanted = jwt.get_unverified_header(token).get("kid")
        found = [key for key in self._set.keys if _signs(key) and (wanted is None or key.key_id == wanted)]
        if len(found) != 1:  # a token without the name of its key is one of the only key, or of none
            raise jwt.InvalidKeyError("no such key")
        return found[0]


class _KeyAddress(PyJWKClient):
    """A JWK set that the issuer serves. Tokens of keys that are known already never wait for it."""

    def __init__(self, address: str) -> None:
        self._failed = -_PAUSE
        super().__init__(address, timeout=_TIMEOUT, lifespan=_KEPT, cooldown_duration=_PAUSE)

    def get_signing_key(self, kid: str) -> jwt.PyJWK:
        """The key of a name, of those that are kept, or else that the issuer has now."""
        kept = self.jwk_set_cache.get() if self.jwk_set_cache else None
        known = self.match_kid([key for key in kept.keys if _signs(key)], kid) if kept else None
        return known or super().get_signing_key(kid)

    def fetch_data(self) -> Any:
        """What the issuer has now; whatever it answers that is no JWK set says nothing of any token."""
        now = time.monotonic()
        if now - self._failed < _PAUSE:
            raise PyJWKClientConnectionError("it could not be read a moment ago")
        try:
            return super().fetch_data()
        except _UNREADABLE as error:
            self._failed = time.monotonic()
            raise PyJWKClientConnectionError("it cannot be read") from error


def _signs(key: jwt.PyJWK) -> bool:
    """Whether a key is for signatures, as far as it says what it is for."""
    return key.public_key_use in ("sig", None)


def _keys(place: str) -> _Keys:
    return _KeyAddress(place) if place.startswith(("https://", "http://")) else _KeyFile(Path(place))
