"""The check of what cards depend on. Its own module, since it alone looks into other systems' databases."""

from collections.abc import Mapping

from dagster import AssetCheckResult, AssetCheckSeverity, asset_check

from assets.archive import memory_cards, solved_question_cards
from assets.outcomes import LISTED, Outcome, of_each_workspace, with_broken, workspace_names
from memory_pipeline.catalog import Comparison, compare
from memory_pipeline.resources import Memory


@asset_check(asset=memory_cards, additional_deps=[solved_question_cards])
def dependencies_present(memory: Memory) -> AssetCheckResult:
    """Whether the tables and columns that cards depend on are still there, where a workspace's database is configured.

    It names the cards to look at, and changes none: what becomes of them is for an administrator to say.
    """
    found, broken = of_each_workspace(workspace_names(memory), lambda name: compare(memory.runtime, name))
    return with_broken(_compared(found), broken).result()


def _compared(found: Mapping[str, Comparison | None]) -> Outcome:
    compared = {name: comparison for name, comparison in found.items() if comparison is not None}
    unconfigured = [name for name in found if name not in compared]
    missing = [(name, each) for name, comparison in compared.items() for each in comparison.missing]
    objects = sum(comparison.objects for comparison in compared.values())
    said = [f"{len(missing)} object(s) of {objects} are gone" if missing else f"{objects} object(s) are there"]
    said += [f"no database is configured for {', '.join(unconfigured)}"] if unconfigured else []
    return Outcome(
        passed=not missing,
        summary="; ".join(said)[:2000],
        metadata={
            "objects": objects,
            "gone": len(missing),
            "by_workspace": {name: len(comparison.missing) for name, comparison in compared.items()},
            "not_configured": unconfigured,
            "look_at": [
                {"workspace": name, "gone": str(each), "cards": list(each.card_ids[:LISTED])}
                for name, each in missing[:LISTED]
            ],
        },
        severity=AssetCheckSeverity.WARN,
    )
