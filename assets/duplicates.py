"""The check of cards that seem to say the same: it proposes, and merges none."""

from collections.abc import Mapping

from dagster import AssetCheckResult, AssetCheckSeverity, asset_check

from assets.archive import memory_cards
from assets.outcomes import LISTED, Outcome, of_each_workspace, with_broken, workspace_names
from memory_pipeline.archive.duplicates import Proposal, Proposals, proposed
from memory_pipeline.resources import Memory


@asset_check(asset=memory_cards)
def near_duplicates(memory: Memory) -> AssetCheckResult:
    """Whether no two cards of a workspace say the same, but for form or nearly: those that do are worth merging.

    Of a general rule and a more specific one both are kept, and they are not named.
    """
    found, broken = of_each_workspace(workspace_names(memory), lambda name: _proposals(memory, name))
    return with_broken(_proposed(found), broken).result()


def _proposals(memory: Memory, workspace: str) -> Proposals:
    with memory.runtime.database.transaction(workspace, snapshot=True) as tx:
        return proposed(tx, LISTED)


def _proposed(found: Mapping[str, Proposals]) -> Outcome:
    form, near = (sum(getattr(each, kind) for each in found.values()) for kind in ("form", "near"))
    listed = sorted(
        ((name, pair) for name, each in found.items() for pair in each.pairs), key=lambda pair: pair[1].rank
    )
    return Outcome(
        passed=not form + near,
        summary=f"{form + near} pair(s) of cards are worth merging: {form} the same but for form, {near} near"
        if form + near
        else "no two cards say the same",
        metadata={
            "same_but_for_form": form,
            "near": near,
            "cards": sum(each.cards for each in found.values()),
            "by_workspace": {name: each.total for name, each in found.items()},
            "not_all_compared": [name for name, each in found.items() if not each.complete],
            "look_at": [_as_row(name, pair) for name, pair in listed[:LISTED]],
        },
        severity=AssetCheckSeverity.WARN,
    )


def _as_row(workspace: str, pair: Proposal) -> dict[str, str]:
    return {
        "workspace": workspace,
        "keep": pair.keep.card_id,
        "other": pair.other.card_id,
        "family": pair.family.value,
        "subject": pair.keep.subject,
        "why": pair.why,
    }
