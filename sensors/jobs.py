"""The jobs. Each that materializes an asset also runs its checks: without them, the outcome shown would be cleared."""

from dagster import AssetSelection, RunConfig, define_asset_job

from assets.index import Projection

INDEX_ASSETS = ("memory_index", "solved_question_index")


def projection_config(config: Projection) -> RunConfig:
    """The run configuration that gives every index asset this configuration."""
    return RunConfig(ops=dict.fromkeys(INDEX_ASSETS, config))


refresh = define_asset_job(
    "refresh",
    selection=AssetSelection.all(),
    description="Reads the workspace's sessions, brings its cards up to date, and projects them into the index.",
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
    description="Compares the workspace's points with the archive, mends what differs, and checks again.",
)
