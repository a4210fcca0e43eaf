"""The jobs. Each that materializes an asset also runs its checks: without them, the outcome shown would be cleared."""

from dagster import AssetSelection, RunConfig, RunRequest, define_asset_job
from dagster._core.storage.tags import PRIORITY_TAG

from assets.index import Projection

LAST = "-1"
"""The priority of runs that let every other run in the queue go first."""

INDEX_ASSETS = ("memory_index", "solved_question_index")


def projection_config(config: Projection) -> RunConfig:
    """The run configuration that gives every index asset this configuration."""
    return RunConfig(ops=dict.fromkeys(INDEX_ASSETS, config))


def request(workspace: str) -> RunRequest:
    """A run of a workspace as a sensor asks for it: what waits for its next try goes on waiting."""
    return RunRequest(partition_key=workspace, run_config=projection_config(Projection(retry_now=False)))


refresh = define_asset_job(
    "refresh",
    selection=AssetSelection.all(),
    description="Reads the workspace's sessions, brings its cards up to date, and projects them into the index.",
)

apply_edits = define_asset_job(
    "apply_edits",
    selection=AssetSelection.assets("admin_edits").downstream(),
    description="Applies the edits that wait, and brings cards and index up to date; no session is read.",
)

reproject = define_asset_job(
    "reproject",
    selection=AssetSelection.groups("index"),
    description="Brings the workspace's points to what the archive says; no session is read.",
)

audit = define_asset_job(
    "audit",
    selection=AssetSelection.groups("index"),
    config=projection_config(Projection(repair=True)),
    tags={PRIORITY_TAG: LAST},
    description="Compares the workspace's points with the archive, mends what differs, and checks again.",
)
