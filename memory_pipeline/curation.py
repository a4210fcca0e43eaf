"""What administrators do to a workspace, each as one call: may they, do it, propagate it, and say what became of it.

PostgreSQL is all that it needs: with the index or the embedding model away, an edit is saved and reported incomplete.
Only the removal of a workspace has to reach the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from memory_pipeline import ledger
from memory_pipeline.archive import duplicates, editing, grants, identities, listing, projections, workspaces
from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.archive.incomplete import Incomplete, IncompletePage, incomplete, points_of, require_known
from memory_pipeline.archive.overview import Overview, overview
from memory_pipeline.completion import complete
from memory_pipeline.edits import Change, Create, Delete, Edit
from memory_pipeline.errors import InvalidInput, SessionsUnavailable, WorkspaceInUse
from memory_pipeline.lexical import supported_language
from memory_pipeline.propagation import ProjectionReport, project
from memory_pipeline.propagation.removal import points_removed

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.duplicates import Proposals
    from memory_pipeline.archive.editing import Saved
    from memory_pipeline.archive.grants import Grant
    from memory_pipeline.archive.listing import CardDetail, ListRequest, Page
    from memory_pipeline.archive.workspaces import Holdings
    from memory_pipeline.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an edit.

    Attributes:
        card_id: the card that was made, changed, kept or deleted.
        version: its version now; None when it was deleted.
        saved: whether the archive holds the edit. An edit that is not saved is an error.
        recallable: whether recall answers accordingly: no point of the card, or of a question behind it, is pending.
        reason: why it is not recallable yet; None when it is.
        changed: whether the edit changed anything.
        flags: those that the card has now.
        under_way: whether another process is making it recallable.
    """

    card_id: str
    version: int | None
    saved: bool
    recallable: bool
    reason: str | None
    changed: bool
    flags: tuple[str, ...]
    under_way: bool = False


