"""How well recall finds the right cards, by each signal alone and by all of them, on questions that nobody here wrote.

    python -m benchmarks.recall --data DIRECTORY [--only concepts|solved] [--json FILE] [--plot FILE]

Concepts: half of the sessions of BIRD's workspaces are ingested, and questions of the other half are asked. Solved
questions: one question for each SQL of Advising is stored, and paraphrases of it, with other values, are asked.

`by reciprocal rank` is what other memories do at best. `chosen elsewhere` are weights that were learned on some
workspaces (on some stored questions), and are reported on the others: of concepts the mean over all 20 ways to choose
three workspaces of six, of solved questions over both halves. `as they are` are those of the library, asked through
`Recall.search`. Milliseconds are of this machine: of a search as a whole with embedding, of a signal those of its own
search; those that are computed from the answers of others (coverage, confirmations, same_shape) have none.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import arguments_of, fresh_home
from benchmarks.weights import Case, Floats, by_reciprocal_rank, learned, mean, recall_at, reciprocal_rank
from memory_pipeline import Recall
from memory_pipeline.archive import cards, workspaces
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.archive.sessions import Progress
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.console import progress
from memory_pipeline.lexical import lexicon
from memory_pipeline.points import target
from memory_pipeline.propagation import project
from memory_pipeline.recall.finder import finder_of
from memory_pipeline.recall.fusion import WEIGHTS, Ranked
from memory_pipeline.recall.judgement import judged
from memory_pipeline.recall.request import Request, checked_request
from memory_pipeline.recall.search import DEPTH
from memory_pipeline.recall.signals import searches
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings
from memory_pipeline.text import equality_key

CONCEPTS = {"recall@1": 1, "recall@5": 5, "recall@10": 10}
SOLVED = {"hit@1": 1, "hit@3": 3}

Figures = dict[str, float]
Bar = Callable[[str], Progress]

_TIMED = 100  # questions


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, where it is asked, and the ids of the cards that a perfect recall returns."""

    group: str
    runtime: Runtime
    workspace: str
    question: str
    relevant: frozenset[str]

    def request(self, family: Family) -> Request:
        """It, as recall is asked for cards of a family."""
        return checked_request(
            self.workspace,
            self.question,
            limit=10,
            families=[family],
            scope=None,
            session_id=None,
            expand_links=False,
            degraded=False,
        )


