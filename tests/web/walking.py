"""Every route of the application, however deep its routers, with something in place of each parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import FastAPI

from memory_pipeline.web.failures import API
from tests.curating import CLINIC


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Method and path of each; `HEAD` is not told apart from `GET`."""
    for route in _flat(app.routes):
        for method in (getattr(route, "methods", None) or {"GET"}) - {"HEAD"}:
            yield method, route.path


def queries(app: FastAPI) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Method and path of each route that content can be asked of by address, and the names that its query may have.

    One that takes the request itself may read any name: it has none here.
    """
    for route in _flat(app.routes):
        if taken := getattr(route, "dependant", None):
            fields = [field for each in taken.query_params for field in _names(each)]
            names = () if taken.request_param_name else (*fields, "unknown")
            for method in route.methods & {"GET", "DELETE"}:
                yield method, route.path, names


def forms(app: FastAPI) -> list[str]:
    """The path of every page that takes a form."""
    return sorted(path for method, path in routes(app) if method == "POST" and not path.startswith(API))


def filled(path: str, **parameters: str) -> str:
    """A path with something in place of its parameters."""
    names = {"workspace": CLINIC, "card_id": "mem-0001", "session_id": "session-1", **parameters}
    return re.sub(r"{(\w+)[^}]*}", lambda found: names[found[1]], path)


def _names(parameter: Any) -> list[str]:
    """The names in a query of what a route takes: its own, or those of the fields of a model."""
    fields = getattr(parameter.field_info.annotation, "model_fields", None)
    return [parameter.alias] if fields is None else [field.alias or name for name, field in fields.items()]


def _flat(found: Iterable[Any]) -> Iterator[Any]:
    for route in found:
        if hasattr(route, "effective_candidates"):  # FastAPI's own, of a router that was included
            yield from _flat(route.effective_candidates())
        else:
            yield route
