"""What the command line shows to people: tables, hits and progress bars."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from textwrap import indent
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape as escape_markup
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from memory_pipeline.cards import Family

if TYPE_CHECKING:
    from memory_pipeline.archive.legacy import LegacyReport
    from memory_pipeline.archive.queue import QueuedEdit
    from memory_pipeline.archive.sessions import Progress as Tell
    from memory_pipeline.archive.status import WorkspaceStatus
    from memory_pipeline.demo.run import DemoOutcome
    from memory_pipeline.propagation.switch import IdentityUse
    from memory_pipeline.recall import RecallHit, RecallResult

_out = Console(highlight=False, emoji=False)
if not _out.is_terminal:
    _out.width = 200  # nothing folds what a program or a file gets
_err = Console(stderr=True, highlight=False, emoji=False)
_WHICH_FAULTS = "`memory-pipeline faults` names them"
_DIFFERING_SHOWN = 10  # points of a workspace
_LINES_SHOWN = 12  # of a card's text
_NUMBERS_SHOWN = 20  # of lines
_LINE_EVERY = 2.0  # seconds
# What a terminal would obey rather than show: control characters, separators of lines, what turns the direction of
# writing around, halves of pairs; and the characters of plane 14, which hide a text in another.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e0fff]")


def printable(text: str) -> str:
    """The text with a `�` for each character that a terminal would obey, or hide, rather than show."""
    return _CONTROL.sub("�", text)


def escape(text: str) -> str:
    """The text as it can be printed with markup around it: nothing in it is markup, or obeyed by a terminal."""
    return escape_markup(printable(text))


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


def say(text: str, **style: Any) -> None:
    """Print a line and let the terminal fold it, so that it can be copied as one."""
    _out.print(text, soft_wrap=True, **style)


def warn(text: str, **style: Any) -> None:
    """Print a line on standard error."""
    _err.print(text, soft_wrap=True, **style)


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
    show_table(("workspace", "read", "decisions", "created", "updated", "deleted", "sources", "withdrawn"), rows)
    for workspace, report in found.items():
        if report["sessions"]["faults"]:
            counts = _counts(report["sessions"]["faults"])
            say(f"faults in what was read of {workspace}: {counts} ({_WHICH_FAULTS})", style="yellow")
    for name in outcome["refused_directories"]:
        say(f"refused: {escape(ascii(name))} cannot be a workspace (a-z, 0-9, - and _, at most 63)", style="yellow")
    for name in outcome["vanished_workspaces"]:
        say(f"vanished: {name} has no directory any more; what was read of it is kept", style="yellow")


def projection_table(outcome: Mapping[str, Any]) -> None:
    """What a projection did, by workspace."""
    names = ("written", "removed", "overtaken", "deferred", "pending")
    show_table(("workspace", *names), [(w, *(r[n] for n in names)) for w, r in outcome["workspaces"].items()])


def audit_table(outcome: Mapping[str, Any]) -> None:
    """What an audit found, by workspace."""
    found = outcome["workspaces"]
    names = [name for name in next(iter(found.values()), {"checked": 0}) if name != "look_at"]
    show_table(("workspace", *names), [(w, *(report[name] for name in names)) for w, report in found.items()])
    for workspace, report in found.items():
        for each in report["look_at"][:_DIFFERING_SHOWN]:
            why = f" ({each['reason']})" if "reason" in each else ""
            say(
                escape(f"{workspace}: {each['difference']} in {each['collection']}: {each['item']}{why}"),
                style="yellow",
            )
        if (more := _differing(report) - min(len(report["look_at"]), _DIFFERING_SHOWN)) > 0:
            say(f"{workspace}: … and {more} more; --json names up to 100 of all.", style="yellow")


def _differing(report: Mapping[str, Any]) -> int:
    return sum(number for name, number in report.items() if name not in {"checked", "look_at"})


def print_identities(found: Sequence[IdentityUse]) -> None:
    """Which embedding identities there are, and in which workspaces they are used."""
    rows = [
        (
            use.identity,
            use.model,
            "configured" if use.configured else "" if use.live else "left over",
            ", ".join(use.live),
            ", ".join(use.registered),
            ", ".join(use.collections),
        )
        for use in found
    ]
    show_table(("identity", "model", "", "recall uses it in", "kept for", "collections in"), rows)


def faults_table(outcome: dict[str, Any]) -> None:
    """What of the session directories could not be used, fault by fault."""
    found = outcome["workspaces"]
    rows = [
        (name, each["session_id"], each["line"] or "", each["kind"], each["reason"])
        for name, report in found.items()
        for each in report["faults"]
    ]
    if rows:
        show_table(("workspace", "session", "line", "kind", "reason"), rows)
    elif not outcome["errors"]:
        say("Every session directory that was read could be used.")
    for name, report in found.items():
        if more := report["total"] - len(report["faults"]):
            say(f"{more} more of {name}: --limit {report['total']} shows them", style="yellow")


def print_status(found: Mapping[str, WorkspaceStatus]) -> None:
    """Cards by family and the state of propagation, by workspace."""
    if not found:
        _out.print(
            "The archive has no workspace yet: `memory-pipeline ingest` makes one of each directory that it reads."
        )
        return
    show_table(("cards", *(f.value for f in Family)), [(name, *state.cards.values()) for name, state in found.items()])
    decisions = ("sessions", "sources", "candidates", "declined", "faults", "waiting_edits")
    show_table(
        ("sessions of", *(name.replace("_", " ") for name in decisions)),
        [(w, *(getattr(s, d) for d in decisions)) for w, s in found.items()],
    )
    points = [
        (
            w,
            s.certified,
            s.pending,
            s.deferred,
            f"{s.lag_seconds:.1f}",
            _took(s.propagation_p50_seconds),
            _took(s.propagation_p95_seconds),
        )
        for w, s in found.items()
    ]
    show_table(("points of", "projected", "pending", "put off", "lag (s)", "took p50 (s)", "took p95 (s)"), points)
    if any(state.faults for state in found.values()):
        say(f"of the session directories, some things could not be used ({_WHICH_FAULTS})", style="yellow")
    for workspace, state in found.items():
        for why in state.put_off:
            tried = put_off(why.attempts, why.next_try)
            say(f"pending in {workspace}: {why.points} × {escape(why.reason)}{tried}", style="yellow")
        if state.truncated:
            say(
                f"{workspace}: of {state.truncated} projected point(s) the text is longer than what the model reads at "
                "once; its end counts by its words alone (`memory-pipeline card show` says of which cards).",
                style="yellow",
            )
        if state.changing:
            say(
                f"{workspace}: recall goes on with the former embeddings; of the new ones "
                f"{state.changing['certified']} point(s) are projected and {state.changing['pending']} pending.",
                style="yellow",
            )


def print_losses(lost: Mapping[str, Mapping[str, int]], away: str | None) -> None:
    """What the index has lost, by workspace, or why it does not say."""
    for workspace, collections in lost.items():
        for collection, points in collections.items():
            say(
                f"lost in {workspace}: the index has no {collection} any more, which held {points} point(s); "
                "the sensors, or `memory-pipeline project`, fill it again.",
                style="red",
            )
    if away:
        say(f"the index: {escape(away)}", style="red")


def put_off(attempts: int, next_try: datetime | None) -> str:
    """How often what is pending was tried, and when it is tried again; nothing before the first attempt."""
    if not attempts:
        return ""
    return f" (attempts: {attempts}; next try: {moment_text(next_try) if next_try else 'now'})"


def moment_text(moment: datetime, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A moment as people are shown all of them: in UTC, whatever zone PostgreSQL gives it in."""
    return f"{moment.astimezone(UTC):{form}}"


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"


