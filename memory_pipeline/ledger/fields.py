"""What a field may hold: texts that can be stored, integers within bounds, moments; all else is quarantined."""

from __future__ import annotations

from datetime import UTC, datetime

from memory_pipeline.ledger.records import FaultKind
from memory_pipeline.text import storable_fault

_SHOWN = 60

# Moments that PostgreSQL returns in any time zone without leaving the years that Python knows.
_EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
_LATEST = datetime(9999, 12, 29, tzinfo=UTC)


class QuarantineError(Exception):
    """A line or a file cannot be used."""

    def __init__(self, kind: FaultKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def excerpt(text: str) -> str:
    """The beginning of a text, quoted and escaped for a fault's reason."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _value(fields: dict[str, object], name: str, default: object) -> object:
    """What stands under a name; null counts as absent, and nothing replaces a field without a default."""
    value = fields.get(name)
    if value is None:
        value = default
    if value is None:
        raise QuarantineError(FaultKind.FIELD_MISSING, f"{name} is missing")
    return value


def text_field(fields: dict[str, object], name: str, default: str | None = None) -> str:
    """The text under a name, as it was written."""
    value = _value(fields, name, default)
    if not isinstance(value, str):
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no text")
    return storable(name, value)


def texts_field(fields: dict[str, object], name: str) -> tuple[str, ...]:
    """The list of texts under a name; empty when there is none."""
    value = _value(fields, name, ())
    if value == ():
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no list of texts")
    return tuple(storable(name, item) for item in value)


def integer_field(fields: dict[str, object], name: str, largest: int, default: int | None = None) -> int:
    """The integer under a name, from 1 to the largest."""
    value = _value(fields, name, default)
    # A boolean is an int in Python; 1.0 and "1" are no integers either.
    if type(value) is not int:
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no integer")
    if not 1 <= value <= largest:
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is not within 1 and {largest}")
    return value


def storable(name: str, text: str) -> str:
    """The text, if it can be stored; the name is that of its field."""
    fault = storable_fault(text)
    if fault is None:
        return text
    kind = FaultKind.NUL_BYTE if "\x00" in text else FaultKind.LONE_SURROGATE
    raise QuarantineError(kind, f"{name} cannot be stored: {fault}")


def utc_moment(name: str, text: str) -> datetime:
    """ISO 8601, as a moment in UTC; a time without an offset is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is no ISO 8601 time: {excerpt(text)}") from error
    if not _EARLIEST < moment < _LATEST:
        raise QuarantineError(FaultKind.FIELD_INVALID, f"{name} is outside the years 1 to 9999")
    return moment
