"""The checks. None is partitioned: each covers every workspace, and names the sessions or cards to look at."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    DagsterInstance,
    asset_check,
)
from dagster._core.storage.asset_check_execution_record import COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES

from assets.archive import memory_cards
from assets.common import as_markdown
from assets.index import memory_index, solved_question_index
from assets.outcomes import LISTED, Outcome, of_each_workspace, with_broken, workspace_names
from assets.sources import session_ledgers
from memory_pipeline.archive import audits, status, waiting
from memory_pipeline.archive.audits import LastAudit
from memory_pipeline.archive.ingest import vanished, workspaces_to_ingest
from memory_pipeline.archive.status import StoredFault
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.propagation import Difference, audit
from memory_pipeline.propagation.backlog import Backlog, backlog, completeness
from memory_pipeline.propagation.losses import Presence
from memory_pipeline.propagation.standing import Audited, as_json, audited, from_json, newest, not_audited, recorded
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import PARTITION_TAG

TARGET_SECONDS = 600.0
"""How long a change may take from the archive to the index."""

PROPAGATION_COMPLETE = AssetCheckKey(memory_index.key, "propagation_complete")
INDEX_MATCHES_ARCHIVE = AssetCheckKey(memory_index.key, "index_matches_archive")

_RESULTS = 20  # that are looked back on for audits: of two runs at once, neither repeats what the other one found


@asset_check(asset=session_ledgers)
def ledgers_readable(memory: Memory) -> AssetCheckResult:
    """Whether every session directory could be used: faults, refused or vanished directories, lines being written."""
    found, broken = of_each_workspace(workspace_names(memory), lambda name: _ledger_state(memory, name))
    refused: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    try:
        listing = workspaces_to_ingest(memory.runtime.settings.sessions)
        refused, gone = listing.refused, vanished(memory.runtime.database, listing)
    except SessionsUnavailable as error:
        broken["the sessions root"] = str(error)
    return with_broken(_ledgers(found, refused, gone), broken).result()


@asset_check(asset=memory_cards)
def promotions_reviewed(memory: Memory) -> AssetCheckResult:
    """Whether a reviewer has decided on every clarification: those neither promoted nor declined are candidates."""
    found, broken = of_each_workspace(workspace_names(memory), lambda name: _candidates(memory, name))
    total = sum(count for count, _ in found.values())
    listed = [
        {"workspace": w, "session": c.session_id, "seq": c.seq, "subject": c.subject}
        for w, (_, cs) in found.items()
        for c in cs
    ]
    outcome = Outcome(
        passed=not total,
        summary=f"{total} clarification(s) neither promoted nor declined"
        if total
        else "every clarification is decided",
        metadata={
            "candidates": total,
            "by_workspace": {name: count for name, (count, _) in found.items()},
            "look_at": listed[:LISTED],
        },
        severity=AssetCheckSeverity.WARN,
    )
    return with_broken(outcome, broken).result()


@asset_check(asset=memory_index, additional_deps=[solved_question_index])
def propagation_complete(memory: Memory) -> AssetCheckResult:
    """Whether every change of the archive has reached the index within ten minutes, with what is on its way and why.

    A collection that the index has lost fails it at once.
    """
    database, identity = memory.runtime.database, memory.runtime.identity.hash
    presence = Presence(memory.runtime.index)
    found, broken = of_each_workspace(workspace_names(memory), lambda name: backlog(database, identity, name, presence))
    return propagation_outcome(found, broken).result()


@asset_check(asset=memory_index, additional_deps=[solved_question_index])
def index_matches_archive(context: AssetCheckExecutionContext, memory: Memory) -> AssetCheckResult:
    """Whether the real index holds just what the archive certified, point by point. It reports, and mends nothing.

    A run audits its own workspace, one that is of none all; of the others the result repeats what the last audit found.
    """
    names, own = workspace_names(memory), context.run.tags.get(PARTITION_TAG)
    now = datetime.now(UTC)
    found, broken = of_each_workspace([own] if own else names, lambda name: audit(memory.runtime, name))
    fresh = {name: audited(report, report.ended or now) for name, report in found.items()}
    fresh |= {name: not_audited(why, now) for name, why in broken.items()}
    known = newest([fresh, *last_audits(context.instance), _recorded_audits(memory, names)])
    return _audits({name: known.get(name) for name in names}).result()


def last_audits(instance: DagsterInstance) -> Iterator[Mapping[str, Audited]]:
    """The audits in the last results of `index_matches_archive`, more of them than there are runs at once."""
    done = COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
    storage = instance.event_log_storage
    for record in storage.get_asset_check_execution_history(INDEX_MATCHES_ARCHIVE, _RESULTS, status=done):
        if isinstance(record.evaluation, AssetCheckEvaluation) and "audits" in record.evaluation.metadata:
            yield from_json(cast("Mapping[str, Any]", record.evaluation.metadata["audits"].value))


def _recorded_audits(memory: Memory, names: Sequence[str]) -> dict[str, Audited]:
    """The last audits that the archive knows of, whoever made them: a run, or somebody at the command line."""
    found, _ = of_each_workspace(names, lambda name: _recorded_audit(memory, name))
    return {name: recorded(last) for name, last in found.items() if last}


def _recorded_audit(memory: Memory, workspace: str) -> LastAudit | None:
    with memory.runtime.database.transaction(workspace) as tx:
        return audits.last(tx)


def propagation_outcome(found: Mapping[str, Backlog], broken: Mapping[str, str]) -> Outcome:
    """The pending work of all workspaces against the target. Its `counts` change only when something happens."""
    state = completeness(found, target=TARGET_SECONDS, now=datetime.now(UTC))
    pending = sum(state.pending.values())
    late = f", in {', '.join(state.overdue)} for longer than {TARGET_SECONDS:.0f} s" if state.overdue else ""
    lost = f"; the index has lost collections of {', '.join(state.lost)}" if state.lost else ""
    outcome = Outcome(
        passed=state.passed,
        summary=f"{pending} point(s) pending{late}{lost}" if pending else "nothing is pending",
        metadata={
            "pending": pending,
            "lag_seconds": round(state.lag_seconds, 3),
            "target_seconds": TARGET_SECONDS,
            "counts": {"pending": dict(state.pending), "reasons": dict(state.reasons)},
            "put_off": [{"workspace": w, **why.as_json()} for w, each in found.items() for why in each.put_off][
                :LISTED
            ],
        },
    )
    return with_broken(outcome, broken)


def severity_of(counts: Mapping[str, int]) -> AssetCheckSeverity:
    """How bad it is that so many points differ, by `Difference`: what other embeddings left over is read by nobody."""
    mendable = any(counts.get(difference.value) for difference in Difference if difference.mendable)
    return AssetCheckSeverity.ERROR if mendable else AssetCheckSeverity.WARN


@dataclass(frozen=True)
class _Ledgers:
    """What is known of a workspace's session directories: faults by kind, the first of them, lines waited for."""

    kinds: Mapping[str, int]
    first: Sequence[StoredFault]
    writing: Sequence[str]


