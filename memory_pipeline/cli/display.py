"""What the commands of the administration show to people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from textwrap import indent
from typing import TYPE_CHECKING

from rich.console import Console

from memory_pipeline.cards import Flag
from memory_pipeline.console import escape, moment_text, put_off, show_table

if TYPE_CHECKING:
    from memory_pipeline.archive.duplicates import Proposals
    from memory_pipeline.archive.grants import Grant
    from memory_pipeline.archive.incomplete import Incomplete
    from memory_pipeline.archive.listing import CardDetail, ListedCard, Page, PointState
    from memory_pipeline.archive.workspaces import Holdings
    from memory_pipeline.curation import Outcome
    from memory_pipeline.doctor import Result
    from memory_pipeline.propagation import ProjectionReport

_out = Console(highlight=False, emoji=False, soft_wrap=True)
_TEXTS = ("subject", "question", "detail", "rationale", "context", "dialect", "sql", "database", "schema")


def print_outcome(outcome: Outcome, workspace: str) -> None:
    """Whether an edit changed anything, how the card is flagged, and whether recall answers accordingly."""
    if outcome.version is None:
        done = "is deleted"
    elif outcome.changed:
        done = f"is saved, at version {outcome.version}"
    else:
        done = f"stays at version {outcome.version}, since nothing changed"
    follows = "; the index follows" if outcome.recallable else f". The index does not follow yet: {outcome.reason}"
    _out.print(f"{outcome.card_id} {done}{follows}.", markup=False)
    for flag in outcome.flags:
        _out.print(f"{outcome.card_id} is flagged {_flagged(flag)}.", style="yellow", markup=False)
    if not outcome.recallable:
        of = f"--workspace {workspace}"
        _out.print(
            f"`memory-pipeline card pending {of}` lists it, `memory-pipeline card retry {of}` completes it.",
            style="dim",
            markup=False,
        )


def print_page(page: Page) -> None:
    """A page of cards, and how many there are in all."""
    rows = [
        (c.card_id, c.family, c.version, c.title, c.sources, c.origin, _listed(c), _moment(c.updated_at), c.updated_by)
        for c in page.cards
    ]
    head = ("card", "family", "version", "title", "sources", "origin", "state", "updated", "by")
    show_table(head, rows)
    _out.print(f"{len(rows)} of {page.total} card(s).")


def print_card(card: CardDetail) -> None:
    """All that the archive knows of a card."""
    edited = ", edited" if card.edited else ""
    _out.print(f"[bold]{card.card_id}[/bold] ({card.content.family}), version {card.version}, {card.origin}{edited}")
    _line("changed", f"{_moment(card.updated_at)} by {card.updated_by}")
    for name in _TEXTS:
        _line(name, getattr(card.content, name))
    _line("concepts", ", ".join(card.content.concepts))
    _line("depends on", ", ".join(each.dotted for each in card.content.dependencies))
    for flag in card.flags:
        _line("flagged", _flagged(flag))
    _line("index", _state(card.projection))
    for link in card.links:
        _line("link", f"{'to' if link.outgoing else 'from'} {link.other} ({link.title}): {link.meaning}")
    for source in card.sources:
        _line("source", f"{source.session_id}, decision {source.seq}: {source.question}")


def print_duplicates(found: Proposals, workspace: str) -> None:
    """Pairs worth merging, each with why and with the command that merges it, and how many there are in all."""
    for pair in found.pairs:
        _out.print(f"[bold]{pair.keep.card_id} and {pair.other.card_id}[/bold] ({pair.family}), {pair.why}")
        for card in (pair.keep, pair.other):
            _line(card.card_id, f"{card.subject}: {card.detail}")
        versions = f"--version {pair.keep.version} --other-version {pair.other.version}"
        _line("merge", f"memory-pipeline card merge {pair.keep.card_id} {pair.other.card_id} -w {workspace} {versions}")
    more = "" if found.complete else " at least, since so many look alike that not all were compared"
    counts = f"{found.form} the same but for form, {found.near} near{more}"
    _out.print(f"{len(found.pairs)} of {found.total} pair(s) among {found.cards} card(s): {counts}.")
    if found.pairs:
        _out.print(
            "Cards that are to stay apart are no longer listed once a `card link` says how they differ.", style="dim"
        )


def print_pending(items: Sequence[Incomplete]) -> None:
    """The points that are pending, and why."""
    rows = [
        (
            item.item_id,
            item.collection,
            "remove" if item.removal else "write",
            item.reason or "not tried yet",
            item.attempts,
            _moment(item.since),
            _moment(item.next_try),
        )
        for item in items
    ]
    show_table(("item", "collection", "to do", "reason", "attempts", "since", "next try"), rows)
    _out.print(f"{len(rows)} point(s) pending.")


def print_retry(report: ProjectionReport) -> None:
    """What a retry completed, and what it left."""
    _out.print(f"{report.written} point(s) written, {report.removed} removed; {report.pending} still pending.")
    if report.busy:
        _out.print("Another process is projecting this workspace, and takes up the rest.", style="yellow")


def print_grants(grants: Sequence[Grant]) -> None:
    """Who may do what, given by whom."""
    rows = [(grant.principal, grant.role, grant.granted_by, _moment(grant.granted_at)) for grant in grants]
    show_table(("principal", "role", "given by", "at"), rows)


def print_workspaces(roles: Mapping[str, str]) -> None:
    """Workspaces, and what the principal may do in each."""
    if not roles:
        _out.print("There is no workspace in which you have a grant.")
        return
    show_table(("workspace", "role"), list(roles.items()))


def print_doctor(results: Sequence[Result]) -> None:
    """What every check found, and then what to do."""
    show_table(("check", "state", "what was found"), [(each.check, each.state, each.found) for each in results])
    for each in results:
        if each.do:
            _out.print(f"{each.check}: {each.do}", style="red" if each.state == "fault" else "yellow", markup=False)
    counts = Counter(each.state.value for each in results)
    _out.print(", ".join(f"{number} {state}" for state, number in counts.items()) + ".")


def named(found: Holdings) -> str:
    """What a workspace holds, in a sentence."""
    families = ", ".join(f"{number} {family}" for family, number in found.cards.items() if number)
    cards = f"{sum(found.cards.values())} card(s){f' ({families})' if families else ''}"
    return (
        f"{cards}, {found.sources} source(s), {found.sessions} session(s), {found.points} point(s) of the index, "
        f"{found.grants} grant(s) and {found.waiting_edits} waiting edit(s)"
    )


def _line(name: str, text: str) -> None:
    if text:
        _out.print(f"  [dim]{name}[/dim]  {indent(escape(text), '    ').strip()}")


def _flagged(flag: str) -> str:
    """A flag and what it says, as far as this library raises it itself: an import keeps others too."""
    return f"{flag}: {Flag(flag).meaning}" if flag in set(Flag) else flag


def _state(point: PointState) -> str:
    if point.state == "recallable":
        return "follows" + (" (a text is longer than what the model reads at once)" if point.truncated else "")
    return f"pending since {_moment(point.wanted_at)}: {_held_up(point)}"


def _listed(card: ListedCard) -> str:
    return card.state if card.state == "recallable" else f"pending: {_held_up(card)}"


def _held_up(point: PointState | ListedCard) -> str:
    return f"{point.reason or 'not tried yet'}{put_off(point.attempts, point.next_try)}"


def _moment(moment: datetime | None) -> str:
    return moment_text(moment, "%Y-%m-%d %H:%M") if moment else ""
