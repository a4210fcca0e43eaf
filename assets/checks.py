"""The checks. None is partitioned: each covers every workspace, and names the sessions or cards to look at."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from dagster import AssetCheckKey, AssetCheckResult, AssetCheckSeverity, asset_check

from assets.archive import memory_cards
from assets.common import as_markdown
from assets.index import memory_index, solved_question_index
from assets.outcomes import LISTED, Outcome, of_each_workspace, with_broken
from assets.sources import session_ledgers
from memory_pipeline.archive import status, waiting
from memory_pipeline.archive.status import StoredFault
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.ledger import list_root
from memory_pipeline.propagation import AuditReport, Difference, audit
from memory_pipeline.propagation.backlog import Backlog, backlog, completeness
from memory_pipeline.resources import Memory

TARGET_SECONDS = 600.0
"""How long a change may take from the archive to the index."""

PROPAGATION_COMPLETE = AssetCheckKey(memory_index.key, "propagation_complete")


@asset_check(asset=session_ledgers)
def ledgers_readable(memory: Memory) -> AssetCheckResult:
    """Whether every session directory could be used: faults, refused directories, last lines still being written."""
    found, broken = of_each_workspace(memory, lambda name: _ledger_state(memory, name))
    try:
        refused = list_root(memory.runtime.settings.sessions).refused
    except SessionsUnavailable as error:
        refused, broken = (), {**broken, "the sessions root": str(error)}
    return with_broken(_ledgers(found, refused), broken).result()


@asset_check(asset=memory_cards)
def promotions_reviewed(memory: Memory) -> AssetCheckResult:
    """Whether a reviewer has decided on every clarification: those neither promoted nor declined are candidates."""
    found, broken = of_each_workspace(memory, lambda name: _candidates(memory, name))
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
    """Whether every change of the archive has reached the index within ten minutes, with what is on its way and why."""
    found, broken = of_each_workspace(memory, lambda name: backlog(memory.runtime, name))
    return propagation_outcome(found, broken).result()


@asset_check(asset=memory_index, additional_deps=[solved_question_index])
def index_matches_archive(memory: Memory) -> AssetCheckResult:
    """Whether the real index holds just what the archive certified, point by point. It reports, and mends nothing."""
    found, broken = of_each_workspace(memory, lambda name: audit(memory.runtime, name))
    return with_broken(_audited(found), broken).result()


def propagation_outcome(found: Mapping[str, Backlog], broken: Mapping[str, str]) -> Outcome:
    """The pending work of all workspaces against the target. Its `counts` change only when something happens."""
    state = completeness(found, target=TARGET_SECONDS, now=datetime.now(UTC))
    pending = sum(state.pending.values())
    late = f", in {', '.join(state.overdue)} for longer than {TARGET_SECONDS:.0f} s" if state.overdue else ""
    outcome = Outcome(
        passed=state.passed,
        summary=f"{pending} point(s) pending{late}" if pending else "nothing is pending",
        metadata={
            "pending": pending,
            "lag_seconds": round(state.lag_seconds, 3),
            "target_seconds": TARGET_SECONDS,
            "counts": {"pending": dict(state.pending), "reasons": dict(state.reasons)},
        },
    )
    return with_broken(outcome, broken)


def _ledger_state(memory: Memory, workspace: str) -> tuple[list[StoredFault], list[str]]:
    with memory.runtime.database.transaction(workspace) as tx:
        return status.faults(tx), waiting.waiting_sessions(tx)


def _ledgers(found: Mapping[str, tuple[list[StoredFault], list[str]]], refused: tuple[str, ...]) -> Outcome:
    kinds = Counter(fault.kind for faults, _ in found.values() for fault in faults)
    writing = [f"{workspace}/{session}" for workspace, (_, sessions) in found.items() for session in sessions]
    counted = [f"{number} × {kind}" for kind, number in kinds.most_common()]
    counted += [f"{len(refused)} refused director(y/ies): {', '.join(refused[:5])}"] if refused else []
    return Outcome(
        passed=not kinds and not refused,
        summary="; ".join(counted) or "every session directory could be used",
        metadata={
            "faults": kinds.total(),
            "by_kind": dict(kinds),
            "by_workspace": {workspace: len(faults) for workspace, (faults, _) in found.items()},
            "refused_directories": list(refused[:LISTED]),
            "lines_still_being_written": writing[:LISTED],
            "look_at": _faults_table((w, fault) for w, (faults, _) in found.items() for fault in faults),
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


def _audited(found: Mapping[str, AuditReport]) -> Outcome:
    counts = {d.value: sum(report.count(d) for report in found.values()) for d in Difference}
    checked = sum(report.checked for report in found.values())
    differing = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    listed = [
        {"workspace": workspace, "collection": collection.value, "difference": f.difference.value, "item": f.item_id}
        for workspace, report in found.items()
        for collection, findings in report.findings.items()
        for f in findings[:LISTED]
    ]
    return Outcome(
        passed=not differing,
        summary=f"{differing} of {checked} certified points" if differing else f"{checked} points match",
        metadata={
            **counts,
            "checked": checked,
            "by_workspace": {w: sum(map(len, report.findings.values())) for w, report in found.items()},
            "look_at": listed[:LISTED],
        },
    )
