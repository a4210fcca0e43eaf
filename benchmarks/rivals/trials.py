"""Does each competitor the same harm, and tells by one rule who noticed, what mended it, and what was lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from benchmarks.rivals.base import Card, Competitor, Did, Model

_LATER = 15.0  # seconds: this project tries again, of itself, what failed once or twice


class State(StrEnum):
    """What a search makes of a card, compared with what was saved of it last."""

    RIGHT = "right"
    STALE = "stale"
    """What it said before is still served."""
    MISSING = "missing"
    """It is not found, by what it says or by what it said."""


@dataclass(frozen=True, slots=True)
class Affected:
    """A card before and after what was saved of it last; None where there is none."""

    before: Card | None
    now: Card | None


States = Counter[State]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one harm.

    Attributes:
        harm: what was done.
        competitor: to whom.
        of: how many cards it concerns.
        at_once: what a search makes of these right after the harm.
        after_run: likewise after the next ordinary run.
        after_mending: likewise after what the competitor has for mending, and a run; None where it has nothing.
        noticed: who said that something is wrong: "run", an examination, or "nobody".
        too_many: points of these cards that the store holds at the end beyond one for each.
    """

    harm: str
    competitor: str
    of: int
    at_once: States
    after_run: States
    after_mending: States | None
    noticed: str
    too_many: int

    @property
    def mended(self) -> str:
        """After what all was right."""
        if self.at_once[State.RIGHT] == self.of:
            return "never wrong"
        if self.after_run[State.RIGHT] == self.of:
            return "run"
        return "repair" if self.after_mending and self.after_mending[State.RIGHT] == self.of else "never"

    @property
    def lost(self) -> States:
        """What is wrong for good, as far as ordinary means go."""
        end = self.after_run if self.after_mending is None else self.after_mending
        return Counter({state: count for state, count in end.items() if state is not State.RIGHT})

    def as_json(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        # Not by `asdict`, which cannot copy counters.
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**shown, "mended": self.mended, "lost": self.lost}


def trials(competitor: Competitor, cards: Sequence[Card], harmed: int) -> Iterator[Outcome]:
    """Harm one after the other; after each the index is mended as far as the competitor can.

    Args:
        competitor: with these cards saved and indexed.
        cards: what it holds.
        harmed: how many cards each harm concerns; each takes others.
    """
    trial = _Trial(competitor)
    share = iter([cards[start : start + harmed] for start in range(0, len(cards), harmed)])
    yield trial.delete(next(share))
    yield trial.lose(next(share))
    yield from trial.refuse(next(share))
    yield trial.change_model(next(share), next(share)[:1])


class _Trial:
    def __init__(self, competitor: Competitor) -> None:
        self._to = competitor

    def delete(self, cards: Sequence[Card]) -> Outcome:
        gone = cards[:1]
        self._to.delete([card.card_id for card in gone])
        return self._outcome("a card was deleted", [Affected(card, None) for card in gone])

    def lose(self, cards: Sequence[Card]) -> Outcome:
        self._to.lose_points([card.card_id for card in cards])
        return self._outcome("points were deleted from the store", [Affected(card, card) for card in cards])

    def refuse(self, cards: Sequence[Card]) -> Iterator[Outcome]:
        changed = [Affected(card, self._change(card)) for card in cards]
        late = len(cards) * 3 // 4  # so that batches come before it and after it
        self._to.refuse(cards[late].card_id)
        failed = self._to.run()
        others = [*changed[:late], *changed[late + 1 :]]
        yield self._outcome("of changed cards one is refused: the others", others, said=failed)
        self._to.refuse("")
        time.sleep(_LATER)
        yield self._outcome("… the store takes it again: all of them", changed)

    def change_model(self, cards: Sequence[Card], changed: Sequence[Card]) -> Outcome:
        self._to.change_model(Model("another"))
        for card in changed:
            self._change(card)
        return self._outcome(
            "another model of the same dimension", [Affected(card, card) for card in cards], besides=len(changed)
        )

    def _change(self, card: Card) -> Card:
        now = replace(card, detail=f"{card.detail} aggiornato")
        self._to.save([now])
        return now

    def _outcome(
        self, harm: str, affected: Sequence[Affected], *, besides: int = 0, said: Did | None = None
    ) -> Outcome:
        """See what came of a harm; a run that does more than the changes made besides ask for has noticed it."""
        at_once = self._states(affected)
        run = self._to.run()
        after_run, differing = self._states(affected), self._to.examine()
        after_mending = self._mended(affected) if differing is not None else None
        if max(run.written, run.removed) > besides or any(each.error or each.left for each in (run, said) if each):
            noticed = "run"
        else:
            noticed = "audit" if differing else "nobody"
        too_many = max(self._to.points(_ids(affected)) - sum(each.now is not None for each in affected), 0)
        return Outcome(harm, self._to.name, len(affected), at_once, after_run, after_mending, noticed, too_many)

    def _mended(self, affected: Sequence[Affected]) -> States:
        self._to.mend()
        self._to.run()
        return self._states(affected)

    def _states(self, affected: Sequence[Affected]) -> States:
        return Counter(state(self._to, each) for each in affected)


def _ids(affected: Sequence[Affected]) -> list[str]:
    return [card.card_id for each in affected if (card := each.now or each.before)]


def state(competitor: Competitor, card: Affected) -> State:
    """What a search makes of a card."""
    found = competitor.search(card.now.text) if card.now else []
    if card.now and found and (found[0].card_id, found[0].text) == (card.now.card_id, card.now.text):
        return State.RIGHT
    if (
        card.before
        and card.before != card.now
        and any(hit.card_id == card.before.card_id for hit in competitor.search(card.before.text))
    ):
        return State.STALE
    return State.MISSING if card.now else State.RIGHT
