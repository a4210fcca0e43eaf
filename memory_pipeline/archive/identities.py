"""Which embedding identities the archive keeps projections for, and which of them recall uses.

There is one but while the embeddings change: then the live one goes on being kept current, and the one that the
settings name is filled beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive.queries import load

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.embedding.base import EmbeddingIdentity

_SQL = load("identities")


@dataclass(frozen=True, slots=True)
class Registered:
    """An embedding identity that projections are kept for.

    Attributes:
        identity: its hash.
        settings: what `EmbeddingIdentity.settings` gave.
        live: whether recall uses it.
        registered_at: since when.
    """

    identity: str
    settings: Mapping[str, Any]
    live: bool
    registered_at: datetime


def register(tx: Tx, identity: EmbeddingIdentity) -> None:
    """Keep projections of this identity for the workspace; a new one wants a point for everything in the archive."""
    tx.run(_SQL["register"], identity=identity.hash, settings=json.dumps(identity.settings))


def registered(tx: Tx) -> list[Registered]:
    """The identities that projections are kept for, the live one first, then the longest kept."""
    return [Registered(**row) for row in tx.rows(_SQL["registered"])]


def serving(tx: Tx, configured: str) -> str:
    """The hash of the identity that recall uses, as far as the archive knows: without a record, the configured one."""
    return str(tx.row(_SQL["serving"], configured=configured)["identity"])


def current(tx: Tx, configured: str) -> list[str]:
    """The hashes of the identities to be kept current: the one that recall uses, and the configured one."""
    return list(dict.fromkeys([serving(tx, configured), configured]))


def live(tx: Tx) -> Mapping[str, Any] | None:
    """The settings of the identity that recall uses, as far as the archive knows."""
    return next((each.settings for each in registered(tx) if each.live), None)


def of_vectors(tx: Tx) -> set[str]:
    """The hashes of the identities that vectors are kept of."""
    return {row["identity"] for row in tx.rows(_SQL["of_vectors"])}


def unready(tx: Tx, identity: str, live: str | None) -> int:
    """How many points keep a registered identity from becoming the live one.

    They are those that are pending, but for those that were tried in vain for the live one too: a card that no model
    embeds keeps no other from its successor.

    Args:
        tx: an open transaction.
        identity: its hash.
        live: the hash of the one that recall uses now; None when there is none, and nothing to lose.
    """
    return int(tx.row(_SQL["unready"], identity=identity, live=live)["points"])


def record_live(tx: Tx, identity: str, configured: str) -> None:
    """Record that recall uses an identity, which is registered. What was live before is kept current no more.

    Args:
        tx: an open transaction.
        identity: its hash.
        configured: the hash of the one that the settings name, which goes on being kept.
    """
    tx.run(_SQL["forget_former"], identity=identity, configured=configured)
    tx.run(_SQL["put_out"], identity=identity)
    tx.run(_SQL["make_live"], identity=identity)


def unregister(tx: Tx, identities: Sequence[str]) -> None:
    """Keep no projections for these identities (their hashes) any more. Their vectors stay, in case one comes back."""
    tx.run(_SQL["unregister"], identities=list(identities))


def forget(tx: Tx, identity: str) -> int:
    """Keep nothing of an identity (its hash) any more; how many vectors went."""
    unregister(tx, [identity])
    return tx.run(_SQL["forget_vectors"], identity=identity)
