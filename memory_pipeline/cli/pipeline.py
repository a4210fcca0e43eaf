"""The commands of the pipeline itself: from session directories to hits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from memory_pipeline import console
from memory_pipeline.cards import Family
from memory_pipeline.cli.common import (
    as_json,
    finish,
    for_each,
    known_workspaces,
    opened_runtime,
    print_json,
    workspaces_option,
)
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable
from memory_pipeline.extras import require
from memory_pipeline.settings import load_settings

_LISTED = 100  # differing points that an audit names


@click.command()
@as_json
def migrate(*, json_output: bool) -> None:
    """Make the archive's tables, or bring them up to date (makes the home where there is none)."""
    with opened_runtime(create=True) as runtime:
        revision = runtime.migrate()
        where = None if not runtime.settings.embedded_archive else str(runtime.settings.home.resolve())
    if json_output:
        print_json({"revision": revision, "home": where})
    else:
        click.echo(f"The archive is at revision {revision}{f', in {where}' if where else ''}.")


@click.command()
@workspaces_option
@as_json
def ingest(*, names: tuple[str, ...], json_output: bool) -> None:
    """Read the session directories that changed, and bring the cards up to date. Needs neither index nor model."""
    from memory_pipeline.archive.ingest import ingest as ingest_workspace
    from memory_pipeline.archive.ingest import vanished, workspaces_to_ingest

    with opened_runtime() as runtime, console.progress("ingest") as progress:
        database = runtime.database  # a home without an archive is said before a root without sessions
        listing = workspaces_to_ingest(runtime.settings.sessions)

        def work(name: str) -> dict[str, Any]:
            report = ingest_workspace(database, name, runtime.settings, runtime.identity, progress(name))
            return asdict(report)

        outcome = for_each(names or listing.workspaces, work)
        outcome["vanished_workspaces"] = list(vanished(database, listing))
    outcome["refused_directories"] = list(listing.refused)
    finish(outcome, console.ingest_table, json_output=json_output)


@click.command()
@workspaces_option
@click.option("--retry", is_flag=True, help="Try at once what waits for its next try.")
@as_json
def project(*, names: tuple[str, ...], retry: bool, json_output: bool) -> None:
    """Bring the index to what the archive says."""
    from memory_pipeline.propagation import project as project_workspace

    with opened_runtime() as runtime, console.progress("projecting") as progress:

        def work(name: str) -> dict[str, Any]:
            return asdict(project_workspace(runtime, name, retry_now=retry, progress=progress(name)))

        outcome = for_each(names or known_workspaces(runtime), work)
    finish(outcome, console.projection_table, json_output=json_output)


@click.command()
@workspaces_option
@click.option("--repair", is_flag=True, help="Take out what is wrong and make pending what is missing.")
@as_json
def audit(*, names: tuple[str, ...], repair: bool, json_output: bool) -> None:
    """Compare the real index with the archive, point by point."""
    from memory_pipeline.propagation import audit as audit_workspace
    from memory_pipeline.propagation import repair as repair_workspace

    with opened_runtime() as runtime:

        def work(name: str) -> dict[str, Any]:
            report = (repair_workspace if repair else audit_workspace)(runtime, name)
            return {"checked": report.checked, **report.counts, "look_at": report.look_at(_LISTED)}

        outcome = for_each(names or known_workspaces(runtime), work)
    finish(outcome, console.audit_table, json_output=json_output)
    if any(report["look_at"] for report in outcome["workspaces"].values()) and not repair:
        sys.exit(1)


@click.command()
@workspaces_option
@as_json
def rebuild(*, names: tuple[str, ...], json_output: bool) -> None:
    """Write every point of the index anew from the archive alone, while recall goes on."""
    from memory_pipeline.propagation import rebuild as rebuild_workspace

    with opened_runtime() as runtime, console.progress("rebuilding") as progress:

        def work(name: str) -> dict[str, Any]:
            return rebuild_workspace(runtime, name, progress=progress(name)).as_json()

        outcome = for_each(names or known_workspaces(runtime), work)
    finish(outcome, console.projection_table, json_output=json_output)


@click.command()
@click.argument("question")
@click.option("--workspace", "-w", required=True, help="Whose cards to search.")
@click.option(
    "--family", "-f", "families", multiple=True, type=click.Choice([f.value for f in Family]), help="Only these."
)
@click.option("--limit", "-n", default=10, show_default=True, help="How many hits at most.")
@click.option("--session", help="Leave out what this session has taken or rejected.")
@click.option("--links", is_flag=True, help="Linked cards come along.")
@click.option("--degraded", is_flag=True, help="Accept a lexical answer when the index or the model is away.")
@click.option("--explain", is_flag=True, help="Also say which cards were found and left out, and why.")
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
    explain: bool,
    json_output: bool,
) -> None:
    """Find the cards that bear on QUESTION; every hit is checked against the archive."""
    from memory_pipeline.recall import Recall

    with opened_runtime() as runtime, _degraded_offered(accepted=degraded):
        result = Recall(runtime).search(
            workspace,
            question,
            limit=limit,
            families=families or None,
            session_id=session,
            expand_links=links,
            degraded=degraded,
            explain=explain,
        )
    if json_output:
        print_json(result.as_json())
    else:
        console.print_recall(result)


