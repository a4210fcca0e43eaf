"""What Dagster finds here: a table of contents."""

from dagster import Definitions, in_process_executor

from assets import archive, checks, dependencies, duplicates, index, sources
from memory_pipeline.resources import Memory
from sensors import edits, jobs, ledgers, reprojection, retention, schedules

defs = Definitions(
    assets=[
        sources.session_ledgers,
        sources.admin_edits,
        archive.memory_cards,
        archive.solved_question_cards,
        index.memory_index,
        index.solved_question_index,
    ],
    asset_checks=[
        checks.ledgers_readable,
        checks.promotions_reviewed,
        checks.propagation_complete,
        checks.index_matches_archive,
        dependencies.dependencies_present,
        duplicates.near_duplicates,
    ],
    jobs=[jobs.refresh, jobs.apply_edits, jobs.reproject, jobs.audit, retention.trim_history],
    sensors=[ledgers.ledger_sensor, edits.edit_sensor, reprojection.reprojection_sensor],
    schedules=[schedules.daily_audit, schedules.daily_trim],
    resources={"memory": Memory()},
    # A step of its own process costs seconds to start, and the steps of a run share the model and the connections.
    executor=in_process_executor,
)
