"""Settings → database, index, embedder: opened when first needed, closed surely."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from memory_pipeline.archive import identities
from memory_pipeline.archive.database import Database
from memory_pipeline.archive.migrate import migrate
from memory_pipeline.embedded import EmbeddedPostgres
from memory_pipeline.embedding import open_embedder
from memory_pipeline.embedding.model import Model, reopen
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.index import open_index
from memory_pipeline.points import embedding_identity, stored_identity

if TYPE_CHECKING:
    from pydantic import SecretStr

    from memory_pipeline.embedded import EmbeddedUrls
    from memory_pipeline.embedding.base import Embedder, EmbeddingIdentity
    from memory_pipeline.index.base import Index
    from memory_pipeline.settings import Settings


_Service = TypeVar("_Service")


class _Once(Generic[_Service]):
    """A property of Runtime that the first thread to ask for it opens, while others wait, and that is kept.

    `functools.cached_property` would open a service for each of them: since Python 3.12 it takes no lock.
    """

    def __init__(self, opened: Callable[[Runtime], _Service]) -> None:
        self.__doc__ = opened.__doc__
        self._opened = opened

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, runtime: Runtime, _: type) -> _Service:
        kept = vars(runtime)  # what is in it is found there without coming here
        with runtime.opening:
            if self._name not in kept:
                kept[self._name] = self._opened(runtime)
            service: _Service = kept[self._name]
            return service


class Runtime:
    """The services behind the library, for one process. Use it as a context manager; threads may share it.

    Args:
        settings: which services.
        warm: whether the process goes on asking, so that an embedded index is worth keeping open for reading.
        create: whether a home may be made; otherwise one that holds no archive is an error.
        patience: seconds that the index may take for one thing, where whoever asks cannot wait as long as usual.
    """

    def __init__(
        self, settings: Settings, *, warm: bool = False, create: bool = False, patience: float | None = None
    ) -> None:
        self.settings = settings
        self._patience = patience
        self._warm = warm
        self._create = create
        self._opened = ExitStack()
        self._models: dict[str, Embedder] = {}
        self.opening = threading.RLock()
        """Held while a service is opened or all are closed; opening one may open another."""

    @_Once
    def identity(self) -> EmbeddingIdentity:
        """The identity of the configured embeddings; no model is loaded for it."""
        return embedding_identity(self.settings)

    @_Once
    def database(self) -> Database:
        """The archive.

        Raises:
            ArchiveUnavailable: the home holds none, or its server does not start.
        """
        database = Database(self.archive_url)
        self._opened.callback(database.close)
        return database

    @_Once
    def index(self) -> Index:
        """The index, embedded or a server."""
        index = open_index(self.settings, warm=self._warm, patience=self._patience)
        self._opened.callback(index.close)
        return index

    @_Once
    def embedder(self) -> Embedder:
        """The embedding model; it is loaded by the first text, not here."""
        embedder = open_embedder(self.settings)
        self._opened.callback(embedder.close)
        return embedder

    def embedder_of(self, identity: EmbeddingIdentity) -> Embedder:
        """The model of an identity, which is not the configured one while the index still lives on another.

        Raises:
            EmbedderUnavailable: no provider of that name is known, or no server that has the model.
        """
        if identity == self.identity:
            return self.embedder
        with self.opening:
            if identity.hash not in self._models:
                model = reopen(Model.from_identity(identity.settings), self.settings)
                self._opened.callback(model.close)
                self._models[identity.hash] = model
            return self._models[identity.hash]

    def live_identity(self, workspace: str) -> EmbeddingIdentity:
        """The identity that recall uses for a workspace: what the index says, else the archive, else the settings.

        Raises:
            UnknownWorkspace, ArchiveUnavailable: where the index does not say, as one that was lost.
            IndexUnavailable: the index is away.
            IndexIncompatible: it is of another version of this library, which makes other texts of the same cards.
        """
        settings = self.index.live_identity(workspace)
        if settings is None:
            with self.database.transaction(workspace) as tx:
                settings = identities.live(tx)
        if settings is None or settings.get("hash") == self.identity.hash:
            return self.identity
        return stored_identity(settings)

    @property
    def archive_url(self) -> SecretStr:
        """The archive as the role that everything but a migration runs under.

        Raises:
            ArchiveUnavailable: the home holds no archive, or its server does not start.
        """
        return self.settings.database_url or self._embedded.archive

    @property
    def owner_url(self) -> SecretStr:
        """The archive as the owner of its tables.

        Raises:
            InvalidSettings: the archive is a server, and its owner is not named.
            ArchiveUnavailable: the home holds no archive, or its server does not start.
        """
        if self.settings.owner_url is not None:
            return self.settings.owner_url
        if not self.settings.embedded_archive:
            raise InvalidSettings("set MEMORY_OWNER_URL to migrate: the role that owns the archive's tables")
        return self._embedded.owner

    @property
    def dagster_url(self) -> SecretStr:
        """Dagster's storage, beside the archive when that is embedded.

        Raises:
            InvalidSettings: the archive is a server, and no database is named for Dagster.
            ArchiveUnavailable: the home holds no archive, or its server does not start.
        """
        if self.settings.dagster_url is not None:
            return self.settings.dagster_url
        if not self.settings.embedded_archive:
            raise InvalidSettings("set MEMORY_DAGSTER_URL: Dagster's storage is a database of its own")
        return self._embedded.dagster

    @property
    def embedded_server(self) -> EmbeddedPostgres | None:
        """The PostgreSQL of the home; None when the archive is a server of somebody's own."""
        return self._server if self.settings.embedded_archive else None

    def migrate(self) -> str:
        """Bring the archive's schema up to date; its revision afterwards."""
        revision = migrate(self.owner_url, self.archive_url)
        if self.settings.embedded_archive and self.settings.sessions_root is None:
            self.settings.sessions.mkdir(exist_ok=True)
        return revision

    def close(self) -> None:
        """Close whatever was opened; an embedded server that nobody else uses stops."""
        with self.opening:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @_Once
    def _server(self) -> EmbeddedPostgres:
        server = EmbeddedPostgres(self.settings.home)
        self._opened.callback(server.close)
        return server

    @_Once
    def _embedded(self) -> EmbeddedUrls:
        return self._server.start(create=self._create)
