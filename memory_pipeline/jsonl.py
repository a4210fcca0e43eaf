"""Reads lines of JSON: each with its number, and what is wrong with one in words for whoever wrote it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Annotated, Any

from pydantic import AfterValidator, ValidationError
from pydantic_core import from_json

from memory_pipeline.errors import InvalidInput
from memory_pipeline.text import readable, storable_fault

LINE_LIMIT = 64 * 1024**2
"""Bytes: more than a card of the largest texts takes, with every character escaped."""
FAULTS_LIMIT = 1000
"""How many lines are named at most, since a file of something else altogether would make millions."""

_BOM = b"\xef\xbb\xbf"


def lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1 on; one at a time, however long the file is.

    Raises:
        InvalidInput: a line is longer than any that could be used.
    """
    number = 0
    while line := stream.readline(LINE_LIMIT + 1):
        number += 1
        if len(line) > LINE_LIMIT:
            raise InvalidInput(f"line {number}: is longer than {LINE_LIMIT // 1024**2} MiB")
        line = line.removeprefix(_BOM) if number == 1 else line  # an editor's mark, no part of it
        if line.strip():
            yield number, line


def parsed(line: bytes) -> object:
    """The JSON value in a line.

    Raises:
        ValueError: it is none, or gives a field of an object twice, in words.
    """
    try:
        from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise ValueError(f"is not JSON: {str(error).replace(' at line 1 column', ' at character')}") from None
    # Again, since that one keeps the last of equal fields and says nothing.
    return json.loads(line.decode(), object_pairs_hook=_each_once)


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if twice := [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]:
        raise ValueError(f"gives {readable(twice[0])!r} twice: leave one of them out")
    return dict(pairs)


def unstorable(value: object) -> str | None:
    """Why PostgreSQL cannot store some text in a JSON value, or None when it can store all of them."""
    if isinstance(value, str):
        return storable_fault(value)
    inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(unstorable, inner)), None)


def _storable(text: str) -> str:
    if fault := storable_fault(text):
        raise ValueError(f"cannot be kept, since {fault}")
    return text


Text = Annotated[str, AfterValidator(_storable)]
"""The type of a record's text that PostgreSQL can store."""


def described(error: ValidationError) -> str:
    """What is wrong with a record, field by field, without its values."""
    faults = []
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        context = {name: str(value) for name, value in each.get("ctx", {}).items()}
        message = _WORDS.get(each["type"], each["msg"]).format_map(context)
        faults.append(f"{place}: {message}" if place else message)
    return "; ".join(faults)


_WORDS = {
    "value_error": "{error}",
    "missing": "is missing",
    "extra_forbidden": "is not a field of this: leave it out",
    "json_invalid": "is not JSON: {error}",
    "union_tag_invalid": "kind: has to be one of {expected_tags}",
    "union_tag_not_found": "kind: is missing",
    "model_type": "has to be an object",
    "model_attributes_type": "has to be an object",
    "dict_type": "has to be an object",
    "list_type": "has to be a list",
    "tuple_type": "has to be a list",
    "string_type": "has to be a text",
    "bool_type": "has to be true or false",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_from_float": "has to be a whole number",
    "greater_than_equal": "has to be {ge} or more",
    "less_than_equal": "has to be {le} or less",
    "string_too_short": "needs {min_length} or more characters",
    "string_too_long": "has more than {max_length} characters",
    "string_pattern_mismatch": "has to be of the form {pattern}",
    "literal_error": "has to be {expected}",
    "enum": "has to be {expected}",
    "datetime_parsing": "has to be a time like 2026-01-31T12:00:00Z",
    "datetime_from_date_parsing": "has to be a time like 2026-01-31T12:00:00Z",
    "datetime_type": "has to be a time like 2026-01-31T12:00:00Z",
    "timezone_aware": "has to be a time with its zone, like 2026-01-31T12:00:00Z",
}
"""pydantic's types of errors → the words for whoever wrote the file."""


class Faults:
    """The faulty lines of a file, by number; they are named together, so that one look mends them all."""

    def __init__(self) -> None:
        self.by_line: dict[int, str] = {}
        self.total = 0

    def add(self, number: int, fault: str) -> None:
        """Count a fault, and name it unless too many are named already."""
        self.total += 1
        if len(self.by_line) < FAULTS_LIMIT:
            self.by_line[number] = f"{self.by_line[number]}; {fault}" if number in self.by_line else fault

    def named(self) -> dict[str, str]:
        """The faults as `line N` → what is wrong; the last entry counts those that are not named."""
        named = {f"line {number}": fault for number, fault in self.by_line.items()}
        rest = self.total - len(named)
        return {**named, "and": f"{rest} more"} if rest > 0 else named
