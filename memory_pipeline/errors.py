"""The errors that the library raises; the edges translate them, nothing else does.

Every message says what is wrong and what to do about it, and never carries a URL or a secret.
`exit_code` is what the command line ends with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

CREDENTIALS = re.compile(r"//[^/\s]*@")
"""What stands before the host of a URL."""
MASKED = "//***@"
"""What is said in its place."""

_SHOWN = 80  # characters of a value in a message


class MemoryPipelineError(Exception):
    """Base of every error that a caller is expected to handle. What stands before a URL's host is masked."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(CREDENTIALS.sub(MASKED, message))

    def as_json(self) -> dict[str, Any]:
        """The error for programs: its `kind` is the name of its class."""
        return {"kind": type(self).__name__, "message": str(self)}


class InvalidSettings(MemoryPipelineError):
    """One or more settings cannot be used; the message lists them all."""

    exit_code = 3


class InvalidInput(MemoryPipelineError):
    """An argument or a file cannot be used: an empty question, a limit below one, an export that is cut off."""

    exit_code = 4


class WorkspaceInUse(MemoryPipelineError):
    """The workspace cannot be removed: its session directories would bring its content back."""

    exit_code = 16


class SessionsUnavailable(MemoryPipelineError):
    """The sessions root does not exist, cannot be read, or holds nothing."""

    exit_code = 5


class UnknownWorkspace(MemoryPipelineError):
    """The workspace is missing, malformed, or not in the archive."""

    exit_code = 6


class NotPermitted(MemoryPipelineError):
    """The principal has no grant for this in the workspace, or nobody would be left to administrate it."""

    exit_code = 7


class CardNotFound(MemoryPipelineError):
    """No card of that id in this workspace."""

    exit_code = 8


class InvalidEdit(MemoryPipelineError):
    """An edit is refused; `faults` says why, field by field."""

    exit_code = 9

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = dict(faults)
        super().__init__("; ".join(f"{field}: {fault}" for field, fault in self.faults.items()))

    def as_json(self) -> dict[str, Any]:
        """The error with its `faults`, field by field."""
        return {**super().as_json(), "faults": self.faults}


class VersionConflict(MemoryPipelineError):
    """The card changed since the version that the edit was based on.

    Attributes:
        card_id: which card.
        based_on: the version that the edit names.
        version: the card's version now.
        updated_by: who changed it last.
        updated_at: when.
        now: what the edit would have met unseen, as JSON-ready values: of the fields that it wanted to replace, those
            that have other values now, whoever gave them; of one that replaces none, all that the card has.
        links: likewise of the links that it named, or else of all that the card has: objects with `other`, `meaning`
            (None: there is none) and `outgoing`.
    """

    exit_code = 10

    def __init__(
        self,
        card_id: str,
        *,
        based_on: int,
        version: int,
        updated_by: str,
        updated_at: datetime,
        now: Mapping[str, object],
        links: Sequence[Mapping[str, object]] = (),
    ) -> None:
        self.card_id, self.based_on, self.version = card_id, based_on, version
        self.updated_by, self.updated_at = updated_by, updated_at
        self.now, self.links = dict(now), [dict(link) for link in links]
        super().__init__(
            f"{card_id} is at version {version}, changed by {updated_by} at "
            f"{updated_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC; the edit was based on version {based_on}; "
            f"{_said(self.now, self.links)}look at the card and make the edit anew"
        )

    def as_json(self) -> dict[str, Any]:
        """The error with all its attributes."""
        names = ("card_id", "based_on", "version", "updated_by", "updated_at", "now", "links")
        return {**super().as_json(), **{name: getattr(self, name) for name in names}}


def _shown(value: object) -> str:
    """A JSON-ready value as it can stand in one line: a list by its items, an object by what its fields hold."""
    items = value if isinstance(value, list) else [value]
    named = [".".join(filter(None, item.values())) if isinstance(item, dict) else str(item) for item in items]
    return ", ".join(named)[:_SHOWN]


def _said(now: Mapping[str, object], links: Sequence[Mapping[str, object]]) -> str:
    """What a card says now, of some fields and links; what it said before is not kept."""
    fields = [f"{name} {_shown(value)!r}" for name, value in now.items()]
    said = [f"says {', '.join(fields)}"] if fields else []
    return f"the card {', '.join([*said, *map(_linked, links)])}; " if said or links else ""


def _linked(link: Mapping[str, object]) -> str:
    if link["meaning"] is None:
        return f"has no link {'to' if link['outgoing'] else 'from'} {link['other']}"
    return f"{'links to' if link['outgoing'] else 'is linked from'} {link['other']} {_shown(link['meaning'])!r}"


class ArchiveUnavailable(MemoryPipelineError):
    """PostgreSQL cannot be reached, or the home holds no archive."""

    exit_code = 11


class SchemaOutOfDate(MemoryPipelineError):
    """The archive's schema is missing or of another revision than this library expects."""

    exit_code = 12


class IndexUnavailable(MemoryPipelineError):
    """Qdrant cannot be reached, or an embedded shard stayed locked. The outcome of a write is unknown."""

    exit_code = 13


class IndexIncompatible(MemoryPipelineError):
    """Vectors do not fit a collection, or another version of this library made the index."""

    exit_code = 14


class EmbedderUnavailable(MemoryPipelineError):
    """The embedding model cannot be loaded or did not answer."""

    exit_code = 15


class CatalogUnavailable(MemoryPipelineError):
    """A database that cards depend on cannot be reached or looked at."""

    exit_code = 17


class SessionNotFound(MemoryPipelineError):
    """No session of that id in this workspace, or one that cannot be used as it stands."""

    exit_code = 18


class InvalidReview(MemoryPipelineError):
    """A review is refused, and nothing was recorded; `faults` says why, by the seq, phase or card that was named."""

    exit_code = 19

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = dict(faults)
        said = "; ".join(f"{named}: {fault}" for named, fault in self.faults.items())
        super().__init__(f"{said} (nothing was recorded)")

    def as_json(self) -> dict[str, Any]:
        """The error with its `faults`, by the seq or card that was named."""
        return {**super().as_json(), "faults": self.faults}


class ReviewOvertaken(MemoryPipelineError):
    """A session has gone on since somebody looked at it, and nothing was recorded."""

    exit_code = 23


class LedgerUnavailable(MemoryPipelineError):
    """A ledger or a manifest cannot be read or written; the message says what stands."""

    exit_code = 20
