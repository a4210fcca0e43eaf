"""Checks of the index: its engine, and the collections that recall uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memory_pipeline import answering
from memory_pipeline.archive import identities, projections, workspaces
from memory_pipeline.cards import Collection
from memory_pipeline.doctor.base import SOON, Finding, Installation, fault, ok, warning
from memory_pipeline.doctor.places import may
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable
from memory_pipeline.index import CollectionDamaged, CollectionMissing, index_directory
from memory_pipeline.points import target
from memory_pipeline.settings import LOOPBACK, Settings

if TYPE_CHECKING:
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.runtime import Runtime

_REBUILD = "run `memory-pipeline rebuild`, which fills it again from the archive"
_PROJECT = "run `memory-pipeline project`, or let the sensors do it"


def engine(installation: Installation) -> Iterator[Finding]:
    """The Qdrant server, or the directory of the embedded index."""
    if installation.settings.qdrant_url is None:
        yield _directory(installation.settings)
    else:
        yield from _server(installation)


def _directory(settings: Settings) -> Finding:
    place = index_directory(settings)
    if not place.exists():
        return ok(f"embedded; {place} is not there yet: the first projection makes it")
    if not place.is_dir():
        return fault(f"{place} is a file", "take it away: the index is made again from the archive")
    if not may(place, os.R_OK | os.W_OK | os.X_OK):
        return fault(f"{place} cannot be written", "mend its permissions")
    return ok(f"embedded, Qdrant Edge {version('qdrant-edge-py')}, in {place}")


def _server(installation: Installation) -> Iterator[Finding]:
    from qdrant_client.common.version_check import is_compatible  # noqa: PLC0415  # half a second, where there is a server

    from memory_pipeline.index.server import QdrantServerIndex  # noqa: PLC0415  # likewise

    index, client = installation.runtime.index, version("qdrant-client")
    assert isinstance(index, QdrantServerIndex)  # noqa: S101  # the settings name a server
    server = index.version()
    answering.index_answers(installation.runtime)
    if is_compatible(client, server):
        yield ok(f"Qdrant {server}, client {client}")
    else:
        yield warning(f"Qdrant {server} and client {client} are more than one minor version apart", "update the older")
    if shows_its_key(installation.settings):
        yield warning("the API key goes over the network as plain text", "name an https:// URL in MEMORY_QDRANT_URL")


def shows_its_key(settings: Settings) -> bool:
    """Whether a key goes over a network where anybody on the way can read it."""
    url = urlsplit(settings.qdrant_url or "")
    return settings.qdrant_api_key is not None and url.scheme == "http" and url.hostname not in LOOPBACK


def collections(installation: Installation) -> Iterator[Finding]:
    """Of each workspace, whether what recall searches is there, and whether it is of the configured model."""
    runtime = installation.runtime
    database = runtime.database.within(SOON)
    names = workspaces.names(database)
    found = [finding for name in names for finding in _of_workspace(runtime, name)]
    found += [finding for live in answering.live_identities(runtime, database) for finding in _of_model(runtime, live)]
    identity = runtime.identity
    yield from found or [ok(f"{len(names)} workspace(s), identity {identity.hash} of {identity.dimension} dimensions")]


def _of_workspace(runtime: Runtime, workspace: str) -> Iterator[Finding]:
    with runtime.database.within(SOON).transaction(workspace) as tx:
        recorded = identities.live(tx)
        pending = projections.waiting(tx, runtime.identity.hash).pending
    if runtime.index.live_identity(workspace) is None and recorded is None:
        if pending:
            yield warning(f"{workspace}: {pending} point(s) are pending, and nothing was projected yet", _PROJECT)
        return
    try:
        live = runtime.live_identity(workspace)
    except IndexIncompatible as error:
        yield fault(f"{workspace}: {error}", _PROJECT)
        return
    if live != runtime.identity:
        yield warning(
            f"{workspace}: recall still uses {live.model} ({live.hash}); {pending} point(s) of the configured "
            f"{runtime.identity.model} ({runtime.identity.hash}) are pending",
            _PROJECT,
        )
    for collection in Collection:
        yield from _of_collection(runtime, workspace, collection, live)


def _of_model(runtime: Runtime, live: EmbeddingIdentity) -> Iterator[Finding]:
    """What is wrong with the model that recall still uses; the configured one has a check of its own."""
    if live == runtime.identity:
        return
    try:
        answering.model_answers(runtime, live)
    except EmbedderUnavailable as error:
        yield fault(
            f"recall still uses {live.model} ({live.hash}): {error}",
            "name its server in MEMORY_EMBEDDING_FORMER_URL, or run `memory-pipeline project`, which ends its use",
        )


def _of_collection(
    runtime: Runtime, workspace: str, collection: Collection, live: EmbeddingIdentity
) -> Iterator[Finding]:
    try:
        runtime.index.check(target(workspace, collection, live))
    except (CollectionMissing, CollectionDamaged, IndexIncompatible) as error:
        yield fault(f"{workspace}: {error}", _REBUILD)
    except IndexUnavailable as error:
        yield fault(f"{workspace}: {error}", "look again when nobody works on the index; then look for who holds it")
