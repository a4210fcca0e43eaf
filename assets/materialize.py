"""Materializes every asset of some workspaces here and now, with the instance of DAGSTER_HOME and without a daemon.

    python -m assets.materialize --workspace psd --json

Standard output holds the outcome alone.
"""

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import click
from dagster import DagsterInstance, ExecuteInProcessResult

from assets.common import PARTITIONS
from memory_pipeline.definitions import defs
from sensors.jobs import refresh
from sensors.launcher import PROCESS_TAG, this_process

# Each error is part of the outcome; Dagster's console would add a page of its own frames.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@click.command()
@click.option("--workspace", "-w", "workspaces", multiple=True, required=True, help="Which workspace (repeatable).")
@click.option("--json", "json_output", is_flag=True, help="Print the outcome as JSON.")
def main(workspaces: Sequence[str], *, json_output: bool) -> None:
    """Materialize every asset of the workspaces; exit code 1 when one of them failed."""
    warnings.simplefilter("ignore")  # of Dagster's preview and beta features, which are no news to whoever runs this
    with DagsterInstance.get() as instance:
        outcome = materialize(instance, workspaces)
    click.echo(json.dumps(outcome, ensure_ascii=False, indent=2) if json_output else _lines(outcome))
    sys.exit(0 if outcome["succeeded"] else 1)


def materialize(instance: DagsterInstance, workspaces: Iterable[str]) -> dict[str, Any]:
    """Run the job over every asset for each workspace, one after the other; one that fails stops no other.

    Returns:
        `succeeded`; `assets`: by workspace and asset whether it was materialized, or the error; `checks`: the last
        outcome of each, over all workspaces.
    """
    job = defs.resolve_job_def(refresh.name)
    assets, checks = {}, {}
    for workspace in workspaces:
        instance.add_dynamic_partitions(PARTITIONS, [workspace])
        result = job.execute_in_process(
            instance=instance,
            partition_key=workspace,
            run_config=_QUIET,
            tags={PROCESS_TAG: this_process()},
            raise_on_error=False,
        )
        assets[workspace] = _assets(result)
        checks.update({check["name"]: check for check in _checks(result)})
    succeeded = all(asset["materialized"] for found in assets.values() for asset in found.values())
    return {"succeeded": succeeded, "assets": assets, "checks": list(checks.values())}


def _assets(result: ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    planned = sorted(spec.key for spec in defs.resolve_all_asset_specs())
    made = {event.asset_key for event in result.get_asset_materialization_events()}
    errors = {event.step_key: _error(event) for event in result.get_step_failure_events()}
    return {
        key.to_user_string(): {
            "materialized": key in made,
            "error": None if key in made else errors.get(key.to_user_string(), "not run: an earlier asset failed"),
        }
        for key in planned
    }


def _error(event: Any) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    return str(failure.error.message).strip() if failure.error else "failed"


def _checks(result: ExecuteInProcessResult) -> list[dict[str, Any]]:
    return [
        {
            "name": evaluation.check_name,
            "asset": evaluation.asset_key.to_user_string(),
            "passed": evaluation.passed,
            "severity": evaluation.severity.value,
            "summary": evaluation.description,
        }
        for evaluation in result.get_asset_check_evaluations()
    ]


def _lines(outcome: dict[str, Any]) -> str:
    lines = [
        f"{workspace}  {name}: {asset['error'] or 'materialized'}"
        for workspace, assets in outcome["assets"].items()
        for name, asset in assets.items()
    ]
    lines += [f"{c['name']}: {'passed' if c['passed'] else c['severity']}: {c['summary']}" for c in outcome["checks"]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
