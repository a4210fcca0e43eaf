"""Finds session directories and reads their files, within limits, and tells when files have changed."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from memory_pipeline.cards import is_workspace_name, workspace_name
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.ledger.fields import QuarantineError
from memory_pipeline.ledger.records import LEDGER_FILE, MANIFEST_FILE, SQL_FILE, FaultKind, RootListing

_RACY_NS = 2_000_000_000

# Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def list_root(root: Path) -> RootListing:
    """The workspaces under a sessions root.

    Raises:
        SessionsUnavailable: the root does not exist, is no directory, or cannot be read. An empty one is fine.
    """
    names = _directories(root, "set MEMORY_SESSIONS_ROOT to the directory that holds <workspace>/<session>/")
    return RootListing(
        workspaces=tuple(name for name in names if is_workspace_name(name)),
        refused=tuple(_shown_name(name) for name in names if not is_workspace_name(name)),
    )


def list_sessions(root: Path, workspace: str) -> tuple[Path, ...]:
    """The session directories of a workspace by name, without hidden ones.

    Raises:
        UnknownWorkspace: no workspace may be called so.
        SessionsUnavailable: the workspace's directory is missing or cannot be read, which is not to have no sessions.
    """
    return tuple(map(Path, sessions_by_id(root, workspace).values()))


def sessions_by_id(root: Path, workspace: str) -> dict[str, str]:
    """The paths of a workspace's session directories by session, in the order of their names; see `list_sessions`.

    They are plain texts, since paths of ten thousand sessions take longer to make than to look at.
    """
    home = root / workspace_name(workspace)
    names = _directories(home, "make it readable, or check MEMORY_SESSIONS_ROOT")
    return {_shown_name(name): f"{home}/{name}" for name in names if not name.startswith(".")}


def session_id(directory: Path) -> str:
    """The id of the session in a directory: its name, with escapes for bytes that are no UTF-8."""
    return _shown_name(directory.name)


def signature(directory: str | Path) -> str | None:
    """A cheap fingerprint of a session's three files: equal as long as none of them needs reading again.

    None when it cannot be trusted: a file changed less than two seconds ago may change once more within the same tick
    of the file system's clock, unnoticed. This is what git calls racily clean.
    """
    newest_trusted = time.time_ns() - _RACY_NS
    parts = []
    for name in (MANIFEST_FILE, LEDGER_FILE, SQL_FILE):
        try:
            found = os.stat(f"{directory}/{name}")  # noqa: PTH116  # thirty thousand of these on each look
        except FileNotFoundError:
            parts.append("-")
            continue
        except OSError:
            return None
        # By either time: one that was set to the future would have the session read again and again until it has come.
        if min(found.st_mtime_ns, found.st_ctime_ns) > newest_trusted:
            return None
        # The change time sees an edit that put the modification time back.
        parts.append(f"{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_ino}")
    return " ".join(parts)


def read_bytes(directory: Path, name: str, limit: int) -> bytes | None:
    """The file's bytes, or None when there is no such file.

    Raises:
        QuarantineError: it cannot be read, or is larger than the limit.
    """
    try:
        with open(f"{directory}/{name}", "rb", opener=_opener) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise QuarantineError(FaultKind.UNREADABLE, f"{name} is no regular file")
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise QuarantineError(FaultKind.UNREADABLE, f"{name} cannot be read: {_why(error)}") from error
    if len(data) > limit:
        raise QuarantineError(FaultKind.TOO_LARGE, f"{name} is larger than {limit // 1024**2} MiB")
    return data


def _opener(path: str, _flags: int) -> int:
    return os.open(path, _OPEN_FLAGS)


def _directories(home: Path, advice: str) -> list[str]:
    try:
        with os.scandir(home) as entries:
            return sorted(entry.name for entry in entries if _is_directory(entry))
    except OSError as error:
        raise SessionsUnavailable(f"{_shown_name(str(home))}: {_why(error)}: {advice}") from error


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads round in a circle is nothing to read.
        return False


def _shown_name(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
