"""Edits as JSON objects: what is submitted in bulk, and what a program passes to the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.edits import (
    NAME_LIMIT,
    Change,
    Create,
    Delete,
    Edit,
    Link,
    Merge,
    edit_faults,
    refuse,
)
from memory_pipeline.errors import InvalidEdit
from memory_pipeline.text import readable

T = TypeVar("T")

_LISTS = ("concepts", "dependencies")
_TEXTS = tuple(each.name for each in fields(CardContent) if each.name not in ("family", *_LISTS))


def parse_edit(value: object) -> Edit:
    """The edit that a JSON value describes.

    An edit is an object with `operation`: `create` with `family` and the card's fields; `change` with `card_id`,
    `version` and the fields to replace; `delete` with `card_id` and `version`; `merge` with `keep`, `keep_version`,
    `other` and `other_version`. `create` and `change` may have `links`, a list of objects with `other`, `meaning` (null
    removes the link) and `outgoing` (true by default), and `dependencies`, a list of objects with `database`, `schema`,
    `table`, `column`.

    Raises:
        InvalidEdit: it describes none; with every fault at once, field by field. Of what it describes, `edit_faults`
            tells what is wrong, and the archive whatever only that can know.
    """
    if not isinstance(value, dict):
        raise InvalidEdit({"edit": "has to be a JSON object"})
    parser = _PARSERS.get(str(value.get("operation")))
    if parser is None:
        raise InvalidEdit({"operation": f"has to be one of {', '.join(_PARSERS)}"})
    return parser(_Fields({name: each for name, each in value.items() if name != "operation"}))


def edit_as_json(edit: Edit) -> dict[str, Any]:
    """The JSON object that `parse_edit` makes the same edit of."""
    if isinstance(edit, Create):
        return {"operation": "create", **content_as_json(edit.content), "links": [asdict(link) for link in edit.links]}
    if isinstance(edit, Change):
        values = {name: value_as_json(value) for name, value in edit.values.items()}
        links = {"links": [asdict(link) for link in edit.links]} if edit.links else {}
        return {"operation": "change", "card_id": edit.card_id, "version": edit.version, **values, **links}
    return {"operation": type(edit).__name__.lower(), **asdict(edit)}


def content_as_json(content: CardContent) -> dict[str, Any]:
    """The fields of a content that hold something, as an edit gives them."""
    values = {each.name: value_as_json(getattr(content, each.name)) for each in fields(CardContent)}
    return {name: value for name, value in values.items() if value}


def value_as_json(value: object) -> object:
    """A field's value as an edit gives it."""
    if isinstance(value, tuple):
        return [asdict(item) if isinstance(item, Dependency) else item for item in value]
    return value


class _Fields:
    """The fields of a JSON object, taken one by one; what was wrong with each, and what nobody took, are faults."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = dict(value)
        self.faults: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def empty(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are given without a value."""
        return [name for name in names if name in self._value and self._value[name] is None]

    def take(self, name: str, kind: type[T], default: T, *, required: bool = False) -> T:
        value = self._value.pop(name, None)
        if value is None:
            if required:
                self.faults[name] = "is missing"
            return default
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            self.faults[name] = f"has to be {_NAMES[kind]}"
            return default
        return value

    def objects(self, name: str, shape: Mapping[str, tuple[type, Any, bool]], make: Callable[..., T]) -> tuple[T, ...]:
        """A list of objects of one shape: field → type, default, whether it is required."""
        made = []
        for number, item in enumerate(self.take(name, list, [])):
            place = f"{name}.{number}"
            inner = _Fields(item if isinstance(item, dict) else {})
            values = {k: inner.take(k, kind, default, required=needed) for k, (kind, default, needed) in shape.items()}
            made.append(make(**values))
            if isinstance(item, dict):
                self.faults |= {f"{place}.{k}": fault for k, fault in inner.all_faults().items()}
            else:
                self.faults[place] = "has to be an object"
        return tuple(made)

    def all_faults(self) -> dict[str, str]:
        unknown = {readable(name)[:NAME_LIMIT]: "is not a field of this: leave it out" for name in self._value}
        return {**self.faults, **unknown}

    def refuse(self, more: Mapping[str, str] | None = None) -> None:
        """Raises `InvalidEdit` if anything is wrong, here or with what was made of it, unless that only follows."""
        found = self.all_faults()
        more = {k: v for k, v in (more or {}).items() if not any(name.startswith(f"{k}.") for name in found)}
        refuse({**more, **found})


_NAMES: dict[type, str] = {str: "a text", int: "a whole number", bool: "true or false", list: "a list"}
_LINK = {"other": (str, "", True), "meaning": (str, None, False), "outgoing": (bool, True, False)}
_DEPENDENCY = dict.fromkeys(("database", "schema", "table", "column"), (str, "", False))


def _create(given: _Fields) -> Create:
    family = given.take("family", str, "", required=True)
    if "family" not in given.faults and family not in set(Family):
        given.faults["family"] = f"has to be one of {', '.join(Family)}"
    links = _links(given)
    values = _values(given)
    if "family" in given.faults:
        given.refuse()
    edit = Create(CardContent(family=Family(family), **values), links)
    if given.all_faults():
        given.refuse(edit_faults(edit))
    return edit


def _change(given: _Fields) -> Change:
    card_id = given.take("card_id", str, "", required=True)
    version = given.take("version", int, 0, required=True)
    links = _links(given)
    values = _values(given)
    given.refuse()
    return Change(card_id, version, values, links)


def _delete(given: _Fields) -> Delete:
    edit = Delete(given.take("card_id", str, "", required=True), given.take("version", int, 0, required=True))
    given.refuse()
    return edit


def _merge(given: _Fields) -> Merge:
    edit = Merge(
        keep=given.take("keep", str, "", required=True),
        keep_version=given.take("keep_version", int, 0, required=True),
        other=given.take("other", str, "", required=True),
        other_version=given.take("other_version", int, 0, required=True),
    )
    given.refuse()
    return edit


def _links(given: _Fields) -> tuple[Link, ...]:
    return given.objects("links", _LINK, Link)


def _values(given: _Fields) -> dict[str, Any]:
    """The card's fields that are given, and only those."""
    for name in given.empty((*_TEXTS, *_LISTS)):
        given.faults[name] = "is null: give it a value, or leave it out"
    values: dict[str, Any] = {name: given.take(name, str, "") for name in _TEXTS if name in given}
    if "concepts" in given:
        values["concepts"] = tuple(given.take("concepts", list, []))
    if "dependencies" in given:
        values["dependencies"] = given.objects("dependencies", _DEPENDENCY, Dependency)
    return values


_PARSERS: dict[str, Callable[[_Fields], Edit]] = {
    "create": _create,
    "change": _change,
    "delete": _delete,
    "merge": _merge,
}
