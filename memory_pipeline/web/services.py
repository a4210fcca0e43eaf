"""What every request is answered with: the library's services, and who may ask them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

from memory_pipeline.archive.grants import Principal, Role, granted, role_in
from memory_pipeline.curation import Curation
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.recall import Recall
from memory_pipeline.reviewing import Reviewing
from memory_pipeline.web.identity import Authority, InvalidToken, IssuedTokens, LocalToken, Sessions
from memory_pipeline.web.metrics import Metrics, TimedRecall
from memory_pipeline.web.protection import Rate
from memory_pipeline.web.standing import Standing

if TYPE_CHECKING:
    from fastapi import Request

    from memory_pipeline.runtime import Runtime
    from memory_pipeline.web.identity import Identity

RETRIED_AT_ONCE = 200
"""Items that one request completes: some ten seconds of a model that embeds twenty texts a second."""
PROJECTOR_WAIT = 2.0
"""Seconds for which it waits for another process, which takes the items along."""

_REFUSALS_PER_MINUTE = 30  # of one address: whoever guesses tokens gives another one each time
_SECRET_BYTES = 32


@dataclass(frozen=True)
class Services:
    """The services of one process.

    Attributes:
        runtime: archive, index and embedder, kept open for reading.
        authority: tells whose a token is.
        sessions: the cookies of pages.
        refusals: counts the tokens that stood for nobody, by address.
    """

    runtime: Runtime
    authority: Authority
    sessions: Sessions
    refusals: Rate = field(default_factory=lambda: Rate(_REFUSALS_PER_MINUTE))

    @classmethod
    def of(cls, runtime: Runtime, authority: Authority | None = None) -> Self:
        """The services over a runtime; by default tokens are those that the settings say.

        Raises:
            InvalidSettings: an archive of somebody's own needs an issuer of tokens.
        """
        authority = authority or authority_of(runtime)
        given, local = runtime.settings.web_secret, getattr(authority, "secret", None)
        secret = given.get_secret_value().encode() if given else local or secrets.token_bytes(_SECRET_BYTES)
        return cls(runtime, authority, Sessions(secret, hours=runtime.settings.web_session_hours))

    @cached_property
    def standing(self) -> Standing:
        """Whether what the process needs answers."""
        return Standing(self.runtime)

    @cached_property
    def metrics(self) -> Metrics:
        """The figures of this process; the application asks for them once, before threads do."""
        return Metrics(self.standing)

    def identify(self, token: str, address: str) -> Identity:
        """Whom a token stands for, that came from an address.

        Raises:
            InvalidToken, IssuerUnavailable: see `Authority.identify`.
            TooManyRequests: of this address too many tokens stood for nobody.
        """
        try:
            return self.authority.identify(token)
        except InvalidToken:
            self.refusals.count(address)
            raise

    def curation(self, principal: Principal) -> Curation:
        """The administration of workspaces, of which here looking takes an administrator too."""
        return Curation(self.runtime, principal, reading=Role.ADMINISTRATOR)

    def reviewing(self, principal: Principal) -> Reviewing:
        """The review of sessions, of which here looking takes a reviewer too."""
        return Reviewing(self.runtime, principal, reading=Role.REVIEWER)

    def role(self, principal: Principal, workspace: str) -> Role | None:
        """What a principal may do in a workspace; None for nothing.

        Raises:
            UnknownWorkspace: the archive has no such workspace.
        """
        with self.runtime.database.transaction(workspace) as tx:
            return role_in(tx, principal)

    def recall(self, principal: Principal, workspace: str) -> Recall:
        """The recall of a workspace, for who may read it.

        Raises:
            UnknownWorkspace, NotPermitted: they may not.
        """
        with granted(self.runtime.database, workspace, principal, Role.READER):
            return TimedRecall(self.runtime, self.metrics)


def services(request: Request) -> Services:
    """The services that a request is answered with."""
    found: Services = request.app.state.services
    return found


def authority_of(runtime: Runtime) -> Authority:
    """Who says whose a token is: the issuer that the settings name, else the token of the home.

    Raises:
        InvalidSettings: neither is there, since the archive is a server of somebody's own.
    """
    settings = runtime.settings
    if settings.jwt_issuer:
        return IssuedTokens(settings)
    if not settings.embedded_archive:
        raise InvalidSettings(
            "set MEMORY_JWT_ISSUER, MEMORY_JWT_AUDIENCE and MEMORY_JWT_KEYS: with an archive of your own, tokens are "
            "those of an issuer"
        )
    return LocalToken.of_home(settings)
