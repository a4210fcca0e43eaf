"""The commands for one card at a time: make, change, delete, merge, link, find, show, complete what is pending."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from memory_pipeline.cards import Family, Flag
from memory_pipeline.cli import display
from memory_pipeline.cli.card_options import (
    COLUMN_FORM,
    TABLE_FORM,
    depended_on,
    edit_of,
    edit_options,
    family_option,
    required_version,
    version_option,
)
from memory_pipeline.cli.common import as_json, opened_curation, print_json, workspace_option
from memory_pipeline.edits import Change, Delete, Edit, Link, Merge

if TYPE_CHECKING:
    from memory_pipeline.archive.listing import ListRequest

_ZONE = "in UTC unless it names a zone"
_SORTS = ["card_id", "family", "title", "updated_at", "created_at", "version", "sources"]
_later = click.option("--no-propagate", "later", is_flag=True, help="Leave the index to the next projection.")


def _moment(_context: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    """The moment that a text names, in UTC where it names no zone."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no date or time: write 2026-01-31 or 2026-01-31T12:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.group()
def card() -> None:
    """Cards, one at a time: create, change, delete, merge, link, find. Times are shown in UTC."""


@card.command()
@workspace_option
@family_option
@edit_options
@_later
@as_json
def create(*, workspace: str, family: str | None, later: bool, json_output: bool, **given: Any) -> None:
    """Make a card by hand, from options or from a JSON edit."""
    _save(workspace, edit_of("create", given, family=family), later=later, json_output=json_output)


@card.command()
@click.argument("card_id", required=False)
@workspace_option
@version_option
@edit_options
@_later
@as_json
def change(
    *, card_id: str | None, workspace: str, version: int | None, later: bool, json_output: bool, **given: Any
) -> None:
    """Give a card other values, from options or from a JSON edit; what is not named stays as it is."""
    if given["source"] is None and (card_id is None or version is None):
        raise click.UsageError("name the card, and the --version that the change is based on")
    edit = edit_of("change", given, card_id=card_id, version=version)
    _save(workspace, edit, later=later, json_output=json_output)


@card.command()
@click.argument("card_id")
@workspace_option
@required_version
@_later
@as_json
def delete(*, card_id: str, workspace: str, version: int, later: bool, json_output: bool) -> None:
    """Delete a card with its links; the decisions that made it do not make it again."""
    _save(workspace, Delete(card_id, version), later=later, json_output=json_output)


@card.command()
@click.argument("keep")
@click.argument("other")
@workspace_option
@click.option("--version", type=int, required=True, help="The version of KEEP that the merge is based on.")
@click.option("--other-version", type=int, required=True, help="The version of OTHER.")
@_later
@as_json
def merge(
    *, keep: str, other: str, workspace: str, version: int, other_version: int, later: bool, json_output: bool
) -> None:
    """Make one card of two of a family: KEEP takes sources, links and dependencies of OTHER, which is deleted."""
    _save(workspace, Merge(keep, version, other, other_version), later=later, json_output=json_output)


@card.command()
@click.argument("card_id")
@click.argument("other")
@workspace_option
@required_version
@click.option("--meaning", help="What the link says: it is made, or changed.")
@click.option("--remove", is_flag=True, help="Remove the link.")
@_later
@as_json
def link(
    *,
    card_id: str,
    other: str,
    workspace: str,
    version: int,
    meaning: str | None,
    remove: bool,
    later: bool,
    json_output: bool,
) -> None:
    """Make, change or remove the link from CARD_ID to OTHER."""
    if (meaning is None) is not remove:
        raise click.UsageError("give either --meaning or --remove")
    edit = Change(card_id, version, links=(Link(other, meaning),))
    _save(workspace, edit, later=later, json_output=json_output)


