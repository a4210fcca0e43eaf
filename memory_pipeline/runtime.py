"""Settings → database, index, embedder: opened when first needed, closed surely."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Self

from memory_pipeline.archive.database import Database
from memory_pipeline.archive.migrate import migrate
from memory_pipeline.embedded import EmbeddedPostgres
from memory_pipeline.embedding import open_embedder
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.index import open_index
from memory_pipeline.points import embedding_identity

if TYPE_CHECKING:
    from pydantic import SecretStr

    from memory_pipeline.embedded import EmbeddedUrls
    from memory_pipeline.embedding.base import Embedder, EmbeddingIdentity
    from memory_pipeline.index.base import Index
    from memory_pipeline.settings import Settings


class Runtime:
    """The services behind the library, for one process. Use it as a context manager; threads may share it.

    Args:
        settings: which services.
        warm: whether the process goes on asking, so that an embedded index is worth keeping open for reading.
        create: whether a home may be made; otherwise one that holds no archive is an error.
    """

    def __init__(self, settings: Settings, *, warm: bool = False, create: bool = False) -> None:
        self.settings = settings
        self._warm = warm
        self._create = create
        self._opened = ExitStack()

    @cached_property
    def identity(self) -> EmbeddingIdentity:
        """The identity of the configured embeddings; no model is loaded for it."""
        return embedding_identity(self.settings)

    @cached_property
    def database(self) -> Database:
        """The archive.

        Raises:
            ArchiveUnavailable: the home holds none, or its server does not start.
        """
        database = Database(self._archive_url)
        self._opened.callback(database.close)
        return database

    @cached_property
    def index(self) -> Index:
        """The index, embedded or a server."""
        index = open_index(self.settings, warm=self._warm)
        self._opened.callback(index.close)
        return index

    @cached_property
    def embedder(self) -> Embedder:
        """The embedding model; it is loaded by the first text, not here."""
        return open_embedder(self.settings)

    @property
    def dagster_url(self) -> SecretStr:
        """Dagster's storage, beside the archive when that is embedded."""
        if self.settings.dagster_url is not None:
            return self.settings.dagster_url
        if not self.settings.embedded_archive:
            raise InvalidSettings("set MEMORY_DAGSTER_URL: Dagster's storage is a database of its own")
        return self._embedded.dagster

    def migrate(self) -> str:
        """Bring the archive's schema up to date; its revision afterwards."""
        owner = self.settings.owner_url or self._embedded.owner
        revision = migrate(owner, self._archive_url)
        if self.settings.embedded_archive and self.settings.sessions_root is None:
            self.settings.sessions.mkdir(exist_ok=True)
        return revision

    def close(self) -> None:
        """Close whatever was opened; an embedded server that nobody else uses stops."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _embedded(self) -> EmbeddedUrls:
        server = EmbeddedPostgres(self.settings.home)
        urls = server.start(create=self._create)
        self._opened.callback(server.close)
        return urls

    @property
    def _archive_url(self) -> SecretStr:
        return self.settings.database_url or self._embedded.archive
