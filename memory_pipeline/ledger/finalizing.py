"""Finalizes a session: changes three values of its manifest, and leaves every other byte as it was written."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import yaml

from memory_pipeline.errors import LedgerUnavailable, SessionNotFound
from memory_pipeline.files import replace_file
from memory_pipeline.ledger.fields import QuarantineError
from memory_pipeline.ledger.files import read_bytes
from memory_pipeline.ledger.manifest import own_manifest, parse_manifest
from memory_pipeline.ledger.records import MANIFEST_FILE, MANIFEST_LIMIT, Manifest, Status

_BY_HAND = f"set `status: finalized` in {MANIFEST_FILE} by hand"


def finalize(directory: Path, workspace: str, *, by: str) -> bool:
    """Set a session's status to finalized, in one step that readers see whole; whether it was not before.

    Args:
        directory: the session's.
        workspace: whose.
        by: who does it, for `updated_by`.

    Raises:
        SessionNotFound: there is no manifest that can be used.
        LedgerUnavailable: the manifest cannot be written, or not without changing more of it; it is as it was.
    """
    data, before = _read(directory, workspace)
    if before.status is Status.FINALIZED:
        return False
    now = datetime.now(UTC).replace(microsecond=0)
    after = _with_values(data, {"status": "finalized", "updated_at": f'"{now.isoformat()}"', "updated_by": _quoted(by)})
    wanted = replace(before, status=Status.FINALIZED, updated_at=now, updated_by=by)
    if after is None or _parsed(after) != wanted:
        raise LedgerUnavailable(f"{directory / MANIFEST_FILE} is written in an unusual way: {_BY_HAND}")
    _replace(directory, data, after)
    return True


def _read(directory: Path, workspace: str) -> tuple[bytes, Manifest]:
    try:
        data = read_bytes(directory, MANIFEST_FILE, MANIFEST_LIMIT)
        if data is not None:
            return data, own_manifest(data, directory, workspace)
    except QuarantineError as problem:
        raise SessionNotFound(f"session {directory.name!r} cannot be used as it stands: {problem.reason}") from None
    raise SessionNotFound(f"session {directory.name!r} cannot be used as it stands: there is no {MANIFEST_FILE}")


def _parsed(data: bytes) -> Manifest | None:
    try:
        return parse_manifest(data)
    except QuarantineError:
        return None


def _with_values(data: bytes, values: dict[str, str]) -> bytes | None:
    """The YAML with other values of some keys, and everything around them as it was; None if that cannot be told."""
    try:
        text = data.decode()
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (UnicodeDecodeError, yaml.YAMLError):  # the loader that is written in C reads more, UTF-16 for one
        return None
    places = [
        (key.value, value.start_mark.index, value.end_mark.index)
        for key, value in (node.value if isinstance(node, yaml.MappingNode) else ())
        if key.value in values and isinstance(value, yaml.ScalarNode)
    ]
    if len(places) < len(values):
        return None
    for key, start, end in sorted(places, key=lambda place: place[1], reverse=True):
        ended = "\n" if text[start:end].endswith("\n") else ""  # a block of lines ends with its last line's
        text = f"{text[:start]}{values[key]}{ended}{text[end:]}"
    return text.encode()


def _quoted(text: str) -> str:
    return yaml.dump(text, default_style='"', allow_unicode=True, width=math.inf).strip()


def _replace(directory: Path, before: bytes, data: bytes) -> None:
    place = (directory / MANIFEST_FILE).resolve()
    try:
        mode = place.stat().st_mode
        replace_file(place, data, sync=True, mode=mode, before=partial(_require_unchanged, directory, before))
    except OSError as error:
        if _is(directory, data):  # it stands; only its name may not have reached the disk
            return
        why = (error.strerror or type(error).__name__).lower()
        raise LedgerUnavailable(f"{place} cannot be written ({why}): the session is not finalized") from error


def _require_unchanged(directory: Path, before: bytes) -> None:
    if not _is(directory, before):
        raise LedgerUnavailable(f"{directory / MANIFEST_FILE} was changed meanwhile: finalize the session again")


def _is(directory: Path, data: bytes) -> bool:
    """Whether the manifest has just this content."""
    try:
        return read_bytes(directory, MANIFEST_FILE, MANIFEST_LIMIT) == data
    except QuarantineError:
        return False
