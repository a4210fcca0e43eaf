"""Reads a manifest: what a session says about itself, and whether it belongs to the directory that it lies in."""

from __future__ import annotations

from pathlib import Path

import yaml

from memory_pipeline.ledger.fields import QuarantineError, excerpt, storable, utc_moment
from memory_pipeline.ledger.files import read_bytes
from memory_pipeline.ledger.records import MANIFEST_FILE, MANIFEST_LIMIT, FaultKind, Manifest, Status
from memory_pipeline.lexical import is_supported
from memory_pipeline.text import nfc

_YAML_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# Scalars stay text: read as YAML types, an unquoted id of 0012 would be ten and one of 2026-01-05 a date.
_YAML_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_manifest(directory: Path, workspace: str) -> Manifest:
    """The manifest of a session directory.

    Raises:
        QuarantineError: it is missing, cannot be used, or is that of another directory.
    """
    data = read_bytes(directory, MANIFEST_FILE, MANIFEST_LIMIT)
    if data is None:
        raise QuarantineError(FaultKind.MANIFEST_MISSING, f"there is no {MANIFEST_FILE}")
    return own_manifest(data, directory, workspace)


def own_manifest(data: bytes, directory: Path, workspace: str) -> Manifest:
    """The manifest in a file's bytes, if it is that of the directory.

    Raises:
        QuarantineError: it cannot be used, or is that of another directory.
    """
    manifest = parse_manifest(data)
    _check_owner(manifest, directory.name, workspace)
    return manifest


def parse_manifest(data: bytes) -> Manifest:
    """The manifest in a file's bytes.

    Raises:
        QuarantineError: it cannot be used.
    """
    try:
        return _manifest(_mapping(data))
    except QuarantineError as problem:
        raise QuarantineError(FaultKind.MANIFEST_INVALID, f"{MANIFEST_FILE}: {problem.reason}") from problem


def _mapping(data: bytes) -> dict[object, object]:
    try:
        content = yaml.load(data, Loader=_YAML_LOADER)  # noqa: S506  # it makes nothing but text, lists and mappings
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" from line {mark.line + 1} on" if mark else ""
        raise QuarantineError(FaultKind.MANIFEST_INVALID, f"it is not YAML{where}") from error
    except (ValueError, RecursionError) as error:
        raise QuarantineError(FaultKind.MANIFEST_INVALID, "it is not YAML") from error
    if not isinstance(content, dict):
        raise QuarantineError(FaultKind.MANIFEST_INVALID, "it is empty, or no mapping")
    return content


def _manifest(content: dict[object, object]) -> Manifest:
    return Manifest(
        session_id=_filled_entry(content, "id"),
        workspace=_filled_entry(content, "workspace"),
        question=_filled_entry(content, "question"),
        database=_filled_entry(content, "database"),
        # SQLite and MySQL have no schemas: the key is asked for, a value is not.
        schema=_entry(content, "schema"),
        status=_status(_filled_entry(content, "status")),
        created_at=utc_moment("created_at", _filled_entry(content, "created_at")),
        updated_at=utc_moment("updated_at", _filled_entry(content, "updated_at")),
        updated_by=_filled_entry(content, "updated_by"),
        dialect=_optional_entry(content, "dialect") or "postgres",
        language=_optional_entry(content, "language") or None,
    )


def _entry(content: dict[object, object], name: str) -> str:
    """The text under a key that has to be there; a null counts as no text."""
    if name not in content:
        raise QuarantineError(FaultKind.FIELD_MISSING, f"{name} is missing")
    value = content[name]
    if not isinstance(value, str):
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no text")
    return "" if value.strip() in _YAML_NULLS else storable(name, value)


def _filled_entry(content: dict[object, object], name: str) -> str:
    text = _entry(content, name)
    if not text:
        raise QuarantineError(FaultKind.FIELD_MISSING, f"{name} is empty")
    return text


def _optional_entry(content: dict[object, object], name: str) -> str:
    return _entry(content, name) if name in content else ""


def _status(text: str) -> Status:
    try:
        return Status(text)
    except ValueError as error:
        reason = f"status is {excerpt(text)}, which is neither open nor finalized"
        raise QuarantineError(FaultKind.FIELD_INVALID, reason) from error


def _check_owner(manifest: Manifest, name: str, workspace: str) -> None:
    # A file system may hand names back decomposed (NFD) that were written composed.
    if nfc(manifest.session_id) != nfc(name):
        reason = f"the manifest's id is {excerpt(manifest.session_id)}, not the directory's name"
        raise QuarantineError(FaultKind.MANIFEST_FOREIGN, reason)
    if manifest.workspace != workspace:
        reason = f"the manifest's workspace is {excerpt(manifest.workspace)}, not the directory's"
        raise QuarantineError(FaultKind.MANIFEST_FOREIGN, reason)


def check_language(manifest: Manifest) -> None:
    """Quarantines a language that has no lexical analysis; the manifest is used all the same."""
    if manifest.language and not is_supported(manifest.language):
        reason = f"language is {excerpt(manifest.language)}, which is not supported: the setting's counts in its place"
        raise QuarantineError(FaultKind.LANGUAGE_UNSUPPORTED, reason)
