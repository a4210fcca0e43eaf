"""Cookies that stand for a token on pages, and what keeps other sites from using them.

A cookie says who signed in, in which vouched roles, and until when; a signature keeps it so. Nothing is kept here: any
process with the same secret reads it. What the archive's grants say is asked anew with every request.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from itsdangerous import BadData, URLSafeSerializer, URLSafeTimedSerializer

from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.web.identity.authority import Identity, InvalidToken

COOKIE = "memory_session"
"""The name of the cookie that stands for a token."""

_PURPOSE = "memory-pipeline session"
_LONGEST = 4_000  # characters; browsers drop a cookie that has, with its name, more than 4,096
_SIGNER = {"digest_method": hashlib.sha256, "key_derivation": "hmac"}


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who is signed in.

    Attributes:
        principal: who.
        until: when they have to sign in anew.
        csrf: what every form of theirs has to carry, which no other site knows.
    """

    principal: Principal
    until: datetime
    csrf: str


class Sessions:
    """Makes and reads the cookies of pages.

    Args:
        secret: signs them; at least 32 bytes.
        hours: for how long a cookie holds, if its token does not expire before.
    """

    def __init__(self, secret: bytes, *, hours: float) -> None:
        self._secret = secret
        self._length = timedelta(hours=hours)
        self._serializer = URLSafeSerializer(secret, salt=_PURPOSE, signer_kwargs=_SIGNER)

    @property
    def notices(self) -> URLSafeTimedSerializer:
        """Signs what the next page is to say."""
        return URLSafeTimedSerializer(self._secret, salt="memory-pipeline notice", signer_kwargs=_SIGNER)

    def begin(self, identity: Identity) -> tuple[str, datetime]:
        """The cookie for whom a token stands, and until when it holds.

        Raises:
            InvalidToken: it holds no more, as one does that is taken only since clocks may differ; or its roles are so
                many that no browser would keep the cookie.
        """
        now = datetime.now(UTC)
        until = min(now + self._length, identity.until or datetime.max.replace(tzinfo=UTC))
        if until <= now:
            raise InvalidToken("the token has expired: get a new one from its issuer")
        who = identity.principal
        cookie = str(self._serializer.dumps({"name": who.name, "roles": who.roles, "until": until.timestamp()}))
        if len(cookie) > _LONGEST:
            raise InvalidToken(
                f"the token vouches for roles in {len(who.roles or ())} workspaces, more than a browser keeps: get one "
                "from its issuer for fewer"
            )
        return cookie, until

    def read(self, cookie: str) -> Visit | None:
        """Who signed in, None where the cookie is not of this secret or holds no more."""
        try:
            said: Mapping[str, Any] = self._serializer.loads(cookie)
        except BadData:
            return None
        until = datetime.fromtimestamp(said["until"], UTC)
        if until <= datetime.now(UTC):
            return None
        roles = said["roles"]
        vouched = None if roles is None else {workspace: Role(role) for workspace, role in roles.items()}
        return Visit(Principal(said["name"], vouched), until, self._csrf(said["name"]))

    def _csrf(self, name: str) -> str:
        # Of the principal and not of the cookie: what somebody typed before a cookie ran out can still be sent, from
        # the browser's history, once they have signed in again.
        return hmac.new(self._secret, f"form of {name}".encode(), "sha256").hexdigest()
