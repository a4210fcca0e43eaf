"""Replaces files at once, and forces names to the disk: for what others read, and what has to survive a crash."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path


def replace_file(
    path: Path, data: bytes, *, sync: bool = False, mode: int | None = None, before: Callable[[], None] | None = None
) -> None:
    """Replace a file at once: whoever reads sees the old content or the new.

    Args:
        path: the file.
        data: all of its new content.
        sync: whether it also has to survive a power failure.
        mode: its permissions; by default what the process's umask leaves.
        before: called when all is written, just before it takes its place; what it raises leaves the file as it was.
    """
    new = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with new.open("wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if before:
            before()
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    if sync:
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Force the names in a directory to the disk; a new file's is none of its content."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
