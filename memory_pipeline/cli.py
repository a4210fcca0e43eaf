"""The command line: one command for each use of the library, errors as one line, `--json` for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NoReturn

import click

from memory_pipeline import console
from memory_pipeline.cards import Family
from memory_pipeline.errors import ArchiveUnavailable, MemoryPipelineError, SchemaOutOfDate
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings

_INTERRUPTED = 130

as_json = click.option("--json", "json_output", is_flag=True, help="Print JSON, and nothing else, on standard output.")
workspaces_option = click.option("--workspace", "-w", "names", multiple=True, help="Only this workspace (repeatable).")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memory-pipeline")
def cli() -> None:
    """The memory of a text-to-SQL assistant: session ledgers become verified, recallable cards."""


@cli.command()
@as_json
def migrate(*, json_output: bool) -> None:
    """Make the archive's tables, or bring them up to date (makes the home where there is none)."""
    with _runtime(create=True) as runtime:
        revision = runtime.migrate()
        where = None if not runtime.settings.embedded_archive else str(runtime.settings.home.resolve())
    if json_output:
        _print_json({"revision": revision, "home": where})
    else:
        click.echo(f"The archive is at revision {revision}{f', in {where}' if where else ''}.")


@cli.command()
@workspaces_option
@as_json
def ingest(*, names: tuple[str, ...], json_output: bool) -> None:
    """Read the session directories that changed, and bring the cards up to date. Needs neither index nor model."""
    from memory_pipeline.archive.ingest import ingest as ingest_workspace  # noqa: PLC0415
    from memory_pipeline.archive.ingest import workspaces_to_ingest  # noqa: PLC0415

    with _runtime() as runtime, console.progress("reading sessions") as progress:
        database = runtime.database  # a home without an archive is said before a root without sessions
        listing = workspaces_to_ingest(runtime.settings.sessions)

        def work(name: str) -> dict[str, Any]:
            report = ingest_workspace(database, name, runtime.settings, runtime.identity, progress(name))
            return asdict(report)

        outcome = _each(names or listing.workspaces, work)
    outcome["refused_directories"] = list(listing.refused)
    _finish(outcome, console.ingest_table, json_output=json_output)


@cli.command()
@workspaces_option
@click.option("--retry", is_flag=True, help="Try at once what waits for its next try.")
@as_json
def project(*, names: tuple[str, ...], retry: bool, json_output: bool) -> None:
    """Bring the index to what the archive says."""
    from memory_pipeline.propagation import project as project_workspace  # noqa: PLC0415

    with _runtime() as runtime, console.progress("projecting") as progress:

        def work(name: str) -> dict[str, Any]:
            return asdict(project_workspace(runtime, name, retry_now=retry, progress=progress(name)))

        outcome = _each(names or _known(runtime), work)
    _finish(outcome, console.projection_table, json_output=json_output)


@cli.command()
@workspaces_option
@click.option("--repair", is_flag=True, help="Take out what is wrong and make pending what is missing.")
@as_json
def audit(*, names: tuple[str, ...], repair: bool, json_output: bool) -> None:
    """Compare the real index with the archive, point by point."""
    from memory_pipeline.propagation import Difference  # noqa: PLC0415
    from memory_pipeline.propagation import audit as audit_workspace  # noqa: PLC0415
    from memory_pipeline.propagation import repair as repair_workspace  # noqa: PLC0415

    with _runtime() as runtime:

        def work(name: str) -> dict[str, Any]:
            report = (repair_workspace if repair else audit_workspace)(runtime, name)
            return {"checked": report.checked, **{d.value: report.count(d) for d in Difference}}

        outcome = _each(names or _known(runtime), work)
    _finish(outcome, console.audit_table, json_output=json_output)


@cli.command()
@click.argument("question")
@click.option("--workspace", "-w", required=True, help="Whose cards to search.")
@click.option(
    "--family", "-f", "families", multiple=True, type=click.Choice([f.value for f in Family]), help="Only these."
)
@click.option("--limit", "-n", default=10, show_default=True, help="How many hits at most.")
@click.option("--session", help="Leave out what this session has decided already.")
@click.option("--links", is_flag=True, help="Linked cards come along.")
@click.option("--degraded", is_flag=True, help="Accept a lexical answer when the index or the model is away.")
@as_json
def recall(
    *,
    question: str,
    workspace: str,
    families: tuple[str, ...],
    limit: int,
    session: str | None,
    links: bool,
    degraded: bool,
    json_output: bool,
) -> None:
    """Find the cards that bear on QUESTION; every hit is checked against the archive."""
    from memory_pipeline.recall import Recall  # noqa: PLC0415

    with _runtime() as runtime:
        result = Recall(runtime).search(
            workspace,
            question,
            limit=limit,
            families=families or None,
            session_id=session,
            expand_links=links,
            degraded=degraded,
        )
    if json_output:
        _print_json(result.as_json())
    else:
        console.print_recall(result)


@cli.command()
@as_json
def status(*, json_output: bool) -> None:
    """Cards, pending work, lag and faults, workspace by workspace."""
    from memory_pipeline.archive.status import status as all_status  # noqa: PLC0415

    with _runtime() as runtime:
        found = all_status(runtime.database, runtime.identity.hash)
    if json_output:
        _print_json({"workspaces": {name: state.as_json() for name, state in found.items()}})
    else:
        console.print_status(found)


@cli.command()
@as_json
def demo(*, json_output: bool) -> None:
    """Run the whole pipeline over sample sessions, in a home of its own, and recall from it."""
    from memory_pipeline.demo.run import run_demo  # noqa: PLC0415

    outcome = run_demo()
    if json_output:
        _print_json(outcome.as_json())
    else:
        console.print_demo(outcome)
    if not outcome.succeeded:
        sys.exit(1)


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Dagster has no login: mind what you bind to.")
@click.option("--port", default=3000, show_default=True)
@as_json
def dev(*, host: str, port: int, json_output: bool) -> None:
    """Run the Dagster UI and daemon, with sensors on, until interrupted."""
    from memory_pipeline.dev import run_dev  # noqa: PLC0415

    code = run_dev(load_settings(), host=host, port=port)
    if json_output:
        _print_json({"exit_code": code})
    sys.exit(code)


def main() -> NoReturn:
    """The program's entry point: translates errors into one line on standard error and an exit code."""
    try:
        cli.main(standalone_mode=False)
    except MemoryPipelineError as error:
        _fail(str(error), error.exit_code)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted; what was committed stays, the rest is done by the next run", _INTERRUPTED)
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)


@contextmanager
def _runtime(*, create: bool = False) -> Iterator[Runtime]:
    with Runtime(load_settings(), create=create) as runtime:
        yield runtime


def _known(runtime: Runtime) -> list[str]:
    from memory_pipeline.archive import workspaces  # noqa: PLC0415

    return workspaces.names(runtime.database)


def _each(names: tuple[str, ...] | list[str], work: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Do the work for each workspace; one that fails stops no other, unless the archive itself is away."""
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


def _finish(outcome: dict[str, Any], table: Callable[[dict[str, Any]], None], *, json_output: bool) -> None:
    errors: dict[str, MemoryPipelineError] = outcome["errors"]
    outcome["errors"] = {name: str(error) for name, error in errors.items()}
    if json_output:
        _print_json(outcome)
    else:
        table(outcome)
    for name, error in errors.items():
        click.echo(f"error: {name}: {' '.join(str(error).split())}", err=True)
    if errors:
        sys.exit(next(iter(errors.values())).exit_code)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