def _ledger_state(memory: Memory, workspace: str) -> _Ledgers:
    with memory.runtime.database.transaction(workspace) as tx:
        return _Ledgers(status.fault_counts(tx), status.faults(tx, LISTED), waiting.waiting_sessions(tx))


def _ledgers(found: Mapping[str, _Ledgers], refused: Sequence[str], gone: Sequence[str]) -> Outcome:
    kinds: Counter[str] = Counter()
    for state in found.values():
        kinds.update(state.kinds)
    said = [f"{number} × {kind}" for kind, number in kinds.most_common()]
    said += [f"{len(refused)} refused director(y/ies): {', '.join(refused[:5])}"] if refused else []
    said += [f"{len(gone)} workspace(s) without a directory any more: {', '.join(gone[:5])}"] if gone else []
    return Outcome(
        passed=not said,
        summary="; ".join(said) or "every session directory could be used",
        metadata={
            "faults": kinds.total(),
            "by_kind": dict(kinds),
            "by_workspace": {workspace: sum(state.kinds.values()) for workspace, state in found.items()},
            "refused_directories": list(refused[:LISTED]),
            "vanished_workspaces": list(gone[:LISTED]),
            "lines_still_being_written": [f"{w}/{name}" for w, state in found.items() for name in state.writing][
                :LISTED
            ],
            "look_at": _faults_table((w, fault) for w, state in found.items() for fault in state.first),
        },
        severity=AssetCheckSeverity.WARN,
    )


def _faults_table(faults: Iterable[tuple[str, StoredFault]]) -> object:
    import pandas as pd  # noqa: PLC0415  # half a second that loading the definitions does not need

    rows = [
        {"workspace": w, "session": f.session_id, "line": f.line, "kind": f.kind, "reason": f.reason} for w, f in faults
    ]
    return as_markdown(pd.DataFrame(rows[:LISTED]))


def _candidates(memory: Memory, workspace: str) -> tuple[int, list[waiting.Candidate]]:
    with memory.runtime.database.transaction(workspace) as tx:
        return waiting.candidates(tx, LISTED)


def _audits(standing: Mapping[str, Audited | None]) -> Outcome:
    known = {name: last for name, last in standing.items() if last}
    never = [name for name in standing if name not in known]
    counts = {d.value: sum(last.counts.get(d.value, 0) for last in known.values()) for d in Difference}
    checked = sum(last.checked for last in known.values())
    differing = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    summary = f"{differing} of {checked} certified points" if differing else f"{checked} points match"
    outcome = Outcome(
        passed=not differing,
        summary=f"{summary}; never audited: {', '.join(never)}" if never else summary,
        metadata={
            **counts,
            "checked": checked,
            "by_workspace": {name: last.differing for name, last in known.items() if not last.failed},
            "audited_at": {name: last.at if last else "never" for name, last in standing.items()},
            "look_at": [{"workspace": name, **point} for name, last in known.items() for point in last.look_at][
                :LISTED
            ],
            "audits": as_json(known),
        },
        severity=severity_of(counts),
    )
    return with_broken(outcome, {name: last.failed for name, last in known.items() if last.failed})
