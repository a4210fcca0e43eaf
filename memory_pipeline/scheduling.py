"""Decides which workspaces get a run now. Pure: the sensors look, ask here, and carry out.

Level-triggered: what is decided follows from what is the case now and from the runs there were, and nothing is
remembered between two looks. A lost look, a crashed daemon or a run that died is therefore made good by the next look.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

PARTITION_TAG = "dagster/partition"
"""The tag of a run that names its workspace: one run of each at a time."""

RUNS_AT_ONCE = 8
"""How many runs one look asks for at most; the others come with the next looks."""

REREAD_AFTER = timedelta(minutes=10)
"""How long what could not be read rests before it is tried again, since nothing tells when it can be."""

REPORT_EVERY = timedelta(minutes=10)
"""How old the shown outcome of a check may become while nothing changes."""

LOOK_SECONDS = 20.0
"""How long one look may take. What it leaves out comes with another, well before Dagster ends the tick after 60 s."""

_SHOWN = 20
_LONGEST_WAIT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workspace that has something to do.

    Attributes:
        reason: what there is to do, for the reader.
        rest: how long after the end of its last run it may wait, because nothing says that a run would change anything.
    """

    reason: str
    rest: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A finished run: when it ended, and whether it failed."""

    ended: datetime
    failed: bool


@dataclass(frozen=True, slots=True)
class Requests:
    """The workspaces that get a run now, in order, and why each of the others does not."""

    requested: tuple[str, ...]
    skipped: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """A check's outcome as it was reported at a moment; `counts` holds what does not change while nothing happens."""

    at: datetime
    passed: bool | None
    counts: object


def decide(
    candidates: Mapping[str, Candidate],
    in_flight: Collection[str],
    history: Mapping[str, Sequence[PastRun]],
    now: datetime,
    limit: int = RUNS_AT_ONCE,
) -> Requests:
    """Choose the workspaces that get a run.

    Args:
        candidates: workspace → what there is to do.
        in_flight: the workspaces that have a run queued or under way.
        history: workspace → its finished runs, latest first; a few are enough.
        now: the moment to decide at.
        limit: how many runs to ask for at most.
    """
    skipped = {}
    ready = []
    for name, candidate in candidates.items():
        past = history.get(name, ())
        if name in in_flight:
            skipped[name] = "a run is in flight"
        elif (wait := waiting_time(candidate, past, now)) > timedelta(0):
            why = "backing off after a failed run" if past[0].failed else "could not be read, will be tried again"
            skipped[name] = f"{why} ({wait.total_seconds():.0f} s left)"
        else:
            ready.append(name)
    # Who has waited longest comes first, so that eight busy workspaces do not keep the others waiting for ever.
    ready.sort(key=lambda name: (_last_end(history.get(name, ())), name))
    skipped |= dict.fromkeys(ready[limit:], f"its turn comes later: {limit} runs are asked for at once")
    return Requests(tuple(ready[:limit]), skipped)


def waiting_time(candidate: Candidate, past: Sequence[PastRun], now: datetime) -> timedelta:
    """How long a workspace still has to wait; nothing or less when it need not."""
    if not past:
        return timedelta(0)
    return past[0].ended + max(back_off(past), candidate.rest) - now


def back_off(past: Sequence[PastRun]) -> timedelta:
    """How long to wait after the last of several failed runs: 1, 2, 4, … minutes, at most 30."""
    failures = next((n for n, run in enumerate(past) if not run.failed), len(past))
    if not failures:
        return timedelta(0)
    return min(timedelta(minutes=2 ** (failures - 1)), _LONGEST_WAIT)


def explain(skipped: Mapping[str, str], *, idle: str) -> str:
    """Why no run was asked for, in one line for the reader; `idle` is said when there is nothing to do."""
    if not skipped:
        return idle
    shown = [f"{name}: {why}" for name, why in sorted(skipped.items())[:_SHOWN]]
    rest = len(skipped) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")


def in_turn(
    names: Sequence[str], *, seconds: float = LOOK_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    """The names in a circle, from a place that changes, until the time is up: no name is always among the last."""
    deadline = clock() + seconds
    start = random.randrange(len(names)) if names else 0  # noqa: S311  # fairness, not secrecy
    for name in (*names[start:], *names[:start]):
        if clock() > deadline:
            return
        yield name


def report_due(last: Report | None, current: Report, *, busy: bool) -> bool:
    """Whether a check's outcome is to be reported without a run: it changed, or the last report is ten minutes old.

    Args:
        last: the last report, if there was one; of one that a run still owes, `passed` is None.
        current: what would be reported now.
        busy: whether any run is in flight, which may still report by itself.
    """
    if last is None or current.at - last.at >= REPORT_EVERY:
        return True
    if last.passed is None:
        return not busy
    return (last.passed, last.counts) != (current.passed, current.counts)


def _last_end(past: Sequence[PastRun]) -> float:
    return past[0].ended.timestamp() if past else 0.0
