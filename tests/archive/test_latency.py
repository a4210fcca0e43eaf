"""How long changes took from the archive to the index, measured over what was certified last."""

from __future__ import annotations

import pytest

from memory_pipeline.archive import projections
from memory_pipeline.archive.latency import Latency, latency
from memory_pipeline.cards import Collection
from tests.builders import clarified, promoted


def measured(archive, *arguments, identity=None, **options) -> Latency:
    with archive.database.transaction(archive.workspace) as tx:
        return latency(tx, identity or archive.identity, *arguments, **options)


def took(archive, item: str, *, seconds: float, minutes_ago: float = 0) -> None:
    """Let a point be certified some minutes ago, so long after it was wanted."""
    archive.change(
        "UPDATE projection SET pending = false, certified = wanted, "
        "certified_at = now() - make_interval(secs => :ago), "
        "wanted_at = now() - make_interval(secs => :ago + :seconds) WHERE item_id LIKE :item",
        item=item,
        seconds=seconds,
        ago=60 * minutes_ago,
    )


@pytest.fixture
def five(archive):
    """Four concepts, and the question that they came from."""
    decisions = [
        each for n in range(1, 5) for each in (clarified(2 * n - 1, f"subject {n}"), promoted(2 * n, 2 * n - 1))
    ]
    archive.given(*decisions, sql=None)
    return archive


def test_nothing_certified_has_no_latency(five):
    assert measured(five) == Latency(0, None, None)


def test_half_of_the_points_and_all_but_a_few_are_told_apart(five):
    for n, seconds in enumerate((1, 2, 3, 100), start=1):
        took(five, f"mem-000{n}", seconds=seconds)
    found = measured(five)
    assert (found.points, found.p50) == (4, pytest.approx(2.5))
    assert found.p95 == pytest.approx(3 + 0.85 * 97)


def test_only_what_was_certified_last_counts(five):
    took(five, "mem-0001", seconds=500, minutes_ago=60)
    for n in (2, 3):
        took(five, f"mem-000{n}", seconds=2)
    assert measured(five, limit=2) == Latency(2, pytest.approx(2), pytest.approx(2))


def test_collections_are_measured_apart(five):
    took(five, "mem-%", seconds=2)
    took(five, "q%", seconds=7)
    assert measured(five, [Collection.MEMORY_CARDS]).p50 == pytest.approx(2)
    assert measured(five, [Collection.QUESTIONS]) == Latency(1, pytest.approx(7), pytest.approx(7))
    assert measured(five, [Collection.SOLVED_QUESTIONS]).points == 0


def test_what_is_pending_again_or_of_another_identity_does_not_count(five):
    took(five, "%", seconds=2)
    five.change("UPDATE card SET fingerprint = 'another' WHERE card_id = 'mem-0001'")
    assert measured(five).points == 4
    assert measured(five, identity="another") == Latency(0, None, None)


def test_a_failed_attempt_in_between_is_part_of_it_and_a_removal_leaves_nothing(five):
    five.change("UPDATE projection SET wanted_at = now() - interval '90 seconds'")
    with five.database.transaction(five.workspace) as tx:
        projections.defer(tx, five.identity, Collection.MEMORY_CARDS, ["mem-0001"], "away")
        held = {
            each.item_id: each.fingerprint
            for each in projections.pending(tx, five.identity, Collection.MEMORY_CARDS, 9)
        }
        held["mem-0001"] = five.card("mem-0001")["fingerprint"]
        projections.certify(tx, five.identity, Collection.MEMORY_CARDS, held)
    found = measured(five)
    assert (found.points, found.p50) == (4, pytest.approx(90, abs=30))
    five.change("DELETE FROM card WHERE card_id = 'mem-0002'")
    with five.database.transaction(five.workspace) as tx:
        projections.certify_removed(tx, five.identity, Collection.MEMORY_CARDS, ["mem-0002"])
    assert measured(five).points == 3
