"""An edit as the command line takes it: an option for each field of a card, or a JSON edit from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, TypeVar

import click

from memory_pipeline import jsonl
from memory_pipeline.cards import Family
from memory_pipeline.edits import Edit
from memory_pipeline.edits_json import parse_edit
from memory_pipeline.errors import InvalidEdit

Command = TypeVar("Command", bound=Callable[..., Any])

_TEXTS = {
    "subject": "What the card is about.",
    "detail": "What is so.",
    "rationale": "Why it is so.",
    "question": "The question that is solved.",
    "sql": "The SQL that answers it.",
    "dialect": "sqlglot's name of what the SQL is written in.",
    "context": "What else there is to know of the question.",
    "database": "The database that the card is about.",
    "schema": "The schema that the card is about.",
}
_FROM_FILE = ("detail", "sql", "context")
_REPLACES = "repeatable; replaces those of a changed card"
# Innermost level first, as the names are taken from their ends.
_TABLE = ("table", "schema", "database")
_COLUMN = ("column", *_TABLE)
TABLE_FORM, COLUMN_FORM = "[[DATABASE.]SCHEMA.]TABLE", "[[[DATABASE.]SCHEMA.]TABLE.]COLUMN"
"""How the name of a table or column is written."""


@dataclass(frozen=True, slots=True)
class _Other:
    """A card at the other end of a link, and the link's meaning; None removes it."""

    other: str
    meaning: str | None


def edit_options(command: Command) -> Command:
    """Give a command an option for each field of a card, and `--from` for all of them at once."""
    texts = [click.option(f"--{name}", help=text) for name, text in _TEXTS.items()]
    files = [
        click.option(f"--{name}-file", type=click.File("rb"), help=f"A file with the {name}.") for name in _FROM_FILE
    ]
    for option in reversed([_SOURCE, *texts, *files, *_LISTS]):
        command = option(command)
    return command


family_option = click.option("--family", help=f"One of {', '.join(Family)}.")
version_option = click.option("--version", type=int, help="The version that the edit is based on.")
required_version = click.option("--version", type=int, required=True, help="The version that the edit is based on.")


def edit_of(operation: str, given: Mapping[str, Any], **fixed: object) -> Edit:
    """The edit that options or a file describe.

    Args:
        operation: create or change.
        given: what `edit_options` took.
        fixed: further fields of the edit, None where the command line does not name them.

    Raises:
        InvalidEdit: with every fault at once, field by field.
        click.UsageError: options contradict each other.
    """
    fields = _fields(given)
    named = {name: value for name, value in fixed.items() if value is not None}
    if given["source"] is None:
        return parse_edit({"operation": operation, **named, **fields})
    if fields:
        raise click.UsageError(f"--from gives the whole edit: leave out {', '.join(fields)}, or --from")
    return parse_edit(_completed(_json(given["source"]), {"operation": operation, **named}))


def _completed(value: Any, named: Mapping[str, object]) -> Any:
    """A JSON edit with what the command line says besides, which it must not contradict."""
    if not isinstance(value, dict):
        return value
    faults = {
        name: f"is {value[name]!r} in the file and {said!r} on the command line: name one of them"
        for name, said in named.items()
        if value.get(name, said) != said
    }
    if faults:
        raise InvalidEdit(faults)
    return {**value, **named}


def _json(source: IO[bytes]) -> Any:
    try:
        return jsonl.parsed(source.read())
    except ValueError as error:
        raise InvalidEdit({"edit": str(error)}) from None


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a JSON edit that were given as options."""
    fields = {name: text for name in _TEXTS if (text := _text(name, given)) is not None}
    dependencies = [*given["tables"], *given["columns"]]
    links = [
        {"other": link.other, "meaning": link.meaning, "outgoing": outgoing}
        for name, outgoing in _LINKS.items()
        for link in given[name]
    ]
    lists = {"concepts": list(given["concepts"]), "dependencies": dependencies, "links": links}
    return fields | {name: values for name, values in lists.items() if values}


def _text(name: str, given: Mapping[str, Any]) -> str | None:
    text, file = given[name], given.get(f"{name}_file")
    if file is None:
        return text if text is None else str(text)
    if text is not None:
        raise click.UsageError(f"give either --{name} or --{name}-file")
    try:
        return str(file.read().decode())
    except UnicodeDecodeError:
        raise click.UsageError(f"--{name}-file: {file.name} is not UTF-8") from None


def _table(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> list[dict[str, str]]:
    return [_object(value, _TABLE) for value in values]


def _column(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> list[dict[str, str]]:
    return [_object(value, _COLUMN) for value in values]


def depended_on(table: str, column: str) -> dict[str, str]:
    """Level → name of the one database object that a table's and a column's name, either of them empty, describe.

    Raises:
        click.UsageError: the column is one of another table.
    """
    of_table, of_column = (
        _object(name, levels) if name else {} for name, levels in ((table, _TABLE), (column, _COLUMN))
    )
    if any(of_table.get(level, name).lower() != name.lower() for level, name in of_column.items()):
        raise click.UsageError(f"{column!r} is no column of {table!r}: name one of them")
    return of_column | of_table


def _object(value: str, levels: tuple[str, ...]) -> dict[str, str]:
    """A database object whose name has its innermost level last."""
    parts = value.split(".")
    if len(parts) > len(levels):
        raise click.BadParameter(
            f"{value!r} has more than {len(levels)} names: names with dots go through --from alone"
        )
    return dict(zip(levels, reversed(parts), strict=False))


def _linked(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> list[_Other]:
    pairs = [value.partition("=") for value in values]
    if wrong := [other for other, equals, _ in pairs if not equals]:
        raise click.BadParameter(f"{wrong[0]!r} has no meaning: write {wrong[0]}=MEANING")
    return [_Other(other, meaning) for other, _, meaning in pairs]


def _unlinked(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> list[_Other]:
    return [_Other(other, None) for other in values]


def _several(flag: str, name: str, help_: str, callback: Any = None, metavar: str | None = None) -> Any:
    return click.option(flag, name, multiple=True, help=help_, callback=callback, metavar=metavar)


# Parameter → whether its links lead away from the card.
_LINKS = {"links": True, "links_from": False, "unlinks": True, "unlinks_from": False}
_SOURCE = click.option("--from", "source", type=click.File("rb"), help="A JSON edit; - is standard input.")
_LISTS = (
    _several("--concept", "concepts", f"A concept ({_REPLACES})."),
    _several("--table", "tables", f"A table it depends on ({_REPLACES}).", _table, TABLE_FORM),
    _several(
        "--column", "columns", f"A column it depends on ({_REPLACES}).", _column, "[[DATABASE.]SCHEMA.]TABLE.COLUMN"
    ),
    _several("--link", "links", "Link to a card, or change that link (repeatable).", _linked, "OTHER=MEANING"),
    _several("--link-from", "links_from", "The same from a card (repeatable).", _linked, "OTHER=MEANING"),
    _several("--unlink", "unlinks", "Remove the link to a card (repeatable).", _unlinked, "OTHER"),
    _several("--unlink-from", "unlinks_from", "Remove the link from a card (repeatable).", _unlinked, "OTHER"),
)
