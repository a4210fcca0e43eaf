"""What the commands share: options, opened services, and how outcomes by workspace are shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from memory_pipeline.cards import workspace_name
from memory_pipeline.errors import ArchiveUnavailable, MemoryPipelineError, SchemaOutOfDate
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memory_pipeline.curation import Curation

as_json = click.option(
    "--json",
    "json_output",
    is_flag=True,
    help="Print JSON, and nothing else, on standard output, errors included.",
)
workspace_option = click.option("--workspace", "-w", required=True, help="Which workspace.")
workspaces_option = click.option("--workspace", "-w", "names", multiple=True, help="Only this workspace (repeatable).")


@contextmanager
def opened_runtime(*, create: bool = False) -> Iterator[Runtime]:
    """The services of this process's settings, closed at the end."""
    with Runtime(load_settings(), create=create) as runtime:
        yield runtime


@contextmanager
def opened_curation() -> Iterator[Curation]:
    """The administration on behalf of whom the settings name, over services that are closed at the end."""
    from memory_pipeline.curation import Curation

    with opened_runtime() as runtime:
        yield Curation(runtime)


def known_workspaces(runtime: Runtime) -> list[str]:
    """Every workspace of the archive."""
    from memory_pipeline.archive import workspaces

    return workspaces.names(runtime.database)


def for_each(names: tuple[str, ...] | list[str], work: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Do the work for each workspace; one that fails stops no other, unless the archive itself is away."""
    names = [workspace_name(name) for name in names]
    done: dict[str, Any] = {}
    errors: dict[str, MemoryPipelineError] = {}
    for name in names:
        try:
            done[name] = work(name)
        except (ArchiveUnavailable, SchemaOutOfDate):
            raise
        except MemoryPipelineError as error:
            errors[name] = error
    return {"workspaces": done, "errors": errors}


def finish(outcome: dict[str, Any], table: Callable[[dict[str, Any]], None], *, json_output: bool) -> None:
    """Show the outcome, then the errors on standard error; they decide the exit code."""
    errors: dict[str, MemoryPipelineError] = outcome["errors"]
    outcome["errors"] = {name: str(error) for name, error in errors.items()}
    if json_output:
        print_json(outcome)
    elif outcome["workspaces"] or not errors:
        table(outcome)
    for name, error in errors.items():
        click.echo(f"error: {name}: {' '.join(str(error).split())}", err=True)
    if errors:
        sys.exit(next(iter(errors.values())).exit_code)


def somebody_types() -> bool:
    """Whether standard input is somebody at a terminal; it may be closed altogether."""
    return sys.stdin is not None and sys.stdin.isatty()


def print_json(value: object) -> None:
    """Print a value as JSON on standard output, in ASCII where that could not write every character."""
    every = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    click.echo(json.dumps(value, ensure_ascii=not every, indent=2, default=_json_value))


def _json_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
