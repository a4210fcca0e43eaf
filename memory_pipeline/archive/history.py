"""How much was pending when, and for how long: samples that projections leave behind, and what they tell of a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive.queries import load
from memory_pipeline.errors import InvalidInput

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("history")


@dataclass(frozen=True, slots=True)
class Moment:
    """What was seen in one bucket of time.

    Attributes:
        at: when it begins.
        pending: the most points that were pending, of those that recall uses.
        lag_seconds: the greatest age of the oldest of them.
    """

    at: datetime
    pending: int = 0
    lag_seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The moment as JSON-ready values."""
        return {**asdict(self), "at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen pending in one minute, or is now.

    Attributes:
        minute: its beginning; of the present, the present.
        pending: the most points.
        lag_seconds: the greatest age of the oldest of them.
        seen_at: when it was looked last.
        left_pending: how many were pending then.
        left_since: since when the oldest of these was; None when there was none.
    """

    minute: datetime
    pending: int
    lag_seconds: float
    seen_at: datetime
    left_pending: int = 0
    left_since: datetime | None = None


def sample(tx: Tx, configured: str) -> None:
    """Keep what is pending now for the identity that recall uses, and drop what is older than 30 days.

    At most one row for each minute is kept, with the greatest of what was seen in it.

    Args:
        tx: an open transaction that looks at nothing but this: what it sees is dated by the statement.
        configured: the hash of the settings' embedding identity, which recall uses where nothing is recorded.
    """
    tx.run(_SQL["sample"], configured=configured)


def now(tx: Tx) -> datetime:
    """The present moment of the transaction, by the clock that samples are dated with."""
    moment: datetime = tx.row(_SQL["now"])["at"]
    return moment


def history(tx: Tx, configured: str, *, since: datetime, until: datetime, buckets: int) -> tuple[Moment, ...]:
    """The most that was pending in each of some equal stretches of time, and how old it was at most; in one statement.

    A projection with something to do looks when it begins and when it ends, and nothing else does. So what is said of
    the time between two looks is this, and no more:

    - What the last look left is taken to have been there until the next one, and its oldest point to have grown older
      by the clock. Nothing but a projection completes a point, and one that was killed did not look at its end.
    - While a projection is at work, what it began with counts as being there until it ends.
    - What became pending after the last look is not known before the next one. That says how old it is, in its own
      bucket: buckets before it may show 0 although something was waiting already.
    - A look is dated by its minute, and may count in a bucket that ended within this.

    The present is the last look, in the bucket that it falls into, if it does. Of later buckets, and of what is older
    than 30 days, nothing is known, and they show 0.

    Args:
        tx: an open transaction.
        configured: the hash of the settings' embedding identity, which recall uses where nothing is recorded.
        since: when the first bucket begins, with its zone.
        until: when the last one ends.
        buckets: how many there are.

    Returns:
        the buckets in their order.

    Raises:
        InvalidInput: there is no bucket, or it has no length.
    """
    if buckets < 1 or (until - since) // buckets <= timedelta(0):
        raise InvalidInput(f"no history of {buckets} buckets lies between {since.isoformat()} and {until.isoformat()}")
    rows = tx.rows(_SQL["looks"], configured=configured, since=since, until=until)
    looks = [Look(**row) for row in rows]
    return moments(looks, since=since, until=until, buckets=buckets)


def moments(looks: Sequence[Look], *, since: datetime, until: datetime, buckets: int) -> tuple[Moment, ...]:
    """What looks tell of each bucket (pure); see `history`.

    Args:
        looks: by time, the present last.
        since: when the first bucket begins.
        until: when the last one ends.
        buckets: how many there are.
    """
    width = (until - since) / buckets
    most, greatest = [0] * buckets, [0.0] * buckets
    for at, pending, lag in chain(_seen(looks, since, until), _left(looks, since, until, width)):
        number = min((at - since) // width, buckets - 1)
        most[number] = max(most[number], pending)
        greatest[number] = max(greatest[number], lag)
    return tuple(Moment(since + width * n, *found) for n, found in enumerate(zip(most, greatest, strict=True)))


def _seen(looks: Sequence[Look], since: datetime, until: datetime) -> Iterator[tuple[datetime, int, float]]:
    """When how many points of which age were seen."""
    for look in looks:
        if since <= look.seen_at and look.minute <= until:
            yield max(look.minute, since), look.pending, look.lag_seconds


def _left(
    looks: Sequence[Look], since: datetime, until: datetime, width: timedelta
) -> Iterator[tuple[datetime, int, float]]:
    """The same of what was left, once for each bucket in which it was still there: its age at the end of that."""
    for look, following in pairwise(looks):
        at, end = max(look.seen_at, since), min(following.minute, until)
        while look.left_since is not None and at < end:
            next_bucket = since + width * ((at - since) // width + 1)
            yield at, look.left_pending, (min(next_bucket, end) - look.left_since).total_seconds()
            at = next_bucket