@card.command()
@click.argument("card_id")
@workspace_option
@as_json
def show(*, card_id: str, workspace: str, json_output: bool) -> None:
    """Show a card with its sources, links, dependencies, and how far the index follows it."""
    with opened_curation() as curation:
        found = curation.detail(workspace, card_id)
    if json_output:
        print_json(asdict(found))
    else:
        display.print_card(found)


@card.command(name="list")
@click.argument("text", default="")
@workspace_option
@click.option(
    "--family", "-f", "families", multiple=True, type=click.Choice([f.value for f in Family]), help="Only these."
)
@click.option("--concept", default="", help="Only cards that name it.")
@click.option("--table", default="", metavar=TABLE_FORM, help="Only cards that depend on it.")
@click.option("--column", default="", metavar=COLUMN_FORM, help="Only cards that depend on it.")
@click.option("--origin", type=click.Choice(["session", "hand"]), help="Only cards made so.")
@click.option(
    "--updated-after", callback=_moment, metavar="TIME", help=f"Only cards that last changed then or later ({_ZONE})."
)
@click.option(
    "--updated-before", callback=_moment, metavar="TIME", help=f"Only cards that last changed before ({_ZONE})."
)
@click.option(
    "--state", type=click.Choice(["recallable", "pending"]), help="Only cards that the index follows, or not."
)
@click.option("--flag", default="", help=f"Only cards with this flag: {', '.join(Flag)}.")
@click.option(
    "--sort", default="updated_at", show_default=True, type=click.Choice(_SORTS), help="What decides the order."
)
@click.option("--ascending", is_flag=True, help="From the smallest up.")
@click.option("--limit", "-n", default=50, show_default=True, help="How many cards at most.")
@click.option("--offset", default=0, show_default=True, help="How many cards of the order to skip.")
@as_json
def list_(*, workspace: str, table: str, column: str, ascending: bool, json_output: bool, **filters: Any) -> None:
    """List the cards that TEXT (words, parts of words, an id) and all filters fit, and how many there are in all."""
    request = _request(descending=not ascending, **depended_on(table, column), **filters)
    with opened_curation() as curation:
        page = curation.list(workspace, request)
    if json_output:
        print_json(asdict(page))
    else:
        display.print_page(page)


@card.command()
@workspace_option
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), default=50, show_default=True, help="How many pairs at most."
)
@as_json
def duplicates(*, workspace: str, limit: int, json_output: bool) -> None:
    """List pairs of cards that seem to say the same, the same but for form first, with how to merge them.

    It merges nothing. A general rule and a more specific one are no duplicates; cards that are linked are left out.
    """
    with opened_curation() as curation:
        found = curation.duplicates(workspace, limit)
    if json_output:
        print_json({**asdict(found), "total": found.total})
    else:
        display.print_duplicates(found, workspace)


@card.command()
@workspace_option
@as_json
def pending(*, workspace: str, json_output: bool) -> None:
    """List what the index does not hold yet, deleted cards included, and why."""
    with opened_curation() as curation:
        found = curation.pending(workspace)
    if json_output:
        print_json({"items": [asdict(item) for item in found]})
    else:
        display.print_pending(found)


@card.command()
@click.argument("card_id", required=False)
@workspace_option
@as_json
def retry(*, card_id: str | None, workspace: str, json_output: bool) -> None:
    """Complete what is pending now, of CARD_ID or of all cards, from the state that the archive has now."""
    with opened_curation() as curation:
        report = curation.retry(workspace, card_id)
    if json_output:
        print_json(asdict(report))
    else:
        display.print_retry(report)


def _save(workspace: str, edit: Edit, *, later: bool, json_output: bool) -> None:
    with opened_curation() as curation:
        outcome = curation.save(workspace, edit, propagate=not later)
    if json_output:
        print_json(asdict(outcome))
    else:
        display.print_outcome(outcome, workspace)


def _request(**values: Any) -> ListRequest:
    from memory_pipeline.archive.listing import ListRequest

    return ListRequest(**values)


COMMANDS = (card,)
