"""What the web needs to know of a token: whose it is, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memory_pipeline.archive.grants import Principal
from memory_pipeline.errors import MemoryPipelineError


class InvalidToken(MemoryPipelineError):
    """There is no token, or it is not one of this authority, or not any more."""

    exit_code = 21


class IssuerUnavailable(MemoryPipelineError):
    """The issuer's keys cannot be read, so that no token can be told from a forged one."""

    exit_code = 22


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a token stands for.

    Attributes:
        principal: who it is.
        until: when the token expires; None when it does not.
    """

    principal: Principal
    until: datetime | None = None


class Authority(Protocol):
    """Tells whose a token is."""

    def identify(self, token: str) -> Identity:
        """Whom a token stands for.

        Raises:
            InvalidToken: nobody; the message does not say which part of it was wrong beyond what its holder knows.
            IssuerUnavailable: it cannot be told now.
        """
