"""The authority: cards in PostgreSQL, made from what reviewers decided."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dagster import AssetExecutionContext, MaterializeResult, asset

from assets.common import OWNERS, RETRIES, WORKSPACES, Stopwatch, translated
from assets.sources import admin_edits, session_ledgers
from memory_pipeline.archive.intake import IntakeReport, intake_concepts, intake_solved_questions
from memory_pipeline.archive.status import card_counts
from memory_pipeline.cards import Family
from memory_pipeline.resources import Memory


@asset(
    group_name="archive",
    kinds={"postgres"},
    owners=OWNERS,
    partitions_def=WORKSPACES,
    retry_policy=RETRIES,
    deps=[session_ledgers, admin_edits],
)
def memory_cards(context: AssetExecutionContext, memory: Memory) -> MaterializeResult[Any]:
    """The workspace's concept cards: one for each promoted clarification, equal ones joined, with their sources."""
    families = (Family.CONCEPT, Family.SQL_RULE, Family.PITFALL)
    return _intake(intake_concepts, context.partition_key, memory, families)


@asset(
    group_name="archive",
    kinds={"postgres"},
    owners=OWNERS,
    partitions_def=WORKSPACES,
    retry_policy=RETRIES,
    deps=[session_ledgers, admin_edits],
)
def solved_question_cards(context: AssetExecutionContext, memory: Memory) -> MaterializeResult[Any]:
    """The workspace's solved questions: one for each finalized session whose SQL was approved."""
    return _intake(intake_solved_questions, context.partition_key, memory, (Family.SOLVED_QUESTION,))


def _intake(
    intake: Callable[..., IntakeReport], workspace: str, memory: Memory, families: tuple[Family, ...]
) -> MaterializeResult[Any]:
    import pandas as pd  # noqa: PLC0415  # half a second that loading the definitions does not need

    watch = Stopwatch()
    with translated():
        runtime = memory.runtime
        report = intake(runtime.database, workspace, principal=runtime.settings.acting_principal)
        with runtime.database.transaction(workspace) as tx:
            cards = card_counts(tx)
    table = pd.DataFrame({"cards": {family.value: cards[family.value] for family in families}})
    return watch.result({**asdict(report), "cards": sum(cards[family.value] for family in families)}, table)
