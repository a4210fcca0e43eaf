"""What is derived: points in Qdrant, each certified once the index confirmed that it holds what the archive wants."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster import AssetExecutionContext, Config, FreshnessPolicy, MaterializeResult, asset
from pydantic import Field

from assets.archive import memory_cards, solved_question_cards
from assets.common import OWNERS, RETRIES, WORKSPACES, Stopwatch, translated
from memory_pipeline.archive import identities, projections
from memory_pipeline.archive.latency import Latency, latency
from memory_pipeline.cards import Collection
from memory_pipeline.propagation import AuditReport, Difference, project, rebuild, repair
from memory_pipeline.resources import Memory

# The heartbeat of the daily audit, no more: it only knows when something last ran.
HEARTBEAT = FreshnessPolicy.time_window(fail_window=timedelta(hours=30))


class Projection(Config):
    """How the index assets are brought up to date."""

    retry_now: bool = Field(default=True, description="try at once what waits for its next try after a failure")
    repair: bool = Field(default=False, description="compare the real index with the archive first, and mend it")
    rebuild: bool = Field(default=False, description="mend it, and write every point anew, recall going on")


@asset(
    group_name="index",
    kinds={"qdrant"},
    owners=OWNERS,
    partitions_def=WORKSPACES,
    retry_policy=RETRIES,
    freshness_policy=HEARTBEAT,
    deps=[memory_cards],
)
def memory_index(context: AssetExecutionContext, memory: Memory, config: Projection) -> MaterializeResult[Any]:
    """The points of the workspace's concepts, rules and pitfalls, and of the questions that they came from."""
    return _project(context, memory, config, (Collection.MEMORY_CARDS, Collection.QUESTIONS))


@asset(
    group_name="index",
    kinds={"qdrant"},
    owners=OWNERS,
    partitions_def=WORKSPACES,
    retry_policy=RETRIES,
    freshness_policy=HEARTBEAT,
    deps=[solved_question_cards],
)
def solved_question_index(context: AssetExecutionContext, memory: Memory, config: Projection) -> MaterializeResult[Any]:
    """The points of the workspace's solved questions."""
    return _project(context, memory, config, (Collection.SOLVED_QUESTIONS,))


def _project(
    context: AssetExecutionContext, memory: Memory, config: Projection, collections: Sequence[Collection]
) -> MaterializeResult[Any]:
    watch, workspace = Stopwatch(), context.partition_key
    numbers: dict[str, int | float]
    with translated():
        if config.rebuild:
            numbers = _rebuilt(context, memory, collections)
        else:
            mended = _mended(context, repair(memory.runtime, workspace, collections)) if config.repair else {}
            # A step that Dagster tries again has just put its items off.
            again = config.retry_now or context.retry_number > 0
            numbers = {**asdict(project(memory.runtime, workspace, collections, retry_now=again)), **mended}
        states, took = _propagated(memory, workspace, collections)
    now = datetime.now(UTC)
    lag = max((now - s.oldest_pending).total_seconds() if s.oldest_pending else 0.0 for s in states)
    numbers |= {"certified": sum(s.certified for s in states), "lag_seconds": round(lag, 3)}
    if took.p50 is not None and took.p95 is not None:
        numbers |= {"propagation_p50_seconds": round(took.p50, 3), "propagation_p95_seconds": round(took.p95, 3)}
    return watch.result(numbers, _table(states))


def _rebuilt(
    context: AssetExecutionContext, memory: Memory, collections: Sequence[Collection]
) -> dict[str, int | float]:
    """The numbers of a rebuild: how many points it wrote that were as they should be, and the others by difference."""
    report = rebuild(memory.runtime, context.partition_key, collections)
    return {**asdict(report.projection), "renewed": report.renewed, **_mended(context, report.mended)}


def _mended(context: AssetExecutionContext, found: AuditReport) -> dict[str, int]:
    """What the audit found, took out of the index and made pending, by kind of difference."""
    mended = {f"mended_{d.value}": found.count(d) for d in Difference if d.mendable}
    if any(mended.values()):
        context.log.warning("the index differed from the archive and is mended: %s", mended)
    return mended


def _propagated(
    memory: Memory, workspace: str, collections: Sequence[Collection]
) -> tuple[list[projections.CollectionState], Latency]:
    """How far the collections are, and how long it took from the archive to them."""
    with memory.runtime.database.transaction(workspace) as tx:
        serving = identities.serving(tx, memory.runtime.identity.hash)
        states, took = projections.states(tx, serving), latency(tx, serving, collections)
    return [state for state in states if state.collection in collections], took


def _table(states: Sequence[projections.CollectionState]) -> Any:
    import pandas as pd  # noqa: PLC0415  # half a second that loading the definitions does not need

    rows = {state.collection.value: {"certified": state.certified, "pending": state.pending} for state in states}
    return pd.DataFrame.from_dict(rows, orient="index")
