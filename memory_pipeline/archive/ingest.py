"""A sessions root → cards: makes workspaces, reads what changed, and takes it in, workspace by workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline import ledger
from memory_pipeline.archive import identities, sessions, workspaces
from memory_pipeline.archive.intake import IntakeReport, intake_concepts, intake_solved_questions
from memory_pipeline.archive.sessions import Progress, SessionsReport, synchronize
from memory_pipeline.errors import SessionsUnavailable
from memory_pipeline.lexical import is_supported

if TYPE_CHECKING:
    from pathlib import Path

    from memory_pipeline.archive.database import Database
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What the ingest of one workspace did."""

    sessions: SessionsReport
    concepts: IntakeReport
    solved_questions: IntakeReport


def workspaces_to_ingest(root: Path) -> ledger.RootListing:
    """The workspaces on disk, and the directories that cannot be one.

    Raises:
        SessionsUnavailable: the root cannot be read, or holds no directory at all.
    """
    listing = ledger.list_root(root)
    if not listing.workspaces and not listing.refused:
        raise SessionsUnavailable(
            f"{root.resolve()} holds no workspace: sessions are expected in <workspace>/<session>/ there, "
            "or wherever MEMORY_SESSIONS_ROOT points"
        )
    return listing


def vanished(database: Database, listing: ledger.RootListing) -> tuple[str, ...]:
    """The workspaces that sessions were read of and that are on disk no more; nothing of them is withdrawn."""
    missing = [name for name in workspaces.names(database) if name not in listing.workspaces]
    return tuple(name for name in missing if sessions.were_read(database, name))


def prepare(database: Database, workspace: str, settings: Settings, identity: EmbeddingIdentity) -> None:
    """Make the workspace where there is none, and keep projections for the embedding identity."""
    if workspace not in workspaces.names(database):
        language = _language(settings.sessions, workspace, settings.language)
        workspaces.make(database, workspace, language=language, principal=settings.acting_principal)
    with database.transaction(workspace) as tx:
        identities.register(tx, identity)


def ingest(
    database: Database,
    workspace: str,
    settings: Settings,
    identity: EmbeddingIdentity,
    progress: Progress = sessions.no_progress,
) -> IngestReport:
    """Read a workspace's changed sessions and bring its cards up to date. Neither index nor model is needed.

    Progress is told of one thing after the other: sessions, clarifications, solved questions.
    """
    prepare(database, workspace, settings, identity)
    principal = settings.acting_principal
    return IngestReport(
        synchronize(database, settings.sessions, workspace, progress),
        intake_concepts(database, workspace, principal=principal, progress=progress),
        intake_solved_questions(database, workspace, principal=principal, progress=progress),
    )


def _language(root: Path, workspace: str, default: str) -> str:
    """The language that the first session with a usable manifest names, else the setting's."""
    for directory in ledger.list_sessions(root, workspace):
        manifest = ledger.read_session(directory, workspace).manifest
        if manifest is not None:
            return manifest.language if manifest.language and is_supported(manifest.language) else default
    return default