@dataclass(frozen=True, slots=True)
class Experiment:
    """One set of questions, asked of one family of cards."""

    family: Family
    measures: Mapping[str, int]
    asked: Sequence[Asked]

    @property
    def weights(self) -> Mapping[str, float]:
        """Those of the library."""
        return WEIGHTS[self.family.collection]

    def cases(self, told: Progress) -> list[Case]:
        """What the signals say of the cards that were found, for each question."""
        cases = []
        for number, asked in enumerate(self.asked, start=1):
            ranked = self._ranked(asked)
            rows = tuple(row for row, card in enumerate(ranked) if card.card_id in asked.relevant)
            values = np.array([[self._value(card, name) for name in self.weights] for card in ranked])
            cases.append(Case(asked.group, values, rows, len(asked.relevant)))
            told(number, len(self.asked))
        return cases

    def _ranked(self, asked: Asked) -> list[Ranked]:
        request = asked.request(self.family)
        finder = finder_of(asked.runtime, request)
        found = finder.find(DEPTH)
        with asked.runtime.database.transaction(asked.workspace, snapshot=True) as tx:
            ranked = judged(tx, request, found, lexicon(finder.language)).cards
        return sorted(ranked, key=lambda card: card.card_id)  # as equals are ordered, whatever all signals together say

    def _value(self, card: Ranked, name: str) -> float:
        return card.signals.get(name, 0.0) / self.weights[name]

    def milliseconds(self) -> Figures:
        """Signal → the median of its search alone, where it has one, over the first questions."""
        times: defaultdict[str, list[float]] = defaultdict(list)
        for asked in self.asked[:_TIMED]:
            finder = finder_of(asked.runtime, asked.request(self.family))
            for collection in finder.request.collections:
                for signal, search in searches(
                    finder.asked, collection, DEPTH, finder.request.must(collection)
                ).items():
                    start = time.perf_counter()
                    finder.index.search(target(asked.workspace, collection, finder.identity), [search])
                    times[signal.name].append(1000 * (time.perf_counter() - start))
        return {name: statistics.median(of) for name, of in times.items()}

    def searched(self, told: Progress) -> Figures:
        """The figures of `Recall.search`, and its milliseconds."""
        ranks, times = [], []
        for number, asked in enumerate(self.asked, start=1):
            start = time.perf_counter()
            hits = Recall(asked.runtime).search(asked.workspace, asked.question, limit=10, families=[self.family]).hits
            times.append(1000 * (time.perf_counter() - start))
            ranks.append([rank for rank, hit in enumerate(hits, start=1) if hit.card_id in asked.relevant])
            told(number, len(self.asked))
        both = list(zip(ranks, self.asked, strict=True))
        figures = {
            n: statistics.mean(recall_at(k, r, len(a.relevant)) for r, a in both) for n, k in self.measures.items()
        }
        ms = statistics.quantiles(times, n=20)
        return figures | {"MRR": statistics.mean(map(reciprocal_rank, ranks)), "ms p50": ms[9], "ms p95": ms[18]}

    def figures(self, bar: Bar) -> tuple[dict[str, Figures], Figures]:
        """The figures of each signal alone, of all but each and of all; and the mean of the weights chosen."""
        cases = self.cases(bar(f"{self.family}: signals"))
        names = list(self.weights)
        ms = self.milliseconds()
        table = {f"{name} alone": mean(cases, np.eye(len(names))[n], self.measures) for n, name in enumerate(names)}
        for name in names:
            table[f"{name} alone"] |= {"ms p50": ms[name]} if name in ms else {}
        both = [names.index("dense"), names.index("lexical")]
        by_rank = [by_reciprocal_rank(case, both) for case in cases]
        table["dense and lexical, by reciprocal rank"] = mean(by_rank, np.ones(1), self.measures)
        for n, name in enumerate(names):
            others = [replace(case, values=np.delete(case.values, n, axis=1)) for case in cases]
            table[f"all but {name}, chosen elsewhere"], _ = self._elsewhere(others)
        table["all, chosen elsewhere"], chosen = self._elsewhere(cases)
        table["all, as they are"] = self.searched(bar(f"{self.family}: search"))
        return table, dict(zip(names, map(float, chosen), strict=True))

    def _elsewhere(self, cases: Sequence[Case]) -> tuple[Figures, Floats]:
        """The figures where weights were not chosen, weighted by cases, and the mean of the weights."""
        groups = sorted({case.group for case in cases})
        ways, chosen = [], []
        for some in combinations(groups, len(groups) // 2):
            weights = learned(case for case in cases if case.group in some)
            ways.append([(case, weights) for case in cases if case.group not in some])
            chosen.append(weights)
        reported = [mean([case], weights, self.measures) for way in ways for case, weights in way]
        return {name: statistics.mean(each[name] for each in reported) for name in reported[0]}, np.mean(chosen, axis=0)


def concepts(runtime: Runtime, data: Path, half: str, bar: Bar) -> list[Asked]:
    """Ingest one half of BIRD's sessions, and say what to ask of them."""
    with (data / "bird/recall_cases.jsonl").open(encoding="utf-8") as file:
        cases = [case for case in map(json.loads, file) if case["ingest"] == half]
    names = sorted({case["workspace"] for case in cases})
    known = {name: _ingested(runtime, data / "bird/sessions" / name, half, bar(f"{name}, {half}")) for name in names}
    return [
        Asked(
            group=case["workspace"],
            runtime=runtime,
            workspace=case["workspace"],
            question=case["question"],
            relevant=frozenset(known[case["workspace"]][equality_key(*text)] for text in case["relevant"]),
        )
        for case in cases
    ]


def _ingested(runtime: Runtime, sessions: Path, half: str, told: Progress) -> dict[str, str]:
    """The cards of one workspace: key of the text → id."""
    workspace = sessions.name
    for session in sessions.iterdir():
        if int(session.name[-1]) % 2 == (half == "odd"):
            shutil.copytree(session, runtime.settings.sessions / workspace / session.name)
    ingest(runtime.database, workspace, runtime.settings, runtime.identity)
    project(runtime, workspace, progress=told)
    with runtime.database.transaction(workspace) as tx:
        rows = tx.connection.exec_driver_sql("SELECT text_key, card_id FROM card").all()
    return {str(row.text_key): str(row.card_id) for row in rows}


def solved(runtime: Runtime, data: Path, bar: Bar) -> list[Asked]:
    """Store Advising's questions, and say what to ask."""
    with (data / "advising_paraphrases.jsonl").open(encoding="utf-8") as file:
        queries = [json.loads(line) for line in file]
    workspaces.make(runtime.database, "advising", language="english", principal="benchmark")
    contents = [
        CardContent(Family.SOLVED_QUESTION, question=q["question"], sql=q["sql"], dialect="mysql") for q in queries
    ]
    with runtime.database.transaction("advising", writing=True) as tx:
        ids = cards.create(tx, contents, origin="hand", principal="benchmark")
    project(runtime, "advising", progress=bar("advising"))
    return [
        Asked("even" if number % 2 == 0 else "odd", runtime, "advising", paraphrase, frozenset({card_id}))
        for number, (card_id, query) in enumerate(zip(ids, queries, strict=True))
        for paraphrase in query["paraphrases"]
    ]


def measure(data: Path, home: Path, only: str | None, bar: Bar) -> Iterator[tuple[str, dict[str, Figures], Figures]]:
    """Name, figures and weights of each experiment."""
    with ExitStack() as stack:
        runtimes = {}
        for half in ("even", "odd"):
            settings = embedded_settings(home / half)
            runtimes[half] = stack.enter_context(Runtime(settings, create=True, warm=True))
            runtimes[half].migrate()
        if only != "solved":
            asked = [each for half, runtime in runtimes.items() for each in concepts(runtime, data, half, bar)]
            yield "concepts", *Experiment(Family.CONCEPT, CONCEPTS, asked).figures(bar)
        if only != "concepts":
            asked = solved(runtimes["even"], data, bar)
            yield "solved questions", *Experiment(Family.SOLVED_QUESTION, SOLVED, asked).figures(bar)


def shown(name: str, figures: Mapping[str, Figures], weights: Figures) -> Table:
    columns = list(figures["all, as they are"])
    table = Table(name, *columns, caption="weights chosen: " + ", ".join(f"{n} {w:.2f}" for n, w in weights.items()))
    for row, of in figures.items():
        table.add_row(row, *(f"{of[c]:.1f}" if c.startswith("ms") else f"{of[c]:.3f}" for c in columns if c in of))
    return table


def plot(found: Mapping[str, Mapping[str, Figures]], file: Path) -> None:
    """Each signal alone beside all of them, as bars."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  # only who plots needs it

    figure, axes = plt.subplots(1, len(found), figsize=(11, 4.5), layout="constrained", squeeze=False)
    for axis, (name, figures) in zip(axes[0], found.items(), strict=True):
        rows = [row for row in figures if not row.startswith("all but")]
        measures = [measure for measure in figures[rows[-1]] if not measure.startswith("ms")]
        for offset, measure_ in enumerate(measures):
            places = np.arange(len(rows)) + (offset - len(measures) / 2) * 0.2
            axis.barh(places, [figures[row][measure_] for row in rows], height=0.18, label=measure_)
        axis.set(title=name, yticks=range(len(rows)), yticklabels=rows, xlim=(0, 1))
        axis.invert_yaxis()
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=len(measures), frameon=False)
    figure.savefig(file)


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=["concepts", "solved"])
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    found = {}
    with fresh_home() as home, progress("working") as bar:
        for name, figures, weights in measure(arguments.data, home, arguments.only, bar):
            found[name] = figures
            Console().print(shown(name, figures, weights))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