class Curation:
    """The administration of workspaces, on behalf of one principal.

    Every call asks the principal's role: whatever changes something takes an administrator's. All raise
    UnknownWorkspace, NotPermitted, ArchiveUnavailable and SchemaOutOfDate.

    Args:
        runtime: archive, index and embedder, of which the latter two may be away.
        principal: who acts; by default whom the settings name.
        reading: the role that looking takes, by default any.
    """

    def __init__(
        self, runtime: Runtime, principal: str | Principal | None = None, *, reading: Role = Role.READER
    ) -> None:
        self._runtime = runtime
        self._who = Principal.of(principal or runtime.settings.acting_principal)
        self._reads = reading

    @property
    def principal(self) -> str:
        """The name of who acts."""
        return self._who.name

    def save(self, workspace: str, edit: Edit, *, propagate: bool = True) -> Outcome:
        """Apply an edit in one transaction and then, if it can be, bring the points that it touched up to date.

        Args:
            workspace: whose card.
            edit: what to do.
            propagate: whether to bring the points up to date in this call. It waits for a model's work on this edit
                alone, and for no more than a batch or two of others' points.

        Raises:
            InvalidEdit, CardNotFound, VersionConflict: nothing was saved.
            ArchiveUnavailable: nothing was saved, unless the loss came while committing.
        """
        saved, items, along = self._applied(workspace, edit)
        done = complete(self._runtime, workspace, items, along=along, propagate=propagate)
        return Outcome(**asdict(saved), saved=True, **asdict(done))

    def overview(self, workspace: str, *, hours: float = 24) -> Overview:
        """The workspace at a glance, all of it at one moment; it takes neither index nor model.

        Args:
            workspace: which one.
            hours: how far back the history of its backlog goes, up to 720.

        Raises:
            InvalidInput: there is no history of so many hours.
        """
        with self._reading(workspace) as tx:
            return overview(tx, self._runtime.identity.hash, hours=hours)

    def list(self, workspace: str, request: ListRequest) -> Page:
        """One page of the cards that a request asks for, and how many there are in all.

        Raises:
            InvalidInput: the request cannot be answered.
        """
        with self._reading(workspace) as tx:
            return listing.list_cards(tx, self._serving(tx), request)

    def detail(self, workspace: str, card_id: str) -> CardDetail:
        """A card with all that belongs to it.

        Raises:
            CardNotFound: there is no such card in the workspace.
        """
        with self._reading(workspace) as tx:
            return listing.detail(tx, self._serving(tx), card_id)

    def duplicates(self, workspace: str, limit: int = 50) -> Proposals:
        """The pairs of cards that are worth merging, `limit` of them at most; merging is an edit like any other."""
        with self._reading(workspace) as tx:
            return duplicates.proposed(tx, limit)

    def pending(self, workspace: str) -> Sequence[Incomplete]:
        """The points that do not hold yet what the archive wants, deleted cards included, longest waiting first."""
        with self._reading(workspace) as tx:
            return incomplete(tx, identities.current(tx, self._runtime.identity.hash))

    def pending_page(self, workspace: str, *, limit: int, offset: int = 0) -> IncompletePage:
        """Some of the pending points, longest waiting first, and how many there are.

        Args:
            workspace: of which workspace.
            limit: at most so many.
            offset: how many come before them.
        """
        found = self.pending(workspace)
        return IncompletePage(tuple(found[offset : offset + limit]), len(found))

    def retry(
        self, workspace: str, card_id: str | None = None, *, limit: int | None = None, wait: float | None = None
    ) -> ProjectionReport:
        """Complete what is pending, now, from the state that the archive has now.

        Args:
            workspace: of which workspace.
            card_id: only of this card, which may be deleted; by default all.
            limit: only the items that wait longest, so many at most; by default all.
            wait: seconds to wait for another process that is projecting; by default a minute.

        Raises:
            CardNotFound: the workspace has no such card, and none that is deleted and pending.
            IndexUnavailable, IndexIncompatible, EmbedderUnavailable: what is unfinished stays pending.
        """
        items = None
        with self._allowed(workspace, Role.ADMINISTRATOR) as tx:
            if card_id is not None:
                require_known(tx, card_id)
                items = points_of(tx, [card_id])
            elif limit is not None:
                found = incomplete(tx, identities.current(tx, self._runtime.identity.hash))
                items = {point.item_id for point in found[:limit]}
        return project(self._runtime, workspace, retry_now=True, items=items, wait=wait)

    def grants(self, workspace: str) -> Sequence[Grant]:
        """Who may do what in the workspace."""
        with self._reading(workspace) as tx:
            return grants.of_workspace(tx)

    def give(self, workspace: str, principal: str, role: Role) -> bool:
        """Let a principal do what a role allows; whether that changed anything. See `grants.give`."""
        return grants.give(self._runtime.database, workspace, principal, role, by=self._who)

    def take(self, workspace: str, principal: str) -> bool:
        """Take a principal's grant away; whether there was one. See `grants.take`."""
        return grants.take(self._runtime.database, workspace, principal, by=self._who)

    def workspaces(self) -> Mapping[str, Role]:
        """The workspaces in which the principal has a role, and which."""
        return grants.held_by(self._runtime.database, self._who)

    def make_workspace(self, workspace: str, language: str | None = None) -> bool:
        """Make a workspace where there is none, with the principal as its first administrator; whether it was made.

        Args:
            workspace: its name.
            language: Snowball's name of its texts' language; by default the settings'.

        Raises:
            UnknownWorkspace: no workspace may be called so.
            InvalidSettings: the language is not supported.
            InvalidInput: it is there already, in another language than the one that is named.
        """
        database, spoken = self._runtime.database, language or self._runtime.settings.language
        made = workspaces.make(database, workspace, language=spoken, principal=self.principal)
        if language and not made:
            with database.transaction(workspace) as tx:
                if tx.language != supported_language(language):
                    raise InvalidInput(
                        f"workspace {workspace!r} is there already and analysed as {tx.language}, which stays: "
                        f"make one of another name for texts in {language}"
                    )
        return made

    def removable(self, workspace: str) -> Holdings:
        """What would go with a workspace.

        Raises:
            WorkspaceInUse: its session directories would bring its content back.
            SessionsUnavailable: whether there are any cannot be told.
        """
        with self._allowed(workspace, Role.ADMINISTRATOR) as tx:
            found = workspaces.holdings(tx)
        self._refuse_sessions(workspace)
        return found

    def remove_workspace(self, workspace: str) -> Holdings:
        """Remove a workspace, first its points and then all that the archive holds of it.

        Interrupted, or with the index away, the workspace is still there, and all of its points are pending: to be
        removed again, or to be projected again. Session directories are nobody's but the user's.

        Returns:
            what went, also what came in between being asked and being done.

        Raises:
            WorkspaceInUse, SessionsUnavailable: as for `removable`.
            IndexUnavailable: the index is away, or a projector stays at work.
        """
        before = self.removable(workspace)
        with points_removed(self._runtime, workspace), self._changing(workspace) as tx:
            found = workspaces.holdings(tx)
            workspaces.remove(tx)
        return replace(found, points=before.points)  # which have gone already

    def _applied(self, workspace: str, edit: Edit) -> tuple[Saved, set[str], set[str]]:
        """Save an edit; the outcome, the items whose points it may have touched, and those that it made pending.

        The SQL of a solved question can change the shapes of others, which recall would miss until they are projected.
        """
        with self._changing(workspace) as tx:
            identities.register(tx, self._runtime.identity)  # or nobody would know what is missing from the index
            touched, before = points_of(tx, _cards_of(edit)), projections.made_pending(tx)
            saved = editing.apply(tx, edit, principal=self.principal)
            along = projections.made_pending(tx) - before
        return saved, {*touched, saved.card_id}, along

    def _serving(self, tx: Tx) -> str:
        return identities.serving(tx, self._runtime.identity.hash)

    def _refuse_sessions(self, workspace: str) -> None:
        root = self._runtime.settings.sessions
        directory = root / workspace
        try:
            fed = directory.is_dir() and ledger.list_sessions(root, workspace)
        except OSError as error:  # not to be able to look is not to find none
            raise SessionsUnavailable(f"{directory} cannot be read ({error.strerror}): make it readable") from None
        if fed:
            raise WorkspaceInUse(
                f"{directory} holds sessions of workspace {workspace!r}: the next ingest would bring its content back; "
                "move that directory away first"
            )

    def _reading(self, workspace: str) -> AbstractContextManager[Tx]:
        return grants.granted(self._runtime.database, workspace, self._who, self._reads, snapshot=True)

    def _allowed(self, workspace: str, role: Role) -> AbstractContextManager[Tx]:
        return grants.granted(self._runtime.database, workspace, self._who, role)

    def _changing(self, workspace: str) -> AbstractContextManager[Tx]:
        return grants.granted(self._runtime.database, workspace, self._who, Role.ADMINISTRATOR, writing=True)


def _cards_of(edit: Edit) -> tuple[str, ...]:
    """The existing cards that an edit gives other contents or takes away."""
    if isinstance(edit, Create):
        return ()
    if isinstance(edit, Change | Delete):
        return (edit.card_id,)
    return edit.keep, edit.other
