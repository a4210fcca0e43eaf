"""Checks of the other services: Dagster's storage, the model, tokens, and the databases that cards depend on."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator

from pydantic import SecretStr

from memory_pipeline import answering
from memory_pipeline.archive import roles
from memory_pipeline.catalog import reach
from memory_pipeline.doctor.base import Finding, Installation, fault, not_applicable, ok
from memory_pipeline.doctor.connecting import connected
from memory_pipeline.errors import ArchiveUnavailable, InvalidSettings
from memory_pipeline.extras import require


def dagster(installation: Installation) -> Iterator[Finding]:
    """Dagster's storage: another database than the archive's."""
    settings = installation.settings
    if settings.dagster_url is None and not settings.embedded_archive:
        yield not_applicable("MEMORY_DAGSTER_URL is not set: Dagster runs elsewhere")
        return
    if importlib.util.find_spec("psycopg2") is None:
        yield not_applicable("its driver psycopg2 is not installed: it comes with the extra `pipeline`")
        return
    with connected(installation.runtime.dagster_url) as connection:
        found = roles.server(connection)
    if found.place == _place_of_archive(installation):
        yield fault(
            f"the database {found.database} is the archive's",
            "name another database in MEMORY_DAGSTER_URL: both have tables of the same names",
        )
    else:
        yield ok(f"PostgreSQL {found.version}, database {found.database}")


def _place_of_archive(installation: Installation) -> str | None:
    try:
        with connected(installation.runtime.archive_url) as connection:
            return roles.server(connection).place
    except ArchiveUnavailable:  # which is told of the archive
        return None


def model(installation: Installation) -> Iterator[Finding]:
    """The configured model: whether it embeds, and how long that takes."""
    identity, times = installation.runtime.identity, []
    for _ in range(2):
        start = time.monotonic()
        dimension = answering.model_answers(installation.runtime, identity)
        times.append(time.monotonic() - start)
    first, then = times
    yield ok(
        f"{identity.provider} {identity.model}: {dimension} dimensions; {first:.2f} s for the first text, "
        f"{then:.3f} s for another"
    )


def tokens(installation: Installation) -> Iterator[Finding]:
    """Whose tokens the web takes."""
    try:
        require("web")
    except InvalidSettings:
        yield not_applicable("the web is not installed: it comes with the extra `web`")
        return
    settings = installation.settings
    if settings.jwt_issuer:
        yield _of_issuer(installation)
    elif settings.embedded_archive:
        yield _of_home(installation)
    else:
        yield not_applicable("no issuer is named, without which `serve` does not start: see MEMORY_JWT_ISSUER")


def _of_issuer(installation: Installation) -> Finding:
    from memory_pipeline.web.identity import IssuedTokens  # noqa: PLC0415  # comes with an extra

    return ok(f"an issuer's, with {IssuedTokens(installation.settings).count_keys()} key(s)")


def _of_home(installation: Installation) -> Finding:
    from memory_pipeline.web.identity import LocalToken  # noqa: PLC0415  # comes with an extra

    there = LocalToken.check(installation.settings)
    return ok("the home's own, which its owner alone may read" if there else "the home's own, which `serve` makes")


def catalog(workspace: str, url: SecretStr) -> Callable[[Installation], Iterator[Finding]]:
    """The check of the database that a workspace's cards depend on."""

    def look(_: Installation) -> Iterator[Finding]:
        yield ok(f"{reach(url, workspace)} answers")

    return look
