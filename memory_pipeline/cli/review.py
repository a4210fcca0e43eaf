"""The commands of a reviewer: decide which clarifications become cards, take cards over, end a session."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memory_pipeline.cli import review_display as display
from memory_pipeline.cli.common import as_json, opened_runtime, print_json, somebody_types, workspace_option
from memory_pipeline.console import warn
from memory_pipeline.errors import InvalidInput, InvalidReview

if TYPE_CHECKING:
    from memory_pipeline.candidates import Correction
    from memory_pipeline.reviewing import Reviewing, ReviewOutcome

_NOT_DONE = 1
_NO_TERMINAL = "nobody can be asked here: see --preview, then decide with --promote and --decline"
_NOBODY = "there is nobody to ask whether to take it away: look at --preview, and add --yes to do it"
_NUMBERS = re.compile(r"[0-9]{1,18}(?:\s*,\s*[0-9]{1,18})*")


class _Seqs(click.ParamType[tuple[int, ...]]):
    """Seqs, separated by commas."""

    name = "SEQ[,SEQ…]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if not _NUMBERS.fullmatch(value.strip()):
            self.fail(f"{value!r} is no list of seqs: write 3,5", param, ctx)
        return tuple(int(number) for number in value.split(","))


_seqs = _Seqs()


@contextmanager
def opened_reviewing() -> Iterator[Reviewing]:
    """The review on behalf of whom the settings name, over services that are closed at the end."""
    from memory_pipeline.reviewing import Reviewing

    with opened_runtime() as runtime:
        yield Reviewing(runtime)


@click.command()
@click.argument("session", required=False)
@workspace_option
@click.option("--preview", is_flag=True, help="Show what there is to decide, or what a correction would do; no more.")
@click.option("--promote", type=_seqs, multiple=True, help="These clarifications become cards.")
@click.option("--decline", type=_seqs, multiple=True, help="These do not, and are not proposed again.")
@click.option("--retract", type=_seqs, multiple=True, help="Take these decisions away, for good.")
@click.option("--reopen", type=int, metavar="PHASE", help="Take away every decision of a later phase.")
@click.option("--reason", default="", help="Why decisions are taken away.")
@click.option("--yes", is_flag=True, help="Do not ask before decisions are taken away.")
@as_json
def review(
    *,
    session: str | None,
    workspace: str,
    preview: bool,
    promote: tuple[tuple[int, ...], ...],
    decline: tuple[tuple[int, ...], ...],
    retract: tuple[tuple[int, ...], ...],
    reopen: int | None,
    reason: str,
    yes: bool,
    json_output: bool,
) -> None:
    """Decide which clarifications of SESSION become cards; without one, list the sessions that wait for it.

    In a terminal, SESSION alone opens a checklist of all candidates. Programs name them by their seq, as --preview
    --json lists them. Deciding takes a reviewer's grant.
    """
    promoted, declined, retracted = _flat(promote), _flat(decline), _flat(retract)
    deciding, correcting = bool(promoted or declined), bool(retracted or reopen is not None)
    if session is None:
        if preview or deciding or correcting or reason or yes:
            raise click.UsageError("name the SESSION")
        _list(workspace, json_output=json_output)
    elif deciding + correcting + bool(retracted and reopen is not None) > 1 or (deciding and preview):
        raise click.UsageError("promote and decline, or --retract, or --reopen, or --preview: one of these at a time")
    elif not correcting and (reason or yes):
        raise click.UsageError("--reason and --yes go with --retract or --reopen")
    elif correcting:
        correction = _correction(retracted, reopen)
        _correct(workspace, session, correction, reason, preview=preview, yes=yes, json_output=json_output)
    elif deciding:
        with opened_reviewing() as reviewing:
            outcome = reviewing.record(workspace, session, promote=promoted, decline=declined)
        _show(outcome, workspace, json_output=json_output)
    elif preview:
        with opened_reviewing() as reviewing:
            found = reviewing.preview(workspace, session)
        if json_output:
            print_json(asdict(found))
        else:
            display.print_preview(found, workspace)
    else:
        _by_checklist(workspace, session, json_output=json_output)


@click.command()
@click.argument("session")
@workspace_option
@click.option("--limit", "-n", default=10, show_default=True, help="How many cards, and how many solved questions.")
@click.option("--take", multiple=True, metavar="CARD", help="Take this card over, as a clarification (repeatable).")
@click.option("--reject", multiple=True, metavar="CARD", help="Never show this card to the session again (repeatable).")
@click.option("--degraded", is_flag=True, help="Accept a lexical answer when the index or the model is away.")
@as_json
def propose(
    *,
    session: str,
    workspace: str,
    limit: int,
    take: tuple[str, ...],
    reject: tuple[str, ...],
    degraded: bool,
    json_output: bool,
) -> None:
    """Show the cards that may help SESSION with its question, without what it has decided already.

    --take writes a clarification that cites the card; what is neither taken nor rejected is only left for now.
    """
    with opened_reviewing() as reviewing:
        if take or reject:
            outcome = reviewing.take(workspace, session, take, reject=reject)
            _show(outcome, workspace, json_output=json_output)
            return
        found = reviewing.propose(workspace, session, limit=limit, degraded=degraded)
    if json_output:
        print_json(found.as_json())
    else:
        display.print_proposal(found, workspace)


@click.command()
@click.argument("session")
@workspace_option
@as_json
def session(*, session: str, workspace: str, json_output: bool) -> None:
    """Show what SESSION has decided to remember, as Markdown: the approved memories first, then the declined.

    Clarifications whose whole subject is a table are left out.
    """
    with opened_reviewing() as reviewing:
        found = reviewing.view(workspace, session)
    if json_output:
        print_json({**asdict(found), "markdown": found.as_markdown()})
    else:
        click.echo(found.as_markdown())


@click.command()
@click.argument("session")
@workspace_option
@as_json
def finalize(*, session: str, workspace: str, json_output: bool) -> None:
    """Finalize SESSION, and have its solved question follow. It is finalized whatever state the memory is in."""
    with opened_reviewing() as reviewing:
        outcome = reviewing.finalize(workspace, session)
    if json_output:
        print_json(outcome.as_json())
    else:
        display.print_finalized(outcome)


def _list(workspace: str, *, json_output: bool) -> None:
    with opened_reviewing() as reviewing:
        found = reviewing.waiting(workspace)
    if json_output:
        print_json({**asdict(found), "candidates": found.candidates})
    else:
        display.print_waiting(found, workspace)


def _by_checklist(workspace: str, session: str, *, json_output: bool) -> None:
    if json_output:
        raise click.UsageError(_NO_TERMINAL)
    from memory_pipeline.cli.checklist import Choice, choose

    with opened_reviewing() as reviewing:
        reviewing.require_reviewer(workspace)  # before somebody goes through forty of them in vain
        found = reviewing.preview(workspace, session)
        display.print_notes(found, warn)
        if not found.candidates:
            click.echo(f"{session} has nothing to decide: {found.promoted} promoted, {found.declined} declined.")
            return
        if not (somebody_types() and sys.stderr is not None and sys.stderr.isatty()):
            raise click.UsageError(_NO_TERMINAL)
        try:
            chosen = choose(display.heading(found), display.items(found))
        except RuntimeError as error:
            raise click.ClickException(str(error)) from error
        if chosen is None:
            click.echo("Nothing was recorded.", err=True)
            sys.exit(_NOT_DONE)
        by = {choice: [seq for seq, made in chosen.items() if made is choice] for choice in Choice}
        outcome = reviewing.record(
            workspace, session, promote=by[Choice.PROMOTE], decline=by[Choice.DECLINE], partial=True
        )
    _show(outcome, workspace, json_output=False)
    if outcome.refused:
        sys.exit(InvalidReview.exit_code)


def _correct(
    workspace: str,
    session: str,
    correction: Correction,
    reason: str,
    *,
    preview: bool,
    yes: bool,
    json_output: bool,
) -> None:
    asking = not (preview or yes)
    if asking and json_output:
        raise InvalidInput(_NOBODY)
    with opened_reviewing() as reviewing:
        if asking:
            reviewing.require_reviewer(workspace)  # before somebody says yes in vain
        after = None
        if preview or asking:
            foreseen = reviewing.foresee(workspace, session, correction)
            if preview and json_output:
                print_json(foreseen.as_json())
                return
            display.print_foresight(foreseen)
            if preview or not foreseen.taken_away:
                return
            _confirm()
            after = foreseen.last_seq
        outcome = reviewing.correct(workspace, session, correction, reason=reason, after=after)
    _show(outcome, workspace, json_output=json_output)


def _confirm() -> None:
    """Ask whoever sits there; nobody is no answer."""
    if not somebody_types():
        raise InvalidInput(_NOBODY)
    if not click.confirm("Take it away, for good?", err=True):
        click.echo("Nothing was recorded.", err=True)
        sys.exit(_NOT_DONE)


def _correction(retracted: tuple[int, ...], phase: int | None) -> Correction:
    from memory_pipeline.candidates import Retraction, Rollback

    return Retraction(retracted) if phase is None else Rollback(phase)


def _show(outcome: ReviewOutcome, workspace: str, *, json_output: bool) -> None:
    if json_output:
        print_json(outcome.as_json())
    else:
        display.print_outcome(outcome, workspace)


def _flat(given: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(seq for seqs in given for seq in seqs)


COMMANDS = (review, propose, session, finalize)
