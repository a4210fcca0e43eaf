"""What the command line shows to people: tables, hits and progress bars."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from memory_pipeline.cards import Family

if TYPE_CHECKING:
    from memory_pipeline.archive.sessions import Progress as Tell
    from memory_pipeline.archive.status import WorkspaceStatus
    from memory_pipeline.demo.run import DemoOutcome
    from memory_pipeline.recall import RecallResult

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)
_LINES_SHOWN = 12  # of a card's text
_LINE_EVERY = 2.0  # seconds


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], Tell]]:
    """A progress bar on standard error, gone when the work ends; where nobody looks at it, a line every few seconds.

    Yields:
        for a workspace's name, the function that work on it tells how much is done of how much.
    """
    if not _err.is_terminal:
        yield lambda workspace: _told_by_lines(f"{what} of {workspace}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_err, transient=True) as bar:
        yield lambda workspace: _told_by_bar(bar, f"{what} of {escape(workspace)}")


def _told_by_bar(bar: Progress, description: str) -> Tell:
    task = bar.add_task(description, total=None, visible=False)

    def tell(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total, visible=total > 0)

    return tell


def _told_by_lines(description: str) -> Tell:
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_EVERY:
            last = time.monotonic()
            _err.print(f"{description}: {done} of {total}", markup=False)

    return tell


def ingest_table(outcome: Mapping[str, Any]) -> None:
    """What an ingest did, by workspace, and what it could not use."""
    found = outcome["workspaces"]
    changes = ("created", "updated", "deleted", "sources_added", "sources_withdrawn")
    rows = [
        (
            w,
            r["sessions"]["read"],
            r["sessions"]["decisions"],
            *(r["concepts"][c] + r["solved_questions"][c] for c in changes),
        )
        for w, r in found.items()
    ]
    _table(("workspace", "read", "decisions", "created", "updated", "deleted", "sources", "withdrawn"), rows)
    for workspace, report in found.items():
        if report["sessions"]["faults"]:
            _out.print(
                f"faults in what was read of {workspace}: {_counts(report['sessions']['faults'])}", style="yellow"
            )
    for name in outcome["refused_directories"]:
        _out.print(
            f"refused: {escape(ascii(name))} cannot be a workspace (a-z, 0-9, - and _, at most 63)", style="yellow"
        )


def projection_table(outcome: Mapping[str, Any]) -> None:
    """What a projection did, by workspace."""
    names = ("written", "removed", "overtaken", "deferred", "pending")
    _table(("workspace", *names), [(w, *(r[n] for n in names)) for w, r in outcome["workspaces"].items()])


def audit_table(outcome: Mapping[str, Any]) -> None:
    """What an audit found, by workspace."""
    found = outcome["workspaces"]
    names = list(next(iter(found.values()), {"checked": 0}))
    _table(("workspace", *names), [(workspace, *report.values()) for workspace, report in found.items()])


def print_status(found: Mapping[str, WorkspaceStatus]) -> None:
    """Cards by family and the state of propagation, by workspace."""
    if not found:
        _out.print(
            "The archive has no workspace yet: `memory-pipeline ingest` makes one of each directory that it reads."
        )
        return
    _table(("cards", *(f.value for f in Family)), [(name, *state.cards.values()) for name, state in found.items()])
    decisions = ("sessions", "sources", "candidates", "declined", "faults")
    _table(("sessions of", *decisions), [(w, *(getattr(state, d) for d in decisions)) for w, state in found.items()])
    points = [(name, s.certified, s.pending, f"{s.lag_seconds:.1f}") for name, s in found.items()]
    _table(("points of", "projected", "pending", "lag (s)"), points)


def print_recall(result: RecallResult) -> None:
    """The hits of a recall with what speaks for each, and whether the answer is complete."""
    if not result.hits:
        _out.print("No card found.")
    for number, hit in enumerate(result.hits, start=1):
        title = hit.question if hit.family == Family.SOLVED_QUESTION else hit.subject
        _out.print(f"[bold]{number}. {hit.card_id}[/bold] ({hit.family}) {escape(title)}")
        _out.print(indent(_shortened(hit.detail or hit.sql), "   "), style="cyan", markup=False)
        signals = "  ".join(f"{name} {value:.3f}" for name, value in hit.signals.items())
        _out.print(
            f"   score {hit.score:.3f} = {signals or 'a link'}; confirmed by {hit.sessions} session(s)", style="dim"
        )
    if result.degraded:
        _out.print("Degraded: a lexical answer from the archive alone.", style="yellow")
    if result.pending:
        _out.print(f"Incomplete: {result.pending} projection(s) of this workspace are pending.", style="yellow")
    if result.dropped:
        _out.print(f"Dropped: {_counts(result.dropped)}", style="yellow")


def print_demo(outcome: DemoOutcome) -> None:
    """What the demo made, checked and recalled."""
    print_status(outcome.status)
    rows = [(c["name"], "passed" if c["passed"] else c["severity"].lower(), c["summary"]) for c in outcome.checks]
    _table(("check", "outcome", "what it found"), rows)
    for title, question, result in outcome.recalls:
        _out.print()
        _out.rule(f"{title}: «{escape(question)}»", align="left")
        print_recall(result)
    _out.print()
    _out.print("; ".join(outcome.notes))


def _shortened(text: str) -> str:
    lines = text.strip().splitlines()
    return "\n".join([*lines[:_LINES_SHOWN], *(["…"] if len(lines) > _LINES_SHOWN else [])])


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    rows = list(rows)
    if not rows:
        return
    table = Table()
    for number, column in enumerate(head):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row))
    _out.print(table)


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counted.items()) or "0"
