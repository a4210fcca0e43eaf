"""What comes from outside: session ledgers, and the edits that administrators submitted."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, MaterializeResult, asset

from assets.common import OWNERS, RETRIES, WORKSPACES, Stopwatch, translated
from memory_pipeline.archive import queue, waiting, workspaces
from memory_pipeline.archive.ingest import prepare
from memory_pipeline.archive.sessions import synchronize
from memory_pipeline.archive.status import ledger_counts
from memory_pipeline.resources import Memory

if TYPE_CHECKING:
    import pandas as pd


@asset(
    group_name="sources",
    kinds={"postgres", "json"},
    owners=OWNERS,
    partitions_def=WORKSPACES,
    retry_policy=RETRIES,
)
def session_ledgers(context: AssetExecutionContext, memory: Memory) -> MaterializeResult[Any]:
    """The archive's copy of the workspace's session directories: every decision that was ever read.

    Only what changed is read. A line that cannot be used is quarantined, and nothing that was read before is withdrawn.
    """
    watch, workspace = Stopwatch(), context.partition_key
    with translated():
        runtime = memory.runtime
        prepare(runtime.database, workspace, runtime.settings, runtime.identity)
        report = synchronize(runtime.database, runtime.settings.sessions, workspace)
        with runtime.database.transaction(workspace) as tx:
            counts, table = ledger_counts(tx), waiting.decision_counts(tx)
    numbers = {"sessions_read": report.read, "new_decisions": report.decisions}
    numbers |= {name: counts[name] for name in ("sessions", "decisions", "effective", "faults")}
    return watch.result(numbers, table)


@asset(group_name="sources", kinds={"postgres"}, owners=OWNERS, partitions_def=WORKSPACES, retry_policy=RETRIES)
def admin_edits(context: AssetExecutionContext, memory: Memory) -> MaterializeResult[Any]:
    """The edits that administrators submitted in bulk, applied in their order, each with its principal's rights.

    One that is refused is kept with its reason, to be mended and submitted again, and stops none of the others.
    """
    watch, workspace = Stopwatch(), context.partition_key
    with translated():
        database, identity = memory.runtime.database, memory.runtime.identity
        # Beside the ledgers that are about to make the workspace there can be no edits yet.
        known = workspace in workspaces.names(database)
        report = queue.apply_waiting(database, workspace, identity) if known else queue.QueueReport()
    numbers = {"applied": report.applied, "refused": len(report.refused), "waiting": report.waiting}
    return watch.result(numbers, _refusals(report.refused))


def _refusals(refused: Sequence[queue.Refusal]) -> "pd.DataFrame | None":
    import pandas as pd  # noqa: PLC0415  # half a second that loading the definitions does not need

    return pd.DataFrame([asdict(refusal) for refusal in refused]) if refused else None
