"""How long recall takes in a large workspace: warm and stage by stage, and as a command of its own.

    python -m benchmarks.recall_latency [--cards 10000] [--questions 200] [--starts 5] [--json FILE]

Milliseconds on this machine; the home is made for the run and removed. Four of five cards are concepts, with 1.3
questions behind each in the mean; the others are solved questions. Their words are drawn from a vocabulary of 20,000 as
often as Zipf's law has it, and those of the questions asked likewise. Warm, a stand-in takes the model's place, which
answers at once, so that the figures are those of recall alone; texts that share words are near each other. After a card
was changed, the next search makes a copy of the shard anew. The commands load the default model, each in a process of
its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event, text

from benchmarks.common import arguments_of, environment_of, fresh_home, report, seconds, summary
from benchmarks.speech import BagOfWords, Speech
from memory_pipeline.archive import cards, identities, workspaces
from memory_pipeline.archive.database import Tx
from memory_pipeline.archive.queries import load
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.console import progress
from memory_pipeline.index.base import Hit, Search, Target
from memory_pipeline.points import question_fingerprint, question_id
from memory_pipeline.propagation import project
from memory_pipeline.recall import Recall
from memory_pipeline.recall.finder import finder_of
from memory_pipeline.recall.request import checked_request
from memory_pipeline.recall.search import DEPTH
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings
from memory_pipeline.text import equality_key

_WORKSPACE = "large"
_LANGUAGE = "italian"
_CHANGED = "mem-0001"
_BATCH = 2_000
_ASKED_TWICE = 0.3  # of the concepts
_FIRST = 20  # searches before those that count

ADD_QUESTION = text(
    "INSERT INTO question (workspace, question_id, text, text_key, fingerprint) "
    "VALUES (:workspace, :question_id, :text, :text_key, :fingerprint)"
)
ADD_SOURCE = text(
    "INSERT INTO card_source (workspace, session_id, seq, decision_type, decided_by, text_key, card_id, question_id) "
    "VALUES (:workspace, :session_id, 1, 'concept_clarified', 2, 'key', :card_id, :question_id)"
)
Figure = dict[str, float]


class WatchedIndex:
    """The real index, whose searches are timed by collection."""

    def __init__(self, index: object, stages: defaultdict[str, float]) -> None:
        self._index: Any = index
        self._stages = stages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def search(self, target: Target, searches: Sequence[Search]) -> list[list[Hit]]:
        """See `Index.search`."""
        start = time.perf_counter()
        found: list[list[Hit]] = self._index.search(target, searches)
        self._stages[f"index: {target.collection}, {len(searches)} searches"] += _since(start)
        return found


@contextmanager
def timed_statements(stages: defaultdict[str, float]) -> Iterator[None]:
    """Times each statement on the archive under the name that its file gives it, rows not fetched yet included."""
    names = {
        " ".join(str(clause).split()): name for file in ("lookup", "identities") for name, clause in load(file).items()
    }

    def before(connection: Any, *_: object) -> None:
        connection.info["started"] = time.perf_counter()

    def after(connection: Any, _cursor: Any, statement: str, _parameters: Any, context: Any, *_: object) -> None:
        said = " ".join(str(context.compiled.statement).split()) if context.compiled else statement
        name = names.get(said, "enter the workspace" if "set_config" in said else "others")
        stages[f"archive: {name}"] += _since(connection.info["started"])

    event.listen(Engine, "before_cursor_execute", before)
    event.listen(Engine, "after_cursor_execute", after)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", before)
        event.remove(Engine, "after_cursor_execute", after)


def milliseconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    return 1_000 * seconds(work)


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1_000


def contents(speech: Speech, count: int) -> Iterator[CardContent]:
    for number in range(count):
        tables = speech.chance.sample(range(40), 2)
        places = tuple(Dependency("dwh", "public", f"fact_episode_{table}", f"column_{table}") for table in tables)
        if number % 5 == 0:
            question, sql = f"{speech.some(6, 14)} {number}?", f"SELECT {speech.some(20, 120)}"
            yield CardContent(
                Family.SOLVED_QUESTION,
                question=question,
                sql=sql,
                context=speech.some(5, 30),
                database="dwh",
                schema="public",
                dependencies=places,
            )
        else:
            subject, detail = f"{speech.some(1, 4)} {number}", speech.some(6, 30)
            yield CardContent(
                Family.CONCEPT,
                subject,
                detail,
                speech.some(0, 20),
                database="dwh",
                schema="public",
                dependencies=places,
            )


def fill(runtime: Runtime, speech: Speech, count: int) -> None:
    workspaces.make(runtime.database, _WORKSPACE, language=_LANGUAGE, principal="benchmark")
    with runtime.database.transaction(_WORKSPACE) as tx:
        identities.register(tx, runtime.identity)
    by_prefix: dict[str, list[CardContent]] = {}
    for content in contents(speech, count):
        by_prefix.setdefault(content.family.id_prefix, []).append(content)
    with progress("filling") as bar:
        told, done = bar("archive"), 0
        for prefix, made in by_prefix.items():
            for start in range(0, len(made), _BATCH):
                with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
                    ids = cards.create(tx, made[start : start + _BATCH], origin="session", principal="benchmark")
                    if prefix == Family.CONCEPT.id_prefix:
                        ask(tx, speech, ids)
                done += len(ids)
                told(done, count)
        project(runtime, _WORKSPACE, progress=bar("index"))


def ask(tx: Tx, speech: Speech, card_ids: Sequence[str]) -> None:
    """Questions behind cards: one behind each, and a second one behind three of ten."""
    asked = [(card_id, n) for card_id in card_ids for n in range(1 + (speech.chance.random() < _ASKED_TWICE))]
    questions, sources = [], []
    for card_id, n in asked:
        said = f"{speech.some(6, 14)} {card_id}-{n}?"
        fingerprint, of_text = question_fingerprint(said, _LANGUAGE), question_id(said)
        questions.append(
            {"question_id": of_text, "text": said, "text_key": equality_key(said), "fingerprint": fingerprint}
        )
        sources.append({"session_id": f"session-{card_id}-{n}", "card_id": card_id, "question_id": of_text})
    tx.run_many(ADD_QUESTION, questions)
    tx.run_many(ADD_SOURCE, sources)


def warm(runtime: Runtime, asked: Sequence[str]) -> dict[str, Figure]:
    """Every question, through a process that has answered before."""
    stages: defaultdict[str, float] = defaultdict(float)
    by_stage: defaultdict[str, list[float]] = defaultdict(list)
    recall = Recall(runtime)
    for question in asked[:_FIRST]:
        recall.search(_WORKSPACE, question)
    whole = [milliseconds(lambda asked=question: recall.search(_WORKSPACE, asked)) for question in asked]
    unverified = [milliseconds(lambda asked=question: found_alone(runtime, asked)) for question in asked]
    runtime.index = WatchedIndex(runtime.index, stages)
    with timed_statements(stages):
        for question in asked:
            stages.clear()
            start = time.perf_counter()
            recall.search(_WORKSPACE, question)
            stages["all else"] = _since(start) - sum(stages.values())
            for stage, took in stages.items():
                by_stage[stage].append(took)
    of_whole = {"whole search": summary(whole), "without verification: the index alone": summary(unverified)}
    return of_whole | {stage: summary(by_stage[stage]) for stage in sorted(by_stage)}


def found_alone(runtime: Runtime, question: str) -> None:
    """What the index finds for a question, and nobody has looked at yet."""
    request = checked_request(
        _WORKSPACE,
        question,
        limit=10,
        families=None,
        scope=None,
        session_id=None,
        expand_links=False,
        degraded=False,
    )
    found = finder_of(runtime, request).find(DEPTH)
    assert found.points  # noqa: S101  # what finds nothing is fast


def after_changes(runtime: Runtime, asked: Sequence[str]) -> Figure:
    """Each question right after a card was changed and projected; what the edit and the projection take is left out."""
    recall, times = Recall(runtime), []
    for question in asked:
        with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
            ((card_id, content),) = cards.contents(tx, [_CHANGED]).items()
            cards.update(tx, {card_id: replace(content, detail=f"{content.detail} {question}")}, principal="benchmark")
        project(runtime, _WORKSPACE)
        times.append(milliseconds(lambda asked=question: recall.search(_WORKSPACE, asked)))
    return summary(times)


def cold(home: Path, questions: Sequence[str]) -> Figure:
    """Each question by a command of its own, which loads the default model."""
    command = [sys.executable, "-m", "memory_pipeline.cli", "recall", "-w", _WORKSPACE, "--json"]
    times = []
    for question in questions:
        start = time.perf_counter()
        answer = subprocess.run([*command, question], env=environment_of(home), capture_output=True, check=True)  # noqa: S603  # our own command
        times.append(_since(start))
        assert json.loads(answer.stdout)["hits"]  # noqa: S101  # what answers nothing is fast
    return summary(times)


def measure(home: Path, count: int, questions: int, starts: int) -> dict[str, Figure]:
    speech = Speech()
    settings = embedded_settings(home)
    with Runtime(settings, create=True, warm=True) as runtime:
        runtime.migrate()
        runtime.embedder = BagOfWords(speech)
        fill(runtime, speech, count)
        asked = [f"{speech.some(5, 14)}?" for _ in range(questions)]
        figures = warm(runtime, asked)
        figures["search after a change"] = after_changes(runtime, asked[:starts])
        figures["command, PostgreSQL running"] = cold(home, asked[:starts])
    figures["command, PostgreSQL not running"] = cold(home, asked[:starts])
    return figures


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--starts", type=int, default=5, help="how many commands, and changes")
    arguments = parser.parse_args()
    with fresh_home() as home:
        figures = measure(home, arguments.cards, arguments.questions, arguments.starts)
    rows = [(name, f"{figure['p50']:,}", f"{figure['p95']:,}") for name, figure in figures.items()]
    report([f"{arguments.cards:,} cards", "p50, ms", "p95, ms"], rows, figures, arguments.json)


if __name__ == "__main__":
    main()
