"""Audits, repairs and rebuilds the index of a large workspace, and measures the memory that the audit takes.

    python -m benchmarks.audit [--cards 10000] [--json FILE]

Seconds on this machine, and MiB that Python holds at the peak, what was there before left out; the home is made for
the run and removed. Random vectors stand for the model's, which are kept and computed once anyway.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from memory_pipeline.archive import cards, workspaces
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, project, rebuild, repair
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

_WORKSPACE = "large"
_BATCH = 1_000


class RandomEmbedder:
    """Gives every text a vector at once."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._random = np.random.default_rng(1)

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002  # chance knows no roles
        """A vector for each text."""
        vectors = self._random.standard_normal((len(texts), self._dimension)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:  # noqa: ARG002  # likewise
        """No text is too long."""
        return [False] * len(texts)


def fill(runtime: Runtime, count: int) -> None:
    workspaces.make(runtime.database, _WORKSPACE, language="italian", principal="benchmark")
    made = [CardContent(Family.CONCEPT, f"subject {n}", f"detail {n}") for n in range(count)]
    for start in range(0, count, _BATCH):
        with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
            cards.create(tx, made[start : start + _BATCH], origin="hand", principal="benchmark")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(time.perf_counter() - start, 2)


def peak(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round(highest / 2**20, 1)


def measure(runtime: Runtime, count: int) -> dict[str, float]:
    runtime.embedder = RandomEmbedder(runtime.identity.dimension)
    fill(runtime, count)
    into = target(_WORKSPACE, Collection.MEMORY_CARDS, runtime.identity)
    figures = {"projection": seconds(lambda: project(runtime, _WORKSPACE))}

    def look() -> None:
        figures["points that differ"] = sum(audit(runtime, _WORKSPACE).counts.values())

    figures["audit, none differs"] = seconds(look)
    figures["audit, none differs, MiB"] = peak(look)
    runtime.index.delete(into, [point_id(_WORKSPACE, f"mem-{n:04}") for n in range(1, count * 9 // 10 + 1)])
    figures["audit, nine of ten are missing"] = seconds(look)
    figures["audit, nine of ten are missing, MiB"] = peak(look)
    figures["repair of these"] = seconds(lambda: repair(runtime, _WORKSPACE))
    figures["projection of these"] = seconds(lambda: project(runtime, _WORKSPACE))
    figures["rebuild"] = seconds(lambda: rebuild(runtime, _WORKSPACE))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="memory-benchmark-") as home,
        Runtime(embedded_settings(Path(home)), create=True) as runtime,
    ):
        runtime.migrate()
        figures = measure(runtime, arguments.cards)
    table = Table(f"what, {arguments.cards:,} cards", "figure")
    for what, figure in figures.items():
        table.add_row(what, f"{figure:,}")
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
