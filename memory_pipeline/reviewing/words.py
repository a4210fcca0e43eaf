"""The words in which people are told what a review shows and does, on the command line and on pages alike. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_pipeline.archive.effects import Change
from memory_pipeline.cards import Family, Flag
from memory_pipeline.ledger import DecisionType

if TYPE_CHECKING:
    from memory_pipeline.archive.duplicates import Alike
    from memory_pipeline.archive.effects import Effect
    from memory_pipeline.ledger import Decision

_DONE = {
    DecisionType.MEMORY_PROMOTED: "promoted",
    DecisionType.MEMORY_PROMOTION_DECLINED: "declined",
    DecisionType.DECISION_RETRACTED: "retracted",
    DecisionType.PHASE_REOPENED: "reopened",
    DecisionType.CONCEPT_CLARIFIED: "taken",
    DecisionType.MEMORY_REJECTED: "rejected",
}
_CHANGES = {
    Change.CREATED: "is made",
    Change.JOINED: "has this session as one more source",
    Change.CHANGED: "changes",
    Change.WITHDRAWN: "loses a source",
    Change.DELETED: "is deleted, since nothing stands behind it any more",
}


def recorded(decision: Decision) -> str:
    """What a decision that was recorded does."""
    return f"{_DONE[DecisionType(decision.type)]} {named(decision)}"


def named(decision: Decision) -> str:
    """What a decision is about."""
    target = decision.detail.startswith(("seq:", "phase:"))
    return f"{decision.subject} ({decision.detail})" if target else decision.subject


def told(effect: Effect) -> str:
    """What happened to a card, in a sentence."""
    card = f"{effect.card_id} ({effect.family})" if effect.card_id else f"a card ({effect.family})"
    kept = f"; {effect.sources} source(s) behind it" if effect.change is not Change.DELETED else ""
    said = "; its text changes" if effect.rewritten else ""
    flagged = "".join(f"; flagged {flag}: {Flag(flag).meaning}" for flag in effect.flags if flag in set(Flag))
    return f"{card} «{effect.title}» {_CHANGES[effect.change]}{said}{kept}{flagged}."


def how_alike(other: Alike) -> str:
    """How a card is like what is to be decided about."""
    return {
        "form": "says the same but for form",
        "near": f"says nearly the same ({other.likeness:.0%})",
        "subject": "says something else of the same subject",
    }[other.kind]


def alike(other: Alike) -> str:
    """A card that is like what is to be decided about, with what it says."""
    family = "" if other.family is Family.CONCEPT else f" ({other.family})"
    return f"{other.card.card_id}{family} {how_alike(other)}: {other.card.subject}: {other.card.detail}"
