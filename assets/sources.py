"""What comes from outside: session ledgers, and the edits that administrators submitted."""

from dataclasses import asdict
from typing import Any

from dagster import AssetExecutionContext, MaterializeResult, asset

from assets.common import OWNERS, RETRIES, WORKSPACES, Stopwatch, translated
from memory_pipeline.archive import waiting, workspaces
from memory_pipeline.archive.ingest import prepare
from memory_pipeline.archive.sessions import synchronize
from memory_pipeline.archive.status import workspace_status
from memory_pipeline.resources import Memory


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
            state, table = workspace_status(tx, runtime.identity.hash), waiting.decision_counts(tx)
    numbers = {"sessions_read": report.read, "new_decisions": report.decisions}
    numbers |= {name: asdict(state)[name] for name in ("sessions", "decisions", "effective", "faults")}
    return watch.result(numbers, table)


@asset(group_name="sources", kinds={"postgres"}, owners=OWNERS, partitions_def=WORKSPACES, retry_policy=RETRIES)
def admin_edits(context: AssetExecutionContext, memory: Memory) -> MaterializeResult[Any]:
    """The edits that administrators submitted and that wait to be applied. They are counted here, not yet applied."""
    watch, workspace = Stopwatch(), context.partition_key
    with translated():
        database = memory.runtime.database
        # Beside the ledgers that are about to make the workspace there can be no edits yet.
        count = waiting.waiting_edits(database, workspace) if workspace in workspaces.names(database) else 0
    return watch.result({"waiting_edits": count})