def print_recall(result: RecallResult) -> None:
    """The hits of a recall with what speaks for each, and whether the answer is complete."""
    print_hits(result.hits)
    if result.degraded:
        _out.print("Degraded: a lexical answer from the archive alone.", style="yellow")
    if result.pending:
        say(f"Incomplete: {result.pending} of the workspace's points are still pending.", style="yellow")
    if result.dropped:
        say(f"Dropped: {_counts(result.dropped)}", style="yellow")
    if result.explained:
        print_left_out(result)


def print_left_out(result: RecallResult) -> None:
    """The cards that a recall found and left out, each with why, and how many more there are."""
    if not result.left_out:
        _out.print("No card that was found is left out.")
    for reason, number in result.left_out_counts.items():
        cards = [card for card in result.left_out if card.reason is reason]
        for card in cards:
            score = "" if card.score is None else f" (score {card.score:.3f})"
            say(f"Left out: [bold]{card.card_id}[/bold] ({card.family}) {escape(card.title)}: {reason.meaning}{score}")
        if more := number - len(cards):
            say(f"and {more} more of these", style="dim")


def print_hits(hits: Sequence[RecallHit]) -> None:
    """Cards, best first, with what each says and what speaks for it."""
    if not hits:
        _out.print("No card found.")
    for number, hit in enumerate(hits, start=1):
        title = hit.question if hit.family == Family.SOLVED_QUESTION else hit.subject
        say(f"[bold]{number}. {hit.card_id}[/bold] ({hit.family}) {escape(title)}")
        say(indent(escape(_shortened(hit.detail or hit.sql)), "   "), style="cyan")
        signals = "  ".join(f"{name} {value:.3f}" for name, value in hit.signals.items())
        say(f"   score {hit.score:.3f}; {signals or 'linked'}; sessions {hit.sessions}", style="dim")


