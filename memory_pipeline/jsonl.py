"""Reads lines of JSON: each with its number, and what is wrong with one in words for whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Annotated

from pydantic import AfterValidator, ValidationError
from pydantic_core import from_json

from memory_pipeline.errors import InvalidInput
from memory_pipeline.text import storable_fault

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
        ValueError: it is none, in words.
    """
    try:
        return from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise ValueError(f"is not JSON: {str(error).replace(' at line 1 column', ' at character')}") from None


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
        message = each["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        faults.append(f"{place}: {message}" if place else message)
    return "; ".join(faults)


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
