"""The commands for many cards at once: edits in bulk, and workspaces out and in."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from memory_pipeline import console
from memory_pipeline.cli.common import (
    as_json,
    finish,
    for_each,
    known_workspaces,
    opened_runtime,
    print_json,
    workspace_option,
    workspaces_option,
)

if TYPE_CHECKING:
    from memory_pipeline.archive.queue import State

_STANDARD = "-"
_file_argument = click.argument("file", type=click.File("rb"))


@click.group()
def edits() -> None:
    """Edits in bulk: submit them, look at them, apply them."""


@edits.command()
@_file_argument
@workspace_option
@as_json
def submit(*, file: IO[bytes], workspace: str, json_output: bool) -> None:
    """Let the edits in FILE (JSON lines; - is standard input) wait to be applied, all of them or none."""
    from memory_pipeline.archive import queue

    submitted = queue.read(file)
    with opened_runtime() as runtime, runtime.database.transaction(workspace) as tx:
        count = queue.submit(tx, runtime.settings.acting_principal, submitted)
    if json_output:
        print_json({"submitted": count})
    else:
        click.echo(f"{count} edit(s) wait to be applied, by Dagster or by `memory-pipeline edits apply`.")


@edits.command(name="list")
@workspace_option
@click.option("--state", type=click.Choice(["waiting", "applied", "refused"]), help="Only those.")
@click.option("--limit", "-n", default=100, show_default=True, type=click.IntRange(min=1), help="The last so many.")
@as_json
def list_(*, workspace: str, state: State | None, limit: int, json_output: bool) -> None:
    """Show what was submitted and what became of it."""
    from memory_pipeline.archive import grants, queue

    with opened_runtime() as runtime, runtime.database.transaction(workspace) as tx:
        grants.require_in(tx, runtime.settings.acting_principal, grants.Role.READER)
        found, counts = queue.listed(tx, state, limit=limit), queue.counts(tx)
    if json_output:
        print_json({"edits": [edit.as_json() for edit in found], "counts": counts})
    else:
        console.print_edits(found, counts)


@edits.command(name="apply")
@workspaces_option
@as_json
def apply_(*, names: tuple[str, ...], json_output: bool) -> None:
    """Apply the waiting edits now, each with the rights of whoever submitted it."""
    from memory_pipeline.archive.queue import apply_waiting

    with opened_runtime() as runtime:

        def work(name: str) -> dict[str, Any]:
            return asdict(apply_waiting(runtime.database, name, runtime.identity))

        outcome = for_each(names or known_workspaces(runtime), work)
    finish(outcome, console.applied_table, json_output=json_output)


@edits.command()
@click.argument("edit_ids", nargs=-1, required=True, type=click.IntRange(min=1, max=2**63 - 1), metavar="EDIT...")
@workspace_option
@as_json
def discard(*, edit_ids: tuple[int, ...], workspace: str, json_output: bool) -> None:
    """Drop what each EDIT (its number) contains, refused or waiting, for good; who submitted it and when stays."""
    from memory_pipeline.archive import queue

    with opened_runtime() as runtime, runtime.database.transaction(workspace) as tx:
        count = queue.discard(tx, runtime.settings.acting_principal, edit_ids)
    if json_output:
        print_json({"discarded": count})
    else:
        click.echo(f"{count} edit(s) discarded.")


@click.command(name="export")
@click.argument("file", default="-")
@workspace_option
@as_json
def export_(*, file: str, workspace: str, json_output: bool) -> None:
    """Write a workspace's cards, sources, questions, links and dependencies to FILE (by default standard output)."""
    from memory_pipeline.archive.transfer import export

    if file == _STANDARD and json_output:
        raise click.UsageError("--json: name a FILE, since the export itself goes to standard output")
    with opened_runtime() as runtime, _whole_file(file) as stream:
        done = export(runtime.database, workspace, stream, principal=runtime.settings.acting_principal)
    if json_output:
        print_json(asdict(done))
    elif file != _STANDARD:
        click.echo(f"Written: {_counted(asdict(done))}.")


@click.command(name="import")
@_file_argument
@workspace_option
@as_json
def import_(*, file: IO[bytes], workspace: str, json_output: bool) -> None:
    """Read an export into a workspace that is new or empty, all of it or nothing."""
    from memory_pipeline.archive.transfer import import_workspace

    with opened_runtime() as runtime, _read_twice(file) as stream:
        principal = runtime.settings.acting_principal
        done = import_workspace(runtime.database, workspace, stream, runtime.identity, principal=principal)
    if json_output:
        print_json(asdict(done))
    else:
        click.echo(f"Read: {_counted(asdict(done))}. `memory-pipeline project` brings them into the index.")


@click.command(name="import-legacy")
@_file_argument
@workspace_option
@as_json
def import_legacy_(*, file: IO[bytes], workspace: str, json_output: bool) -> None:
    """Make cards of the clarifications in a legacy registry.jsonl."""
    from memory_pipeline.archive.legacy import import_legacy

    with opened_runtime() as runtime:
        principal = runtime.settings.acting_principal
        report = import_legacy(runtime.database, workspace, file, runtime.identity, principal=principal)
    if json_output:
        print_json(report.as_json())
    else:
        console.print_legacy(report)


@contextmanager
def _whole_file(name: str) -> Iterator[IO[bytes]]:
    """Standard output for -, else a file of that name that appears once it is complete."""
    place = Path(name).resolve()
    if name == _STANDARD or (place.exists() and not place.is_file()):  # a device, a pipe
        with click.open_file(name, "wb") as stream:
            yield stream
        return
    aside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with aside.open("wb") as stream:
            yield stream
        aside.replace(place)
    except OSError as error:  # of a name that nobody gave
        raise OSError(error.errno, error.strerror, name) from None
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _read_twice(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The same bytes in a stream that can go back to its beginning, as a pipe cannot."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy


def _counted(numbers: dict[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in numbers.items())


COMMANDS = (edits, export_, import_, import_legacy_)
