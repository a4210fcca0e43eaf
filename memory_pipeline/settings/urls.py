"""Which URLs of databases, servers and keys a setting takes."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from memory_pipeline.cards import is_workspace_name
from memory_pipeline.settings.values import PLAIN, decoded, one_place

if TYPE_CHECKING:
    from sqlalchemy import URL

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts that nobody is on the way to."""

_OF_URLS = re.compile("[:/@]")
_ENCODED = "in a user, a password or a path, write @ : / ? # % as %40 and so on"


def _with_driver(url: SecretStr, *, scheme: str) -> SecretStr:
    # SQLAlchemy 2.1 reads a bare postgresql:// as psycopg 3, with which Dagster's storage dies on its first event.
    if not url.get_secret_value().startswith(scheme):
        raise ValueError(f"begin the URL with {scheme}, which names the driver")
    parsed = _parsed_url(url)
    if not _options(parsed) <= _known_options():
        # Without their names: what follows an & of the password counts as one.
        raise ValueError(
            "it has an option after the ? that PostgreSQL's client does not know: write those of libpq, as in "
            "?sslmode=require, and in their values & = % as %26 and so on"
        )
    return url


def _options(url: URL) -> set[str]:
    """What a driver of PostgreSQL is told, by name."""
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415  # only where a URL is set

    try:
        _, options = url.get_dialect()().create_connect_args(url)
    except ArgumentError:  # whose message may quote
        raise ValueError(
            "its hosts or ports cannot be used: write ?host=a,b&port=1,2 where there are several"
        ) from None
    return set(options)


def _known_options() -> set[str]:
    from psycopg import pq  # noqa: PLC0415  # only where a URL is set

    return {option.keyword.decode() for option in pq.Conninfo.get_defaults()}


def _parsed_url(url: SecretStr) -> URL:
    from sqlalchemy import make_url  # noqa: PLC0415  # only where a URL is set
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415  # likewise

    try:
        parsed = make_url(url.get_secret_value())
    except (ArgumentError, ValueError):  # whose messages may quote a part of the password
        raise ValueError(f"it is no URL: {_ENCODED}") from None
    # What stands behind an @ of the password counts as the host, which drivers quote.
    if "@" in (parsed.host or "") or (parsed.host and "@" in (parsed.database or "")):
        raise ValueError(f"it has more than one @: {_ENCODED}")
    return parsed


def _catalog_urls(urls: dict[str, SecretStr]) -> dict[str, SecretStr]:
    faults = []
    found = {}
    for name, url in urls.items():
        shown = "a URL" if _OF_URLS.search(name) else repr(name)  # whose password would be shown
        try:
            found[name] = _catalog_url(url)
        except ValueError as error:
            faults.append(f"{shown}: {error}")
        if not is_workspace_name(name):
            faults.append(f"{shown} is not the name of a workspace")
    if faults:
        raise ValueError("; ".join(faults))
    return found


def _catalog_url(url: SecretStr) -> SecretStr:
    if url.get_secret_value().startswith("postgresql://"):
        raise ValueError("begin the URL with postgresql+psycopg://, which names the driver")
    parsed = _parsed_url(url)
    if parsed.get_backend_name() != "sqlite":
        return url
    if not parsed.database or parsed.database == ":memory:":
        raise ValueError("name a file: a database in memory is empty")
    if parsed.database.startswith("file:"):
        return url
    place = parsed.set(database=str(one_place(Path(parsed.database))))
    return SecretStr(place.render_as_string(hide_password=False))


def _qdrant_url(url: str) -> str:
    parsed = _server_url(url)
    if parsed.query or parsed.fragment:
        raise ValueError("end the URL with host and port, as in https://qdrant.example:6333")
    return url


def _embeddings_url(url: str) -> str:
    parsed = _server_url(url)
    if parsed.query or parsed.fragment or parsed.path.rstrip("/").endswith("/embeddings"):
        raise ValueError("name the address up to what stands before /embeddings, which for most servers ends with /v1")
    return url.rstrip("/")


def _server_url(url: str) -> SplitResult:
    parsed = _web_url(url)
    if "@" in parsed.netloc:
        raise ValueError("leave user and password out of the URL: the server's key is a setting of its own")
    return parsed


def _web_url(url: str) -> SplitResult:
    try:
        parsed = urlsplit(url)
        usable = parsed.scheme in {"http", "https"} and parsed.hostname and parsed.port != 0
    except ValueError:  # brackets that are no address, a port that is no number
        usable = False
    if not usable or not PLAIN.fullmatch(url):
        raise ValueError("write http:// or https://, a host and, after a colon, its port")
    return parsed


def _keys_place(place: str) -> str:
    if place.startswith(("https://", "http://")):
        if _web_url(place).scheme == "http" and urlsplit(place).hostname not in LOOPBACK:
            raise ValueError("name an https:// URL: whoever is on the way could sign otherwise")
        return place
    file = one_place(Path(place))
    if not os.path.isfile(file):  # noqa: PTH113  # it never raises
        raise ValueError("there is no such file: name the file of a JWK set, or its https:// URL")
    return str(file)


ArchiveUrl = Annotated[SecretStr, AfterValidator(partial(_with_driver, scheme="postgresql+psycopg://"))]
DagsterUrl = Annotated[SecretStr, AfterValidator(partial(_with_driver, scheme="postgresql+psycopg2://"))]
CatalogUrls = Annotated[
    dict[str, SecretStr],
    NoDecode,
    BeforeValidator(partial(decoded, of="workspace → URL")),
    AfterValidator(_catalog_urls),
]
QdrantUrl = Annotated[str, AfterValidator(_qdrant_url)]
EmbeddingsUrl = Annotated[str, AfterValidator(_embeddings_url)]
KeysPlace = Annotated[str, AfterValidator(_keys_place)]
