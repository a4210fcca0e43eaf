"""Keeps computed vectors, so that no text is embedded twice under one embedding identity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.embedding.base import Role

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx

_SQL = load("embeddings")


@dataclass(frozen=True, slots=True)
class Kept:
    """A vector as little-endian float32, and whether the model read only the text's beginning."""

    vector: bytes
    truncated: bool


def find(tx: Tx, identity: str, keys: Collection[tuple[Role, str]]) -> dict[tuple[Role, str], Kept]:
    """The kept vectors of (role, text hash) pairs; those not kept are left out."""
    roles, hashes = [role.value for role, _ in keys], [text_hash for _, text_hash in keys]
    rows = tx.rows(_SQL["find"], identity=identity, roles=roles, hashes=hashes)
    return {(Role(r["role"]), r["text_hash"]): Kept(bytes(r["vector"]), r["truncated"]) for r in rows}


def keep(tx: Tx, identity: str, vectors: Mapping[tuple[Role, str], Kept]) -> None:
    """Keep vectors; one that another process kept meanwhile stays.

    They are written in the order of their keys: of two that keep the same ones, one then waits for the other.
    """
    keys = sorted(vectors)
    if keys:
        tx.run(
            _SQL["keep"],
            identity=identity,
            roles=[role.value for role, _ in keys],
            hashes=[text_hash for _, text_hash in keys],
            vectors=[vectors[key].vector for key in keys],
            truncated=[vectors[key].truncated for key in keys],
        )
