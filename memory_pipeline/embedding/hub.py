"""Finds the files of a sentence-transformers model: a directory, the local cache, else the Hugging Face hub."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipeline.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

_PROBE_SECONDS = 6.0
_MODULES = "modules.json"
_OTHER_FORMATS = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.tflite", "*.gguf"]
_PICKLED_WEIGHTS = "pytorch_model*.bin"
_SAFE_WEIGHTS = {"model.safetensors", "model.safetensors.index.json"}


def model_directory(model: str, revision: str) -> Path:
    """The directory that holds the model's files; they are downloaded when they are nowhere else.

    The hub's own client would retry for more than a minute, and its time-outs do not cover the name look-up. So the hub
    is asked once, and waited for with a limit, before anything is downloaded.

    Args:
        model: a directory, or a name on the hub; one without an owner belongs to `sentence-transformers`.
        revision: a branch, tag or commit of the hub's repository; "" for its main branch. A directory has none.

    Raises:
        EmbedderUnavailable: there is no such model, or the hub did not answer within 6 seconds.
    """
    directory = Path(model).expanduser()
    if directory.is_dir():
        return _sentence_transformers_model(directory, model)
    if _looks_like_a_path(model):
        raise EmbedderUnavailable(f"MEMORY_EMBEDDING_MODEL: there is no directory {model}")
    name = model if "/" in model else f"sentence-transformers/{model}"
    return _cached(name, revision) or _sentence_transformers_model(_downloaded(name, revision), model)


def _looks_like_a_path(model: str) -> bool:
    return model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1


def _sentence_transformers_model(directory: Path, model: str) -> Path:
    # Without it, sentence-transformers would guess how to pool tokens, and guess wrong for many models.
    if not (directory / _MODULES).is_file():
        raise EmbedderUnavailable(f"{model} is no sentence-transformers model: it has no {_MODULES}")
    return directory


def _cached(name: str, revision: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    ignored = [*_OTHER_FORMATS, _PICKLED_WEIGHTS]
    try:
        found = snapshot_download(name, revision=revision or None, local_files_only=True, ignore_patterns=ignored)
    except LocalEntryNotFoundError:
        return None
    except HFValidationError:
        raise EmbedderUnavailable(
            f"MEMORY_EMBEDDING_MODEL: {name!r} is neither a directory nor a name that the Hugging Face hub allows"
        ) from None
    # Another program may have fetched the weights alone.
    return Path(found) if (Path(found) / _MODULES).is_file() else None


def _downloaded(name: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download

    info = _asked(name, revision)
    files = {file.rfilename for file in info.siblings or ()}
    ignored = [*_OTHER_FORMATS, *([_PICKLED_WEIGHTS] if files & _SAFE_WEIGHTS else [])]
    try:
        return Path(snapshot_download(name, revision=revision or None, ignore_patterns=ignored))
    except OSError as error:
        raise _unavailable(name, f"its download failed ({type(error).__name__})") from error


def _asked(name: str, revision: str) -> ModelInfo:
    """What the hub says of a model. Asked in a thread of its own, since a name look-up cannot be given a time limit."""
    answer: list[ModelInfo | Exception] = []
    thread = threading.Thread(target=_ask, args=(name, revision, answer), name="hub-probe", daemon=True)
    thread.start()
    thread.join(_PROBE_SECONDS)
    if not answer:
        raise _unavailable(name, f"the Hugging Face hub did not answer within {_PROBE_SECONDS:g} seconds")
    if isinstance(answer[0], Exception):
        raise _unavailable(name, _reason(answer[0])) from answer[0]
    return answer[0]


def _ask(name: str, revision: str, answer: list[ModelInfo | Exception]) -> None:
    from huggingface_hub import HfApi

    try:
        answer.append(HfApi().model_info(name, revision=revision or None, timeout=_PROBE_SECONDS))
    except Exception as error:  # noqa: BLE001  # handed to the thread that waits
        answer.append(error)


def _reason(error: Exception) -> str:
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    # Messages of the client carry URLs: its error's name says enough.
    if isinstance(error, HfHubHTTPError):
        return f"the Hugging Face hub does not give it ({type(error).__name__})"
    if isinstance(error, OfflineModeIsEnabled):
        return "the Hugging Face hub is switched off (HF_HUB_OFFLINE)"
    return f"the Hugging Face hub cannot be reached ({type(error).__name__})"


def _unavailable(name: str, reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"the model {name} is not on this machine, and {reason}: download it where there is a network "
        f"(hf download {name}), or set MEMORY_EMBEDDING_MODEL to a directory that holds it"
    )