def print_demo(outcome: DemoOutcome) -> None:
    """What the demo made, checked and recalled."""
    print_status(outcome.status)
    rows = [(c["name"], "passed" if c["passed"] else c["severity"].lower(), c["summary"]) for c in outcome.checks]
    show_table(("check", "outcome", "what it found"), rows)
    say("\nEvery recall has hits, whatever is asked: scores, and the signals in them, compare the hits of one recall.")
    for title, question, result in outcome.recalls:
        _out.print()
        say(f"[bold]{title}:[/bold] «{escape(question)}»")
        print_recall(result)
    _out.print()
    for note in outcome.notes:
        say(note)


def print_edits(edits: Sequence[QueuedEdit], counts: Mapping[str, int]) -> None:
    """Submitted edits with what became of them, and how many there are in all."""
    head = ("edit", "submitted", "by", "operation", "card", "state", "why")
    rows = [
        (e.edit_id, moment_text(e.submitted_at), e.principal, e.operation, e.card_id or "", e.state, e.reason or "")
        for e in edits
    ]
    show_table(head, rows)
    _out.print(_counts(counts))


def applied_table(outcome: Mapping[str, Any]) -> None:
    """What became of the edits that waited, by workspace, and why some were refused."""
    found = outcome["workspaces"]
    show_table(
        ("workspace", "applied", "refused", "waiting"),
        [(w, r["applied"], len(r["refused"]), r["waiting"]) for w, r in found.items()],
    )
    for workspace, report in found.items():
        for refusal in report["refused"]:
            say(f"refused: edit {refusal['edit_id']} of {workspace}: {escape(refusal['reason'])}", style="yellow")


def print_legacy(report: LegacyReport) -> None:
    """What an import of a legacy registry made, and what it could not use."""
    say(f"{report.created} card(s) made, {report.joined} record(s) joined, {report.known} known already.")
    for card_id, old in report.renumbered.items():
        say(f"{old} is {card_id} here, since that id was not free.")
    for what, number in report.refused.items():
        say(
            f"refused: {number} × {escape(what)}{_at_lines(report.refused_lines.get(what, []), number)}", style="yellow"
        )
    for line, fault in report.lines.items():
        say(f"{line}: {escape(fault)}", style="yellow")


def _at_lines(numbers: Sequence[int], total: int) -> str:
    shown = ", ".join(map(str, numbers[:_NUMBERS_SHOWN]))
    return f" (line {shown}{', …' if total > _NUMBERS_SHOWN else ''})" if shown else ""


def _shortened(text: str) -> str:
    lines = text.strip().splitlines()
    return "\n".join([*lines[:_LINES_SHOWN], *(["…"] if len(lines) > _LINES_SHOWN else [])])


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on standard output, or a line where there are no rows."""
    rows = list(rows)
    if not rows:
        say(f"Nothing to show by {head[0]}.")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(head):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row))
    _out.print(table)


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counted.items()) or "0"
