"""The command that says whether an installation can do its work."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from memory_pipeline.cli import display
from memory_pipeline.cli.common import as_json, print_json
from memory_pipeline.settings import examine_settings


@click.command()
@as_json
def doctor(*, json_output: bool) -> None:
    """Look at settings, servers, roles, index, model and directories, and say what is wrong and what to do."""
    from memory_pipeline.doctor import FAULT_EXIT_CODE, State, examine, worst

    results = examine(examine_settings())
    if json_output:
        print_json({"state": worst(results), "checks": [asdict(result) for result in results]})
    else:
        display.print_doctor(results)
    if worst(results) is State.FAULT:
        sys.exit(FAULT_EXIT_CODE)


COMMANDS = (doctor,)
