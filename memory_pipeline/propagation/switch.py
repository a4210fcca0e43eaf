"""From one embedding identity to the next: what is kept current meanwhile, when recall switches, and what is left over.

The configured identity is filled beside the live one, which goes on answering recall and being kept current. It becomes
the live one in one step as soon as it is complete. Collections that nobody uses any more stay until they are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections, workspaces
from memory_pipeline.cards import Collection
from memory_pipeline.errors import IndexIncompatible, IndexUnavailable, InvalidInput
from memory_pipeline.points import target
from memory_pipeline.propagation.locks import alone, switching

if TYPE_CHECKING:
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.index.base import Target
    from memory_pipeline.runtime import Runtime


def current_identities(runtime: Runtime, workspace: str) -> list[EmbeddingIdentity]:
    """The identities that are kept current in a workspace: the live one, and the configured one where it is another.

    One that is live and that this version of the library cannot make points for is left to itself until the switch.
    """
    try:
        live = runtime.live_identity(workspace)
    except (IndexUnavailable, IndexIncompatible):  # an index that is away says so where there is work for it
        live = runtime.identity
    return list(dict.fromkeys([live, runtime.identity]))


def record_live(runtime: Runtime, workspace: str) -> str | None:
    """Let the archive know which identity the index says recall uses; its hash, or None where there is none yet.

    Raises:
        ArchiveUnavailable, IndexUnavailable.
    """
    live = _live(runtime, workspace)
    if live is not None:
        _record(runtime, [workspace], live)
    return live


def complete(runtime: Runtime, workspace: str, live: str | None) -> bool:
    """Whether nothing keeps the configured identity from becoming live in all workspaces that switch together.

    Args:
        runtime: the services.
        workspace: one of them.
        live: the hash of the one that recall uses now; see `identities.unready`.
    """
    return all(_ready(runtime, name, live) for name in sharing(runtime, workspace))


def make_live(runtime: Runtime, workspace: str) -> bool:
    """Let recall use the configured identity, if its collections are complete.

    Embedded, each workspace has collections of its own and switches by itself; on a server they are shared, and the
    aliases move when every workspace's are. Nothing else that was live or being filled is kept current any more.

    Returns:
        whether recall uses the configured identity.

    Raises:
        ArchiveUnavailable, IndexUnavailable.
    """
    identity = runtime.identity
    with switching(runtime) as held:
        # Both are read in here: whoever switches or removes a workspace holds the lock too.
        live, concerned = _live(runtime, workspace), sharing(runtime, workspace)
        if live == identity.hash:
            return True
        if not held or not complete(runtime, workspace, live):
            return False
        for collection in Collection:
            runtime.index.ensure(target(workspace, collection, identity))
        runtime.index.activate(workspace, identity.hash, identity.settings, [c.value for c in Collection])
        _record(runtime, concerned, identity.hash)
        _unregister_others(runtime, concerned)
    return True


def sharing(runtime: Runtime, workspace: str) -> list[str]:
    """The workspaces that switch together with one: embedded itself, on a server all."""
    return [workspace] if runtime.settings.qdrant_url is None else workspaces.names(runtime.database)


@dataclass(frozen=True, slots=True)
class IdentityUse:
    """An embedding identity that archive or index know of, and what for.

    Attributes:
        identity: its hash.
        model: provider and model, as far as the archive knows.
        configured: whether the settings name it.
        live: the workspaces whose recall uses it.
        registered: the workspaces in which it is kept current, or was being filled.
        collections: the workspaces that have collections of it; on a server, all share them.
    """

    identity: str
    model: str
    configured: bool
    live: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()

    @property
    def used(self) -> bool:
        """Whether it must not be dropped."""
        return self.configured or bool(self.live)


def known_identities(runtime: Runtime) -> list[IdentityUse]:
    """Every identity that archive or index know of, the configured one first, then those that are live.

    Raises:
        ArchiveUnavailable, IndexUnavailable.
    """
    configured = runtime.identity
    found = {configured.hash: IdentityUse(configured.hash, _model(configured.settings), configured=True)}
    for name in workspaces.names(runtime.database):
        with runtime.database.transaction(name) as tx:
            registered = {each.identity: each for each in identities.registered(tx)}
            of_vectors = identities.of_vectors(tx)
        # An index that was lost says nothing, and recall goes by the archive then.
        live = _live(runtime, name) or next((each for each, use in registered.items() if use.live), None)
        in_index = {i for c in Collection for i in runtime.index.identities(name, c.value)}
        for identity in sorted({*registered, *of_vectors, *in_index} | ({live} if live else set())):
            use = found.get(identity) or IdentityUse(identity, "", configured=False)
            found[identity] = replace(
                use,
                model=use.model or (_model(registered[identity].settings) if identity in registered else ""),
                live=(*use.live, *([name] if identity == live else [])),
                registered=(*use.registered, *([name] if identity in registered else [])),
                collections=(*use.collections, *([name] if identity in in_index else [])),
            )
    return sorted(found.values(), key=lambda use: (not use.configured, not use.live, use.identity))


def drop_identity(runtime: Runtime, identity: str) -> IdentityUse:
    """Drop an identity that nobody uses any more: its collections, its projections and its vectors.

    Args:
        runtime: the services.
        identity: its hash.

    Returns:
        what it was known for.

    Raises:
        InvalidInput: there is none of that hash, or it is still used.
        IndexUnavailable: the index is away, or a projector stays at work; whatever was not dropped can be again.
        ArchiveUnavailable.
    """
    with switching(runtime) as held:
        if not held:
            raise _busy(identity)
        known = {use.identity: use for use in known_identities(runtime)}
        use = known.get(identity)
        if use is None:
            raise InvalidInput(f"no embedding identity {identity!r} is known; there are {', '.join(known)}")
        if use.used:
            why = f"recall uses it in {', '.join(use.live)}" if use.live else "the settings name it"
            raise InvalidInput(f"the embedding identity {identity} cannot be dropped: {why}")
        for name in workspaces.names(runtime.database):
            _drop(runtime, name, identity)
    return use


def _drop(runtime: Runtime, workspace: str, identity: str) -> None:
    with ExitStack() as held:
        for collection in Collection:
            if not held.enter_context(alone(runtime, workspace, collection, identity=identity)):
                raise _busy(identity)
        # In this order: what the archive keeps no projections for is reported by the audit until it is gone.
        with runtime.database.transaction(workspace) as tx:
            identities.forget(tx, identity)
        for collection in Collection:
            runtime.index.remove_collection(_target(runtime, workspace, collection, identity))


def _target(runtime: Runtime, workspace: str, collection: Collection, identity: str) -> Target:
    return replace(target(workspace, collection, runtime.identity), identity=identity)


def _busy(identity: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"another process is at work with the embedding identity {identity}, or switching to another: try again later"
    )


def _live(runtime: Runtime, workspace: str) -> str | None:
    """The hash of the identity that the index says recall uses."""
    settings = runtime.index.live_identity(workspace)
    return None if settings is None else str(settings["hash"])


def _record(runtime: Runtime, names: Iterable[str], live: str) -> None:
    for name in names:
        with runtime.database.transaction(name) as tx:
            if identities.serving(tx, "") != live:
                identities.record_live(tx, live, runtime.identity.hash)


def _unregister_others(runtime: Runtime, names: Iterable[str]) -> None:
    for name in names:
        with runtime.database.transaction(name) as tx:
            others = {each.identity for each in identities.registered(tx)} - {runtime.identity.hash}
            identities.unregister(tx, sorted(others))


def _ready(runtime: Runtime, workspace: str, live: str | None) -> bool:
    identity = runtime.identity.hash
    with runtime.database.transaction(workspace) as tx:
        known = any(each.identity == identity for each in identities.registered(tx))
        # Where nobody has registered it yet, everything is pending.
        return not (identities.unready(tx, identity, live) if known else projections.waiting(tx, identity).pending)


def _model(settings: Mapping[str, object]) -> str:
    return " ".join(str(settings[name]) for name in ("provider", "model") if name in settings)
