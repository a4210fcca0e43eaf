"""The commands for workspaces as a whole: which there are, who may do what, and their removal."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memory_pipeline.cli import display
from memory_pipeline.cli.common import as_json, opened_curation, print_json, somebody_types, workspace_option
from memory_pipeline.errors import InvalidInput

if TYPE_CHECKING:
    from memory_pipeline.archive.workspaces import Holdings

_ROLES = ("reader", "reviewer", "administrator")
_NOT_DONE = 1


@click.group()
def grants() -> None:
    """Who may do what in a workspace."""


@grants.command(name="list")
@workspace_option
@as_json
def list_grants(*, workspace: str, json_output: bool) -> None:
    """List the grants of a workspace."""
    with opened_curation() as curation:
        found = curation.grants(workspace)
    if json_output:
        print_json({"grants": [asdict(grant) for grant in found]})
    else:
        display.print_grants(found)


@grants.command()
@click.argument("principal")
@click.argument("role", type=click.Choice(_ROLES))
@workspace_option
@as_json
def give(*, principal: str, role: str, workspace: str, json_output: bool) -> None:
    """Let PRINCIPAL do what ROLE allows, in place of what it was granted before."""
    from memory_pipeline.archive.grants import Role

    with opened_curation() as curation:
        changed = curation.give(workspace, principal, Role(role))
    if json_output:
        print_json({"principal": principal, "role": role, "changed": changed})
    else:
        click.echo(f"{principal} is {'now' if changed else 'already'} {role} of {workspace}.")


@grants.command()
@click.argument("principal")
@workspace_option
@as_json
def take(*, principal: str, workspace: str, json_output: bool) -> None:
    """Take PRINCIPAL's grant away. The last administrator's stays."""
    with opened_curation() as curation:
        taken = curation.take(workspace, principal)
    if json_output:
        print_json({"principal": principal, "taken": taken})
    else:
        click.echo(f"{principal} {'has no grant any more' if taken else 'had no grant'} in {workspace}.")


@click.group()
def workspace() -> None:
    """Workspaces: list, make, remove."""


@workspace.command(name="list")
@as_json
def list_workspaces(*, json_output: bool) -> None:
    """List the workspaces in which you have a grant."""
    with opened_curation() as curation:
        found = curation.workspaces()
    if json_output:
        print_json({"workspaces": [{"workspace": name, "role": role} for name, role in found.items()]})
    else:
        display.print_workspaces(found)


@workspace.command()
@click.argument("name")
@click.option("--language", help="Snowball's name of its texts' language; by default the setting's.")
@as_json
def make(*, name: str, language: str | None, json_output: bool) -> None:
    """Make a workspace, with you as its first administrator."""
    with opened_curation() as curation:
        made = curation.make_workspace(name, language)
    if json_output:
        print_json({"workspace": name, "made": made})
    else:
        click.echo(f"The workspace {name} {'is made' if made else 'exists already, and stays as it is'}.")


@workspace.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def remove(*, name: str, yes: bool, json_output: bool) -> None:
    """Remove a workspace with all that archive and index hold of it. Its session directories have to be gone."""
    with opened_curation() as curation:
        if not yes and not _confirmed(name, curation.removable(name)):
            click.echo("Nothing was removed.", err=True)
            sys.exit(_NOT_DONE)
        removed = curation.remove_workspace(name)
    if json_output:
        print_json({"workspace": name, "removed": asdict(removed)})
    else:
        click.echo(f"Removed {name}: {display.named(removed)}.")


def _confirmed(name: str, found: Holdings) -> bool:
    """Ask whoever sits there; nobody is no answer."""
    what = f"removing {name} takes away {display.named(found)}, for good"
    if not somebody_types():
        raise InvalidInput(f"{what}: there is nobody to ask, so add --yes to do it")
    return click.confirm(f"{what[0].upper()}{what[1:]}. Remove it?", err=True)


COMMANDS = (grants, workspace)
