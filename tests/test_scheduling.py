from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory_pipeline.scheduling import (
    Candidate,
    PastRun,
    Report,
    back_off,
    decide,
    explain,
    in_turn,
    report_due,
)

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WORK = Candidate("1 changed")


def past(*failed: bool, minutes_ago: float = 0) -> list[PastRun]:
    """Finished runs, latest first, the latest of which ended some minutes ago."""
    return [PastRun(NOW - timedelta(minutes=minutes_ago, hours=n), failure) for n, failure in enumerate(failed)]


def test_what_has_work_and_no_run_gets_one():
    assert decide({"a": WORK, "b": WORK}, (), {}, NOW).requested == ("a", "b")


def test_without_work_nothing_is_asked_for():
    found = decide({}, {"a"}, {"a": past(True)}, NOW)
    assert (found.requested, dict(found.skipped)) == ((), {})


def test_one_run_at_a_time_for_each_workspace():
    found = decide({"a": WORK, "b": WORK}, {"a"}, {}, NOW)
    assert found.requested == ("b",)
    assert found.skipped == {"a": "a run is in flight"}


@pytest.mark.parametrize(
    ("failures", "minutes"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30), (8, 30)]
)
def test_each_further_failure_waits_twice_as_long_up_to_half_an_hour(failures, minutes):
    assert back_off(past(*[True] * failures, False)) == timedelta(minutes=minutes)
    assert back_off(past(*[True] * failures)) == timedelta(minutes=minutes)


def test_a_success_ends_the_back_off():
    assert decide({"a": WORK}, (), {"a": past(False, True, True)}, NOW).requested == ("a",)


def test_the_back_off_ends_by_itself():
    assert decide({"a": WORK}, (), {"a": past(True, minutes_ago=0.9)}, NOW).requested == ()
    assert decide({"a": WORK}, (), {"a": past(True, minutes_ago=1)}, NOW).requested == ("a",)


def test_a_broken_workspace_stops_no_other():
    found = decide({"a": WORK, "b": WORK}, (), {"a": past(True)}, NOW)
    assert found.requested == ("b",)
    assert found.skipped["a"] == "backing off after a failed run (60 s left)"


def test_what_a_run_may_not_help_rests_after_any_run():
    unreadable = {"a": Candidate("1 unreadable", rest=timedelta(minutes=10))}
    assert decide(unreadable, (), {}, NOW).requested == ("a",)
    assert decide(unreadable, (), {"a": past(False, minutes_ago=10)}, NOW).requested == ("a",)
    found = decide(unreadable, (), {"a": past(False, minutes_ago=9)}, NOW)
    assert found.skipped == {"a": "could not be read, will be tried again (60 s left)"}


def test_at_most_so_many_and_who_waited_longest_first():
    history = {"a": past(False, minutes_ago=1), "b": past(False, minutes_ago=3)}
    found = decide(dict.fromkeys("abcd", WORK), (), history, NOW, limit=3)
    assert found.requested == ("c", "d", "b")
    assert found.skipped == {"a": "its turn comes later: 3 runs are asked for at once"}


def test_nobody_waits_for_ever_while_others_are_always_busy():
    names = [f"w{n:02d}" for n in range(20)]
    history: dict[str, list[PastRun]] = {}
    served = set()
    for look in range(3):
        now = NOW + timedelta(minutes=look)
        requested = decide(dict.fromkeys(names, WORK), (), history, now).requested
        history |= {name: [PastRun(now, failed=False)] for name in requested}
        served |= set(requested)
    assert served == set(names)


def test_the_reasons_are_said_in_one_bounded_line():
    assert explain({}, idle="nothing changed") == "nothing changed"
    assert explain({"b": "x", "a": "y"}, idle="") == "a: y; b: x"
    assert explain({f"w{n:03d}": "z" for n in range(100)}, idle="").endswith("; and 80 more")


def test_a_look_goes_round_from_a_place_that_changes():
    names = [f"w{n}" for n in range(10)]
    rounds = [list(in_turn(names)) for _ in range(50)]
    assert all(sorted(found) == names for found in rounds)
    assert len({found[0] for found in rounds}) > 1
    assert list(in_turn([])) == []


def test_a_look_ends_in_time():
    ticks = iter(range(100))
    assert len(list(in_turn([f"w{n}" for n in range(10)], seconds=4, clock=lambda: float(next(ticks))))) == 4


def report(*, minutes_ago: float = 0, passed: bool | None = True, counts: object = None) -> Report:
    return Report(NOW - timedelta(minutes=minutes_ago), passed, counts)


@pytest.mark.parametrize(
    ("last", "busy", "due"),
    [
        pytest.param(None, True, True, id="never reported"),
        pytest.param(report(minutes_ago=1), False, False, id="nothing happened"),
        pytest.param(report(minutes_ago=10), True, True, id="ten minutes old"),
        pytest.param(report(minutes_ago=1, passed=False), True, True, id="another outcome"),
        pytest.param(report(minutes_ago=1, counts={"pending": 1}), True, True, id="other numbers"),
        pytest.param(report(minutes_ago=1, passed=None), True, False, id="a run will report"),
        pytest.param(report(minutes_ago=1, passed=None), False, True, id="a run died before it could report"),
    ],
)
def test_a_report_without_a_run_is_due(last, busy, due):
    assert report_due(last, report(), busy=busy) is due
