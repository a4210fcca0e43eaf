"""Against peers: LangChain's indexing API and LlamaIndex's ingestion pipeline, on the same cards and the same machine.

    pip install -e '.[peers]'
    python -m benchmarks.peers [--cards 10000] [--json FILE]

Seconds until the index is up to date, and what comes of harm. All are given the same texts and the vectors of the same
stand-in for a model, which take no time. Here the cards are in the archive, and `project` is measured, which reads them
there; the peers have them in memory, make documents of them, and call what brings the store up to date, which takes the
list of all. LangChain's record manager is in the same PostgreSQL server, in another database; the peers' store is
Qdrant's local mode, which is what they offer without a server. Each peer runs with the batch sizes that it has by
default, and with larger ones; of both, the better figure counts, cell by cell. What comes of harm is seen with the
defaults.
"""

from __future__ import annotations

import gc
import importlib.util
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import arguments_of, fresh_runtime, report, seconds
from benchmarks.rivals.base import Card, Competitor, Did, Model
from benchmarks.rivals.ours import Ours
from benchmarks.rivals.trials import Affected, Outcome, State, States, state, trials
from benchmarks.speech import Speech
from memory_pipeline.runtime import Runtime

_NEEDED = ("langchain_classic", "langchain_qdrant", "llama_index")
_CHANGED = 100  # one card of so many
_HARMED = 100  # cards, of ten thousand
_AGAIN = 3
_LARGE = 1_000  # of a batch
_MODEL = Model("one")
_LOOKED_AT = 20
_STEPS = ("first time", "nothing to do", "one per cent changed", "one card deleted")
Times = Mapping[str, float]
Opened = Callable[[], Competitor]


@dataclass(frozen=True, slots=True)
class Measured:
    """One competitor with one choice of settings."""

    name: str
    settings: str
    times: Times
    outcomes: Sequence[Outcome]

    def as_json(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        outcomes = [each.as_json() for each in self.outcomes]
        return {"name": self.name, "settings": self.settings, "seconds": dict(self.times), "outcomes": outcomes}


def made_cards(count: int) -> list[Card]:
    """Cards as long as real ones: a term of some words, and a sentence or two about it."""
    speech = Speech()
    return [Card(f"mem-{n:04d}", f"{speech.some(2, 4)} {n}", speech.some(12, 30)) for n in range(1, count + 1)]


def competitors(server: Runtime, directory: Path) -> Iterator[tuple[Opened, bool]]:
    """How each is opened, and whether harm is done to it."""
    from benchmarks.rivals.langchain import LangChain  # noqa: PLC0415  # the extra `peers` is asked for by `main`
    from benchmarks.rivals.llama_index import LlamaIndex  # noqa: PLC0415  # likewise

    records = server.dagster_url.get_secret_value()
    yield partial(Ours, server.settings, _MODEL), True
    yield partial(LangChain, directory / "langchain", records, _MODEL), True
    yield partial(LangChain, directory / "langchain-large", records, _MODEL, batch=_LARGE), False
    yield partial(LlamaIndex, directory / "llama-index", _MODEL), True
    yield partial(LlamaIndex, directory / "llama-index-large", _MODEL, batch=_LARGE), False
    yield partial(LlamaIndex, None, _MODEL), False
    yield partial(LlamaIndex, None, _MODEL, batch=_LARGE), False


def measure(competitor: Competitor, cards: Sequence[Card]) -> tuple[Times, list[Card]]:
    """The seconds of each step, without what is saved before it; and the cards that are left."""
    competitor.save(cards)
    times = [_timed(competitor), statistics.median(_timed(competitor) for _ in range(_AGAIN))]
    changed = [replace(card, detail=f"{card.detail} nuovo") for card in cards[::_CHANGED]]
    competitor.save(changed)
    times.append(_timed(competitor))
    competitor.delete([cards[1].card_id])
    times.append(_timed(competitor))
    left = {card.card_id: card for card in (*cards, *changed)}
    gone = left.pop(cards[1].card_id)
    looked_at = [Affected(gone, None), *(Affected(card, card) for card in (*changed, *left.values()))][:_LOOKED_AT]
    states = [state(competitor, each) for each in looked_at]
    assert {*states} == {State.RIGHT}, f"{competitor.name}: {states}"  # noqa: S101  # what does nothing is fast
    return dict(zip(_STEPS, times, strict=True)), [*left.values()]


def compare(count: int) -> list[Measured]:
    """All competitors, one after the other."""
    cards, measured, says = made_cards(count), [], Console(stderr=True)
    with fresh_runtime() as server:
        for opened, harmed in competitors(server, server.settings.home):
            with closing(opened()) as competitor:
                says.print(f"{competitor.name}: {competitor.settings}")
                times, left = measure(competitor, cards)
                outcomes = list(trials(competitor, left, min(_HARMED, count // 10))) if harmed else []
            measured.append(Measured(competitor.name, competitor.settings, times, outcomes))
    return measured


def _timed(competitor: Competitor) -> float:
    gc.collect()  # of what others left behind
    did: list[Did] = []
    took = seconds(lambda: did.append(competitor.run()))
    assert not did[0].error, did[0].error  # noqa: S101  # what fails is fast
    return took


def best(measured: Sequence[Measured]) -> dict[str, Times]:
    """For each competitor the better figure of its settings, step by step."""
    names = dict.fromkeys(each.name for each in measured)
    return {n: {step: min(m.times[step] for m in measured if m.name == n) for step in _STEPS} for n in names}


def seconds_rows(measured: Sequence[Measured]) -> Iterator[list[str]]:
    """A row for each competitor; the peers' with how many times as long as here they take."""
    times = best(measured)
    for name, of in times.items():
        yield [name, *(_with_ratio(of[step], times[Ours.name][step], name == Ours.name) for step in _STEPS)]


def _with_ratio(took: float, here: float, is_ours: bool) -> str:  # noqa: FBT001  # read beside its caller
    shown = f"{took:.2f}" if took < 1 else f"{took:.1f}"
    return shown if is_ours else f"{shown} (× {took / here:.1f})"


def outcome_rows(measured: Sequence[Measured]) -> Iterator[list[str]]:
    """What came of each harm, harm by harm."""
    outcomes = [outcome for each in measured for outcome in each.outcomes]
    for harm in dict.fromkeys(outcome.harm for outcome in outcomes):
        for each in outcomes:
            if each.harm == harm:
                shown = [_shown(each.at_once), _shown(each.after_run), each.noticed, each.mended, _shown(each.lost)]
                yield [f"{harm} ({each.of})", each.competitor, *shown, str(each.too_many)]


def _shown(states: States) -> str:
    return ", ".join(f"{states[each]} {each}" for each in State if states[each]) or "nothing"


def main() -> None:
    arguments = arguments_of(__doc__)
    arguments.add_argument("--cards", type=int, default=10_000, help="100 or more")
    chosen = arguments.parse_args()
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        arguments.error(f"{', '.join(missing)} not installed: run `pip install -e '.[peers]'`")
    measured = compare(chosen.cards)
    figures = {"cards": chosen.cards, "competitors": [each.as_json() for each in measured]}
    report([f"seconds, {chosen.cards:,} cards", *_STEPS], seconds_rows(measured), figures, chosen.json)
    columns = [
        "harm (cards)",
        "to whom",
        "at once",
        "after the next run",
        "noticed by",
        "mended by",
        "lost",
        "too many",
    ]
    report(columns, outcome_rows(measured), {}, None)


if __name__ == "__main__":
    main()
