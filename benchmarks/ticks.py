"""What the sensors' ticks cost while nothing is to be done, and the slowest one while 5,000 edits are worked off.

    python -m benchmarks.ticks [--ticks 20] [--json FILE]

Seconds on this machine, each tick with its own connections as Dagster's code server opens them; the homes are made for
the run and removed. A stand-in takes the model's place: no tick needs one, which is verified, as is that none asks the
index.
"""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from dagster import DagsterInstance

from benchmarks.common import arguments_of, fresh_runtime, report, seconds, without_model
from memory_pipeline.dagster_home import dagster_environment
from memory_pipeline.propagation import project
from tests.dagster.conftest import Pipeline
from tests.dagster.storm import SENSORS, Daemon, create_at_once, empty_workspaces
from tests.doubles import HashEmbedder

Figures = dict[str, dict[str, Any]]


class CountedIndex:
    """An index that counts what it is asked for, by name."""

    def __init__(self, index: object) -> None:
        self._index = index
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._index, name)
        if not callable(found):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.asked[name] += 1
            return found(*arguments, **named)

        return counted


@contextmanager
def a_pipeline() -> Iterator[Pipeline]:
    """The code location over a home of its own."""
    with (
        mock.patch("memory_pipeline.runtime.open_embedder", return_value=HashEmbedder()),
        fresh_runtime() as runtime,
        mock.patch.dict(os.environ, dagster_environment(runtime)),
        DagsterInstance.get() as instance,
    ):
        yield Pipeline(instance, runtime)


def idle(names: list[str], cards: int, ticks: int) -> Figures:
    """Ticks over workspaces in which all is done, and a projection of one of them."""
    with a_pipeline() as pipeline:
        empty_workspaces(pipeline.runtime, names)
        for name in names:
            create_at_once(pipeline.runtime, name, cards)
            project(pipeline.runtime, name)
        daemon = Daemon(pipeline)
        daemon.round()  # the first one warms the caches, adds partitions and reports the check
        refusing = mock.patch("memory_pipeline.runtime.open_index", side_effect=AssertionError("a tick asks the index"))
        with refusing, without_model():
            figures = {sensor: measured(daemon, sensor, ticks) for sensor in SENSORS}
        assert not daemon.in_flight, daemon.in_flight  # noqa: S101  # a benchmark of something else
        counted = pipeline.runtime.index = CountedIndex(pipeline.runtime.index)  # type: ignore[assignment]  # in place of what is opened
        took = seconds(lambda: project(pipeline.runtime, names[0]))
        return figures | {"projection": {"seconds": took, "index": counted.asked.total()}}


def measured(daemon: Daemon, sensor: str, ticks: int) -> dict[str, Any]:
    """Some ticks of a sensor: seconds, and statements on the archive and on Dagster's storage of the last one."""
    times = [seconds(lambda: daemon.tick(sensor)) for _ in range(ticks)]
    asked = daemon.tick(sensor).asked
    return {
        "seconds": statistics.median(times),
        "slowest": max(times),
        "archive": len(asked.archive),
        "dagster": len(asked.dagster),
    }


def storm(names: list[str], cards: int) -> Figures:
    """The ticks while new cards are worked off: how many there were, and the slowest."""
    times: dict[str, list[float]] = {sensor: [] for sensor in SENSORS}
    with a_pipeline() as pipeline:
        empty_workspaces(pipeline.runtime, names)
        daemon = Daemon(pipeline)
        daemon.round()
        for name in names:
            create_at_once(pipeline.runtime, name, cards)
        asking = True
        while asking:
            daemon.work()
            for sensor in SENSORS:
                times[sensor].append(seconds(lambda sensor=sensor: daemon.tick(sensor)))
            asking = bool(daemon.in_flight)
    return {sensor: {"seconds": statistics.median(each), "slowest": max(each)} for sensor, each in times.items()}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--ticks", type=int, default=20)
    arguments = parser.parse_args()
    twenty = [f"w{n:02d}" for n in range(20)]
    figures = {
        "20 × 500 cards, nothing to do": idle(twenty, 500, arguments.ticks),
        "1 × 10,000 cards, nothing to do": idle(["large"], 10_000, arguments.ticks),
        "20 × 250 cards, all new": storm(twenty, 250),
    }
    rows = []
    for what, found in figures.items():
        for name, figure in found.items():
            shown = [figure.get(each, "") for each in ("seconds", "slowest", "archive", "dagster", "index")]
            rows.append((what, name, *(f"{each:.3f}" if isinstance(each, float) else str(each) for each in shown)))
    columns = ("what", "of", "seconds, p50", "slowest", "archive", "Dagster", "index")
    report(columns, rows, figures, arguments.json)


if __name__ == "__main__":
    main()
