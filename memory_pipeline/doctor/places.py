"""Checks of directories: the home, what has to be private in it, room, and the sessions root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from memory_pipeline.doctor.base import Finding, Installation, fault, ok, warning
from memory_pipeline.ledger.files import list_root, list_sessions
from memory_pipeline.ledger.records import LEDGER_FILE

_LITTLE_ROOM = 1 << 30  # bytes
_SHOWN = 5  # names


def home(installation: Installation) -> Iterator[Finding]:
    """Whether the home is there and can be written, and whether there is room."""
    settings = installation.settings
    place = settings.home
    if not place.is_dir():
        if settings.embedded_archive:
            yield fault(f"there is no {place}", "run `memory-pipeline migrate`, which makes it, or set MEMORY_HOME")
        else:
            yield ok(f"{place} is not there yet: whatever needs it makes it")
        return
    if not may(place, os.R_OK | os.W_OK | os.X_OK):
        yield fault(f"{place} cannot be written", "mend its permissions, or set MEMORY_HOME")
        return
    free = shutil.disk_usage(place).free
    if free < _LITTLE_ROOM:
        yield warning(f"{place} has {free >> 20} MiB left", "make room: archive and index stop when there is none")
    else:
        yield ok(f"{place}, {free / (1 << 30):.0f} GiB free")


def sessions(installation: Installation) -> Iterator[Finding]:
    """Whether session directories can be read, and ledgers be appended to."""
    root = installation.settings.sessions
    listing = list_root(root)
    found = [directory for name in listing.workspaces for directory in list_sessions(root, name)]
    if listing.refused:
        yield warning(
            f"{_some(listing.refused)} cannot be the name of a workspace, and is not read",
            "rename it: a-z, 0-9, - and _, at most 63 characters",
        )
    if unread := [each for each in found if not _readable(each)]:
        yield fault(f"{_some(_shown(unread))} cannot be read", "mend the permissions of these session directories")
    elif unwritten := [each for each in found if not _writable(each)]:
        yield warning(
            f"{_some(_shown(unwritten))} cannot be written: sessions are ingested, and cannot be reviewed",
            "let the user that memory-pipeline runs as write session directories and ledgers, if it is to review",
        )
    else:
        yield ok(f"{root}: {len(found)} session(s) of {len(listing.workspaces)} workspace(s)")


def may(path: Path, mode: int) -> bool:
    """Whether this process may do with a path what `os.access` calls so; as whoever it acts, where that can be told."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _readable(directory: Path) -> bool:
    ledger = directory / LEDGER_FILE
    return may(directory, os.R_OK | os.X_OK) and (may(ledger, os.R_OK) or not ledger.exists())


def _writable(directory: Path) -> bool:
    # The directory too: the ledger's lock and a manifest's successor are made in it.
    ledger = directory / LEDGER_FILE
    return may(directory, os.W_OK | os.X_OK) and (may(ledger, os.W_OK) or not ledger.exists())


def _shown(directories: list[Path]) -> list[str]:
    return [ascii(f"{each.parent.name}/{each.name}") for each in directories]


def _some(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
