"""How much was pending when: what samples keep, and what they tell of the time between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.archive import history
from memory_pipeline.archive.history import Look, moments
from memory_pipeline.errors import InvalidInput

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def a_look(minutes: int, pending: int, *, age: float = 0, left: int = 0, left_age: float = 0) -> Look:
    """Of one minute after noon; ages in minutes."""
    seen = at(minutes + 0.5)
    since = seen - timedelta(minutes=left_age) if left else None
    return Look(at(minutes), pending, 60 * age, seen, left, since)


def the_present(minutes: float, pending: int = 0, *, age: float = 0) -> Look:
    return Look(at(minutes), pending, 60 * age, at(minutes))


def told(*looks: Look, minutes: int = 60, buckets: int = 6) -> list[tuple[int, float]]:
    """Pending points and lag in minutes, bucket by bucket, from noon on."""
    found = moments(looks, since=NOON, until=at(minutes), buckets=buckets)
    assert [each.at for each in found] == [at(n * minutes / buckets) for n in range(buckets)]
    return [(each.pending, each.lag_seconds / 60) for each in found]


def look_back(archive, *, hours: float = 1, buckets: int = 4, until: datetime | None = None):
    with archive.database.transaction(archive.workspace, snapshot=True) as tx:
        end = until or history.now(tx)
        return history.history(tx, archive.identity, since=end - timedelta(hours=hours), until=end, buckets=buckets)


def take(archive) -> None:
    with archive.database.transaction(archive.workspace) as tx:
        history.sample(tx, archive.identity)


def samples(archive) -> list[dict]:
    return [dict(row) for row in archive.rows("SELECT * FROM backlog_sample ORDER BY minute")]


class TestBetweenSamples:
    def test_where_nothing_was_sampled_nothing_was_seen(self):
        assert told(the_present(60)) == [(0, 0)] * 6

    def test_the_greatest_of_a_bucket_is_told_and_what_was_completed_ends_with_its_look(self):
        looks = [a_look(11, 5, age=1), a_look(13, 3, age=4), a_look(31, 2)]
        assert told(*looks, the_present(60)) == [(0, 0), (5, 4), (0, 0), (2, 0), (0, 0), (0, 0)]

    def test_what_a_look_left_goes_on_and_grows_older_until_the_next_look(self):
        looks = [a_look(12, 9, age=1, left=4, left_age=2.5), a_look(40, 4, age=30)]
        assert told(*looks, the_present(60)) == [(0, 0), (9, 10), (4, 20), (4, 30), (4, 30), (0, 0)]

    def test_what_was_left_before_the_first_bucket_goes_on_into_it(self):
        assert told(a_look(-20, 7, left=7, left_age=1), a_look(14, 7), the_present(60))[:3] == [
            (7, 30.5),
            (7, 34.5),
            (0, 0),
        ]

    def test_the_present_is_the_end(self):
        looks = [a_look(12, 3, left=3, left_age=0.5)]
        assert told(*looks, the_present(35, 8, age=23)) == [(0, 0), (3, 8), (3, 18), (8, 23), (0, 0), (0, 0)]

    def test_the_present_moment_itself_is_in_the_last_bucket(self):
        assert told(the_present(60, 2, age=1))[-1] == (2, 1)

    def test_a_time_that_is_over_does_not_know_the_present(self):
        looks = [a_look(55, 1, left=1)]
        assert told(*looks, the_present(500, 9, age=9)) == [*[(0, 0)] * 5, (1, 4.5)]

    def test_a_look_of_the_minute_in_which_the_time_begins_counts(self):
        looks = [Look(at(-0.5), 3, 60.0, at(0.2))]
        assert told(*looks, the_present(60))[0] == (3, 1)

    @given(
        st.lists(st.tuples(st.integers(-60, 120), st.integers(0, 9), st.integers(0, 9)), max_size=12),
        st.integers(1, 50),
    )
    def test_no_bucket_shows_more_than_was_ever_seen_or_left_nor_misses_the_most(self, seen, buckets):
        by_minute = {minute: (pending, left) for minute, pending, left in seen}
        looks = [a_look(minute, max(both), left=both[1]) for minute, both in sorted(by_minute.items())]
        found = moments([*looks, the_present(121)], since=NOON, until=at(120), buckets=buckets)
        within = [look.pending for look in looks if 0 <= (look.minute - NOON).total_seconds() <= 7200]
        assert max(within, default=0) <= max(each.pending for each in found)
        assert max(each.pending for each in found) <= max((look.pending for look in looks), default=0)


class TestSamples:
    def test_a_sample_keeps_what_is_pending_and_how_old_the_oldest_is(self, archive):
        archive.given()
        archive.change("UPDATE projection SET wanted_at = now() - interval '1 hour' WHERE item_id = 'mem-0001'")
        take(archive)
        [kept] = samples(archive)
        assert (kept["pending"], kept["left_pending"]) == (3, 3)
        assert kept["lag_seconds"] == pytest.approx(3600, abs=60)
        assert kept["minute"] <= kept["seen_at"] < kept["minute"] + timedelta(minutes=1)

    def test_a_minute_keeps_the_greatest_and_what_its_last_look_left(self, archive):
        archive.given()
        archive.change("UPDATE projection SET wanted_at = now() - interval '1 hour'")
        take(archive)
        archive.change("UPDATE backlog_sample SET minute = date_trunc('minute', now() + interval '2 seconds')")
        archive.certify_all()
        take(archive)
        last = samples(archive)[-1]
        assert (last["left_pending"], last["left_since"]) == (0, None)
        if len(samples(archive)) == 1:  # else a minute began just between the two
            assert (last["pending"], last["lag_seconds"]) == (3, pytest.approx(3600, abs=60))

    def test_of_two_looks_at_once_the_later_says_what_was_left_though_it_was_written_first(self, archive):
        archive.given()
        take(archive)
        archive.certify_all()
        archive.change(
            "UPDATE backlog_sample SET minute = date_trunc('minute', now()), seen_at = now() + interval '9 s'"
        )
        take(archive)
        assert samples(archive)[0]["left_pending"] == 3

    def test_samples_older_than_thirty_days_go_with_the_next_one(self, archive):
        archive.given()
        for days in (29, 31):
            archive.change(
                "INSERT INTO backlog_sample VALUES (:workspace, now() - make_interval(days => :days), 1, 1, now(), 0)",
                days=days,
            )
        take(archive)
        assert len(samples(archive)) == 2

    def test_only_the_points_that_recall_uses_count(self, archive, owner):
        archive.given()
        archive.certify_all()
        archive.change("UPDATE embedding_identity SET live = true")
        owner.execute("INSERT INTO embedding_identity VALUES (%s, 'filled', '{}')", [archive.workspace])
        with archive.database.transaction(archive.workspace) as tx:
            history.sample(tx, "filled")
        assert samples(archive)[0]["pending"] == 0


class TestHistory:
    def test_the_present_is_part_of_it_without_any_sample(self, archive):
        archive.given()
        archive.change("UPDATE projection SET wanted_at = now() - interval '10 minutes'")
        *before, last = look_back(archive)
        assert [(each.pending, each.lag_seconds) for each in before] == [(0, 0)] * 3
        assert (last.pending, last.lag_seconds) == (3, pytest.approx(600, abs=60))

    def test_what_was_left_before_is_found_however_long_ago(self, archive):
        archive.given()
        archive.certify_all()
        archive.change(
            "INSERT INTO backlog_sample VALUES "
            "(:workspace, now() - interval '9 h', 1, 1, now() - interval '9 h', 0, NULL), "
            "(:workspace, now() - interval '5 h', 4, 1, now() - interval '5 h', 2, now() - interval '6 h')"
        )
        found = look_back(archive)
        assert [each.pending for each in found] == [2, 2, 2, 2]
        assert found[-1].lag_seconds == pytest.approx(6 * 3600, abs=60)
        assert [each.pending for each in look_back(archive, hours=10, buckets=5)] == [1, 0, 4, 2, 2]
        assert found[0].as_json() == {"at": found[0].at.isoformat(), "pending": 2, "lag_seconds": found[0].lag_seconds}

    def test_one_workspace_sees_nothing_of_another(self, archive, runtime):
        archive.given()
        take(archive)
        other = type(archive)(runtime, "ward")
        other.given()
        other.certify_all()
        assert [each.pending for each in look_back(other)] == [0, 0, 0, 0]

    @pytest.mark.parametrize(("hours", "buckets"), [(1, 0), (0, 4), (-1, 4), (1e-9, 1000)])
    def test_a_time_without_length_has_no_history(self, archive, hours, buckets):
        archive.given()
        with pytest.raises(InvalidInput, match="no history"):
            look_back(archive, hours=hours, buckets=buckets)
