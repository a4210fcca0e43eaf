"""What the commands of a reviewer show to people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from shlex import quote
from textwrap import indent
from typing import TYPE_CHECKING

from memory_pipeline.console import escape, moment_text, print_hits, say, show_table
from memory_pipeline.ledger import DecisionType
from memory_pipeline.reviewing import words

if TYPE_CHECKING:
    from memory_pipeline.cli.checklist import Item
    from memory_pipeline.reviewing import (
        CandidatePreview,
        FinalizeOutcome,
        Followed,
        Foresight,
        Preview,
        Proposal,
        ReviewOutcome,
        Waiting,
    )

_TAKING_AWAY = {DecisionType.DECISION_RETRACTED, DecisionType.PHASE_REOPENED}
_FAULTS_SHOWN = 10


def print_waiting(found: Waiting, workspace: str) -> None:
    """The sessions that wait for a review, and how many candidates there are in all."""
    if found.sessions:
        rows = [(s.session_id, s.status, s.candidates, moment_text(s.since), s.question) for s in found.sessions]
        show_table(("session", "status", "candidates", "since", "question"), rows)
        counts = f"{found.candidates} candidate(s) in {len(found.sessions)} session(s)"
        say(f"{counts}: `memory-pipeline review SESSION --workspace {workspace}` decides about them.")
    else:
        say("No session that the archive has read waits for a review.")
    if found.faults:
        show = f"`memory-pipeline faults --workspace {workspace}` names them"
        say(f"Of the session directories, some things could not be used: {show}.", style="yellow")
    if found.unread:
        ingest = f"`memory-pipeline ingest --workspace {workspace}`"
        say(f"{found.unread} session(s) are still to be read, or read again: {ingest} does.", style="yellow")


def heading(found: Preview) -> str:
    """What a review is about, in a line."""
    return f"{found.session_id}: {found.question}"


def items(found: Preview) -> list[Item]:
    """The candidates as a checklist shows them."""
    from memory_pipeline.cli.checklist import Item

    return [Item(each.seq, each.subject, "\n\n".join(_texts(each)), tuple(_notes(each))) for each in found.candidates]


def print_preview(found: Preview, workspace: str) -> None:
    """Every candidate with all that it says, and how to decide."""
    say(f"[bold]{escape(heading(found))}[/bold] ({found.status})")
    for each in found.candidates:
        say(f"\n[bold]{each.seq}. {escape(each.subject)}[/bold]")
        for text in _texts(each):
            say(indent(escape(text), "   "))
        for note in _notes(each):
            say(f"   {escape(note)}", style="yellow")
    say("")
    counts = f"{found.promoted} promoted, {found.declined} declined"
    clarifications = sum(len(each.seqs) for each in found.candidates)
    said = f", said in {clarifications} clarifications" if clarifications > len(found.candidates) else ""
    say(f"{len(found.candidates)} candidate(s){said}; {counts} before.")
    print_notes(found)
    if found.candidates:
        all_of_them = ",".join(str(each.seq) for each in found.candidates)
        decide = f"memory-pipeline review --workspace {workspace} --promote {all_of_them} {_argument(found.session_id)}"
        say(f"To decide: {escape(decide)} (or --decline, for those that are not worth keeping)", style="dim")


def print_notes(found: Preview, tell: Callable[..., None] = say) -> None:
    """What of a session is no candidate, and what cannot be used."""
    if found.refused:
        named = ", ".join(f"seq {seq} ({escape(subject)})" for seq, subject in found.refused.items())
        tell(f"Never cards, since their subject is only a table's name: {named}.", style="dim")
    for fault in found.faults[:_FAULTS_SHOWN]:
        where = f"line {fault.line}" if fault.line else "the session"
        tell(f"Not usable: {where}, {fault.kind}: {escape(fault.reason)}.", style="yellow")
    if len(found.faults) > _FAULTS_SHOWN:
        tell(f"… and {len(found.faults) - _FAULTS_SHOWN} more that is not usable.", style="yellow")
    if found.unfinished_line:
        tell("A last line of the ledger is still being written, and does not count yet.", style="yellow")


def print_outcome(outcome: ReviewOutcome, workspace: str) -> None:
    """What was recorded, and what archive and index make of it."""
    for decision in outcome.recorded:
        say(f"Recorded as seq {decision.seq}: {escape(words.recorded(decision))}")
    for named in outcome.unchanged:
        say(f"{escape(named)}: it is so already.", style="dim")
    for named, why in outcome.refused.items():
        say(f"Left out: {escape(named)}: {escape(why)}.", style="yellow")
    if not outcome.recorded:
        say("Nothing was added to the ledger.")
    _print_followed(outcome.followed, workspace)
    if outcome.candidates_left:
        say(f"{outcome.candidates_left} candidate(s) of the session still wait.", style="dim")


def print_foresight(found: Foresight) -> None:
    """What a correction would take away, and what would become of cards."""
    for named in found.unchanged:
        say(f"{escape(named)}: nothing is left to be taken away.", style="dim")
    if not found.taken_away:
        return
    say("This takes away:")
    for decision in found.taken_away:
        say(f"   seq {decision.seq}, {escape(decision.type)}: {escape(words.named(decision))}")
    if any(decision.type in _TAKING_AWAY for decision in found.taken_away):
        say("What a retraction or a rollback took away does not come back with it.", style="dim")
    if found.said_still:
        say(f"Seq {', '.join(map(str, found.said_still))} say(s) the same, and stay(s).", style="yellow")
    say("What becomes of cards:" if found.cards else "No card changes.")
    for effect in found.cards:
        say(f"   {escape(words.told(effect))}", style="yellow")
    say(f"{found.candidates_left} candidate(s) would wait afterwards.", style="dim")


def print_proposal(found: Proposal, workspace: str) -> None:
    """The cards for a session that starts, and how to take one."""
    say(f"[bold]{escape(found.session_id)}: {escape(found.question)}[/bold]")
    print_hits(found.cards)
    if found.solved_questions:
        say("\n[bold]Solved before[/bold] (advice, not to be taken)")
        print_hits(found.solved_questions)
    if found.degraded:
        say("Degraded: a lexical answer from the archive alone.", style="yellow")
    if found.pending:
        say(f"Incomplete: {found.pending} of the workspace's points are still pending.", style="yellow")
    if found.cards:
        take = f"memory-pipeline propose --workspace {workspace} --take {found.cards[0].card_id}"
        say(f"\nTo take one: {escape(take)} {escape(_argument(found.session_id))}", style="dim")


def print_finalized(outcome: FinalizeOutcome) -> None:
    """That a session is finalized, and what became of its solved question."""
    say(f"{escape(outcome.session_id)} is finalized{'' if outcome.changed else ' already'}.")
    if outcome.solved_question:
        say(f"Its solved question is {outcome.solved_question}.")
    else:
        say(f"It has no solved question: {outcome.unsolved}.", style="yellow")
    for effect in outcome.followed.cards:
        say(escape(words.told(effect)))
    if outcome.recover:
        say(f"The memory does not follow yet: {escape(str(outcome.followed.reason))}.", style="yellow")
        say(f"It does by itself under Dagster; at once with: {outcome.recover}")
    else:
        say("Saved and recallable.")


def _print_followed(followed: Followed, workspace: str) -> None:
    if not followed.saved:
        say(f"Not saved in the archive yet: {escape(str(followed.reason))}.", style="yellow")
        say(f"Nothing needs to be decided again: the sensor, or `memory-pipeline ingest -w {workspace}`, takes it in.")
        return
    for effect in followed.cards:
        say(escape(words.told(effect)))
    if followed.recallable:
        say("Saved and recallable.")
    else:
        say(f"Saved, but not recallable yet: {escape(str(followed.reason))}.", style="yellow")
        say(f"The sensor completes it, or at once `memory-pipeline project --retry -w {workspace}`.")


def _argument(session_id: str) -> str:
    """A session's id as it can be pasted behind the options of a command."""
    return f"-- {quote(session_id)}" if session_id.startswith("-") else quote(session_id)


def _texts(candidate: CandidatePreview) -> Iterator[str]:
    yield candidate.detail
    if candidate.rationale.strip():
        yield f"Why: {candidate.rationale}"
    if candidate.joins:
        more = ", and makes a card of its own" if candidate.makes_card else ""
        yield f"Confirms {', '.join(candidate.joins)}, as one more source{more}."
    for name, values in (("Concepts", candidate.concepts), ("Tables", candidate.tables)):
        if values:
            yield f"{name}: {', '.join(values)}"
    if len(candidate.seqs) > 1:
        yield f"Said {len(candidate.seqs)} times: seq {', '.join(map(str, candidate.seqs))}"


def _notes(candidate: CandidatePreview) -> Iterator[str]:
    yield from candidate.warnings
    for other in candidate.alike:
        if other.card.card_id not in candidate.joins:
            yield words.alike(other)
