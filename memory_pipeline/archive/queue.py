"""Edits in bulk: submitted together, applied one by one in their order, with the rights of whoever submitted them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Literal

from sqlalchemy.exc import IntegrityError

from memory_pipeline import jsonl
from memory_pipeline.archive import editing, grants, identities
from memory_pipeline.archive.database import first_line
from memory_pipeline.archive.queries import load
from memory_pipeline.archive.waiting import count_waiting_edits
from memory_pipeline.edits import Change, Delete, Edit, Merge, edit_faults, refuse
from memory_pipeline.edits_json import edit_as_json, parse_edit
from memory_pipeline.errors import CardNotFound, InvalidEdit, InvalidInput, NotPermitted, VersionConflict

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from memory_pipeline.archive.database import Database, Tx
    from memory_pipeline.embedding.base import EmbeddingIdentity

_SQL = load("queue")

State = Literal["waiting", "applied", "refused"]

_REFUSALS = (InvalidEdit, InvalidInput, CardNotFound, VersionConflict, NotPermitted)


@dataclass(frozen=True, slots=True)
class QueuedEdit:
    """An edit that was submitted, and what became of it.

    Attributes:
        edit_id: its number; edits are applied in the order of their numbers.
        principal: who submitted it, and under whose rights it is applied.
        submitted_at: when it was submitted.
        operation: create, change, delete or merge.
        card_id: which card; None for one that is not made yet. Of a merge, the one that is kept.
        merged_id: of a merge, the card that goes.
        state: waiting, applied or refused.
        reason: why it was refused.
        finished_at: when it was applied or refused.
        content: the edit as it was submitted; None once it is applied or discarded.
    """

    edit_id: int
    principal: str
    submitted_at: datetime
    operation: str
    card_id: str | None
    merged_id: str | None
    state: State
    reason: str | None
    finished_at: datetime | None
    content: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """The edit as JSON-ready values."""
        moments = {"submitted_at": self.submitted_at, "finished_at": self.finished_at}
        return {**asdict(self), **{name: at and at.isoformat() for name, at in moments.items()}}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An edit that this run refused, and why."""

    edit_id: int
    principal: str
    operation: str
    card_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What one run over the waiting edits did; `waiting` were submitted since."""

    applied: int = 0
    refused: tuple[Refusal, ...] = ()
    waiting: int = 0


def read(stream: IO[bytes]) -> list[Edit]:
    """The edits in a file of JSON lines, each as `parse_edit` describes it.

    Raises:
        InvalidEdit: with every faulty line at once, each with its number.
        InvalidInput: the file holds no edit at all, or a line that is too long for one.
    """
    edits, faults = [], jsonl.Faults()
    for number, line in jsonl.lines(stream):
        try:
            edits.append(_edit(line))
        except (ValueError, InvalidEdit) as error:
            faults.add(number, str(error))
    if faults.total:
        raise InvalidEdit(faults.named())
    if not edits:
        raise InvalidInput("there is no edit in it: write one JSON object a line")
    return edits


def submit(tx: Tx, principal: str, edits: Sequence[Edit]) -> int:
    """Let edits wait to be applied, all of them or none; how many.

    Raises:
        NotPermitted: the principal is no administrator of the workspace.
        InvalidEdit: PostgreSQL cannot keep a text of an edit.
    """
    grants.require_in(tx, principal, grants.Role.ADMINISTRATOR)
    rows = [{"principal": principal, **_row(edit)} for edit in edits]
    tx.run_many(_SQL["submit"], rows)
    return len(rows)


def apply_waiting(database: Database, workspace: str, identity: EmbeddingIdentity) -> QueueReport:
    """Apply the waiting edits in their order, each in a transaction of its own; projections are kept for the identity.

    An edit that is refused keeps its content and the reason, and stops no other. The mark that an edit is applied
    commits together with what it did, so that no interruption applies it twice or marks it without effect.

    Raises:
        UnknownWorkspace: the archive has no such workspace.
        ArchiveUnavailable: PostgreSQL went away; what is not applied yet still waits.
    """
    applied, refused = 0, []
    while (waiting := _next(database, workspace)) is not None:
        try:
            applied += _apply(database, workspace, waiting, identity)
        except _REFUSALS as error:
            refused += _refuse(database, workspace, waiting, str(error))
        except IntegrityError as error:  # which would otherwise keep all others waiting for ever
            refused += _refuse(database, workspace, waiting, f"the archive cannot keep it: {first_line(error)}")
    with database.transaction(workspace) as tx:
        return QueueReport(applied, tuple(refused), count_waiting_edits(tx))


def discard(tx: Tx, principal: str, edit_ids: Sequence[int]) -> int:
    """Drop what edits contain, of refused ones and of those that still wait, which are then refused; how many.

    Who submitted what and when stays, as it does for those that were applied; the reason of a refusal goes too, since
    it may quote a card. All of them, or none.

    Raises:
        NotPermitted: the principal is no administrator of the workspace.
        InvalidInput: an edit does not exist here, or has nothing left to drop.
    """
    grants.require_in(tx, principal, grants.Role.ADMINISTRATOR)
    ids = sorted(set(edit_ids))
    found = {row["edit_id"] for row in tx.rows(_SQL["discard"], edit_ids=ids, reason=f"discarded by {principal}")}
    if missing := [str(edit_id) for edit_id in ids if edit_id not in found]:
        raise InvalidInput(
            f"workspace {tx.workspace!r} has nothing to discard of edit {', '.join(missing)}: "
            "`memory-pipeline edits list` shows which wait and which are refused"
        )
    return len(found)


def listed(tx: Tx, state: State | None = None, *, limit: int = 100) -> list[QueuedEdit]:
    """The edits submitted last, in the order of their submission, of one state or any."""
    return [QueuedEdit(**row) for row in tx.rows(_SQL["listed"], state=state, limit=limit)]


def counts(tx: Tx) -> dict[str, int]:
    """How many edits of the workspace there are in each state; every state is named."""
    found = {"waiting": 0, "applied": 0, "refused": 0}
    return found | {row["state"]: row["edits"] for row in tx.rows(_SQL["counts"])}


def _edit(line: bytes) -> Edit:
    value = jsonl.parsed(line)
    if fault := jsonl.unstorable(value):
        raise ValueError(f"cannot be kept, since {fault}: take it out")
    edit = parse_edit(value)
    refuse(edit_faults(edit))
    return edit


def _row(edit: Edit) -> dict[str, object]:
    content = edit_as_json(edit)
    if fault := jsonl.unstorable(content):
        raise InvalidEdit({"edit": f"cannot be kept, since {fault}: take it out"})
    card_id = edit.card_id if isinstance(edit, Change | Delete) else edit.keep if isinstance(edit, Merge) else None
    return {
        "operation": content["operation"],
        "card_id": card_id,
        "merged_id": edit.other if isinstance(edit, Merge) else None,
        "content": json.dumps(content, ensure_ascii=False),
    }


def _next(database: Database, workspace: str) -> RowMapping | None:
    with database.transaction(workspace) as tx:
        return next(iter(tx.rows(_SQL["next"])), None)


def _apply(database: Database, workspace: str, waiting: RowMapping, identity: EmbeddingIdentity) -> int:
    """Apply an edit, unless another process did while this transaction waited for its own; how many were applied."""
    edit_id, principal = waiting["edit_id"], waiting["principal"]
    with database.transaction(workspace, writing=True) as tx:
        if not tx.rows(_SQL["still_waiting"], edit_id=edit_id):
            return 0
        grants.require_in(tx, principal, grants.Role.ADMINISTRATOR)  # which may have been taken away since
        identities.register(tx, identity)
        saved = editing.apply(tx, parse_edit(waiting["content"]), principal=principal)
        return tx.run(_SQL["applied"], edit_id=edit_id, card_id=saved.card_id)


def _refuse(database: Database, workspace: str, waiting: RowMapping, reason: str) -> list[Refusal]:
    with database.transaction(workspace) as tx:
        marked = tx.run(_SQL["refused"], edit_id=waiting["edit_id"], reason=reason)
    refusal = Refusal(waiting["edit_id"], waiting["principal"], waiting["operation"], waiting["card_id"], reason)
    return [refusal] if marked else []
