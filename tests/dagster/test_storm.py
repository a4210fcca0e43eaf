"""Five thousand edits in twenty workspaces: few runs, few questions, nothing forgotten."""

from __future__ import annotations

from collections import Counter

from memory_pipeline.archive.status import status
from memory_pipeline.propagation import Difference, audit
from memory_pipeline.scheduling import RUNS_AT_ONCE
from tests.dagster.conftest import Pipeline
from tests.dagster.storm import SENSORS, Daemon, Tick, create_at_once, empty_workspaces, submit
from tests.doubles import HashEmbedder

NAMES = [f"w{n:02d}" for n in range(20)]
EDITED = NAMES[::5]
CREATED = 240  # cards made by hand in each workspace
CHANGED, DELETED = 40, 10  # of them, in some workspaces; 5,000 edits in all
ENTERING = "memory.workspace"  # in the statement that every transaction of a workspace begins with


def asked(ticks: list[Tick]) -> dict[str, int]:
    """Sensor → statements on the archive."""
    return {tick.sensor: len(tick.asked.archive) for tick in ticks}


def test_a_storm_of_edits_is_worked_off_in_order(pipeline: Pipeline, monkeypatch):
    monkeypatch.setattr("memory_pipeline.runtime.open_embedder", lambda settings: HashEmbedder())
    runtime, daemon = pipeline.runtime, Daemon(pipeline)
    empty_workspaces(runtime, NAMES)
    before = daemon.round()
    assert not daemon.in_flight

    for name in NAMES:
        create_at_once(runtime, name, CREATED)
    ticks = daemon.round()
    for name in EDITED:  # while the first runs are on their way
        submit(runtime, name, changes=CHANGED, deletions=DELETED)
    while daemon.in_flight or ticks[-1].found.requested:
        daemon.work()
        ticks += daemon.round()

    for tick in ticks:
        assert len(tick.found.requested) <= RUNS_AT_ONCE
        assert not set(tick.found.requested) & set(tick.busy)
        assert max(Counter(tick.busy).values(), default=0) <= 1
        # Every workspace is looked at, each with as many statements as when there was nothing in it.
        assert sum(ENTERING in statement for statement in tick.asked.archive) == len(NAMES)
        why = len(NAMES) if tick.sensor == "reprojection_sensor" else 0  # of what is pending, the reasons too
        assert asked(before)[tick.sensor] <= len(tick.asked.archive) <= asked(before)[tick.sensor] + why
        # Dagster looks at the partition of every run that is asked for; the history of all workspaces is one look.
        idle = len(before[SENSORS.index(tick.sensor)].asked.dagster)
        assert len(tick.asked.dagster) <= idle + 2 * len(tick.found.requested) + 2
    assert daemon.executed <= 3 * len(NAMES)

    expected = {name: CREATED - DELETED if name in EDITED else CREATED for name in NAMES}
    found = status(runtime.database, runtime.identity.hash)
    assert {name: (state.certified, state.pending) for name, state in found.items()} == {
        name: (cards, 0) for name, cards in expected.items()
    }
    reports = {name: audit(runtime, name) for name in NAMES}
    assert {name: report.checked for name, report in reports.items()} == expected
    assert not any(report.count(difference) for report in reports.values() for difference in Difference)

    after = daemon.round()
    assert [tick.found.skipped for tick in after] == ["nothing changed", "no edit waits", "nothing is pending"]
    assert [tick.sensor for tick in after] == list(SENSORS)
    assert asked(after) == asked(before)