@click.command()
@as_json
def status(*, json_output: bool) -> None:
    """Cards, pending work, lag and faults, workspace by workspace."""
    from memory_pipeline.archive.status import status as all_status
    from memory_pipeline.propagation.losses import Presence, lost_points

    with opened_runtime() as runtime:
        found = all_status(runtime.database, runtime.identity.hash)
        presence = Presence(runtime.index)
        lost = {name: lost_points(runtime, name, presence) for name in found}
    away = str(presence.fault) if presence.fault else None
    if json_output:
        states = {name: {**state.as_json(), "lost": lost[name]} for name, state in found.items()}
        print_json({"workspaces": states, "index_fault": away})
    else:
        console.print_status(found)
        console.print_losses(lost, away)


@click.command()
@workspaces_option
@click.option("--limit", type=click.IntRange(1), default=_LISTED, show_default=True, help="At most so many of each.")
@as_json
def faults(*, names: tuple[str, ...], limit: int, json_output: bool) -> None:
    """What of the session directories could not be used: each with its session, its line and why."""
    from memory_pipeline.archive import status as archive_status

    with opened_runtime() as runtime:

        def work(name: str) -> dict[str, Any]:
            with runtime.database.transaction(name) as tx:
                total = sum(archive_status.fault_counts(tx).values())
                return {"total": total, "faults": [asdict(each) for each in archive_status.faults(tx, limit)]}

        outcome = for_each(names or known_workspaces(runtime), work)
    finish(outcome, console.faults_table, json_output=json_output)


@click.group()
def identities() -> None:
    """Embedding identities: which one recall uses, which is being filled, which nobody uses any more."""


@identities.command(name="list")
@as_json
def list_identities(*, json_output: bool) -> None:
    """List the identities that archive or index know of, the configured one first."""
    from memory_pipeline.propagation.switch import known_identities

    with opened_runtime() as runtime:
        found = known_identities(runtime)
    if json_output:
        print_json({"identities": [asdict(use) for use in found]})
    else:
        console.print_identities(found)


@identities.command(name="drop")
@click.argument("identity")
@as_json
def drop_identity(*, identity: str, json_output: bool) -> None:
    """Drop the collections and vectors of an IDENTITY (its hash) that nobody uses any more."""
    from memory_pipeline.propagation import switch

    with opened_runtime() as runtime:
        dropped = switch.drop_identity(runtime, identity)
    if json_output:
        print_json({"dropped": asdict(dropped)})
    else:
        click.echo(f"Dropped {identity} ({dropped.model or 'a former model, of which no record is kept'}).")


@click.command()
@as_json
def demo(*, json_output: bool) -> None:
    """Run the whole pipeline over sample sessions, in a home of its own, and recall from it."""
    from memory_pipeline.demo.run import run_demo

    outcome = run_demo()
    if json_output:
        print_json(outcome.as_json())
    else:
        console.print_demo(outcome)
    if not outcome.succeeded:
        sys.exit(1)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Dagster has no login: mind what you bind to.")
@click.option("--port", default=3000, show_default=True, help="Of Dagster's UI.")
@click.option("--web-port", default=8000, show_default=True, help="Of the pages and the HTTP interface.")
@click.option("--no-web", is_flag=True, help="Run Dagster alone.")
@as_json
def dev(*, host: str, port: int, web_port: int, no_web: bool, json_output: bool) -> None:
    """Run the web, and the Dagster UI and daemon, with sensors on, until interrupted."""
    from memory_pipeline.dev import run_dev

    code = run_dev(load_settings(), host=host, port=port, web_port=None if no_web else web_port)
    if json_output:
        print_json({"exit_code": code})
    sys.exit(code)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Elsewhere, something before it has to do TLS.")
@click.option("--port", default=8000, show_default=True)
@click.option("--debug", is_flag=True, help="Log what unexpected errors say, which may quote cards and questions.")
@click.option("--attended", is_flag=True, hidden=True, help="Whoever starts it watches PostgreSQL and tells addresses.")
@as_json
def serve(*, host: str, port: int, debug: bool, attended: bool, json_output: bool) -> None:
    """Run the pages and the HTTP interface, until interrupted."""
    require("web")
    from memory_pipeline.web.serve import run_serve

    code = run_serve(load_settings(), host=host, port=port, debug=debug, attended=attended)
    if json_output:
        print_json({"exit_code": code})
    sys.exit(code)


@contextmanager
def _degraded_offered(*, accepted: bool) -> Iterator[None]:
    """Tell who did not accept a lexical answer that there would be one."""
    try:
        yield
    except (IndexUnavailable, EmbedderUnavailable) as error:
        if accepted:
            raise
        raise type(error)(f"{error} (with --degraded, PostgreSQL answers meanwhile, by words alone)") from error


COMMANDS = (migrate, ingest, project, audit, rebuild, recall, status, faults, identities, demo, dev, serve)
