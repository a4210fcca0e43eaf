"""Keeps the embedded PostgreSQL running for whoever stays up over it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_pipeline.errors import ArchiveUnavailable

if TYPE_CHECKING:
    from memory_pipeline.embedded import EmbeddedPostgres

STARTS = 3  # of a server that does not stay up; each tries for long after a crash
POLL = 0.2  # seconds between two looks
_STEADY_SECONDS = 60.0


@dataclass
class Watchdog:
    """Starts the embedded server again whenever it is gone, until starting it turns out to be of no use.

    Attributes:
        server: which.
        tell: is told what happened, in one line.
    """

    server: EmbeddedPostgres
    tell: Callable[[str], object]
    starts: int = field(default=0, init=False)
    latest: float = field(default=0.0, init=False)

    def look(self) -> None:
        """Start the server if it is gone.

        Raises:
            ArchiveUnavailable: it does not start, or ends again and again soon after.
        """
        if self.server.runs():
            return
        if time.monotonic() - self.latest > _STEADY_SECONDS:
            self.starts = 0
        self.starts += 1
        if self.starts > STARTS:
            raise ArchiveUnavailable(
                f"PostgreSQL was started {STARTS} times and is gone again; its log is {self.server.log}"
            )
        try:
            self.server.start(create=False)
        except ArchiveUnavailable as error:
            if self.starts == STARTS:
                raise
            self.tell(f"warning: {error}; trying again")
        else:
            self.tell("PostgreSQL was gone; it runs again.")
        self.latest = time.monotonic()
