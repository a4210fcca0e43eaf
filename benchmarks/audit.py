"""Audits, repairs and rebuilds the index of a large workspace, and measures the memory that each takes.

    python -m benchmarks.audit [--cards 100000] [--json FILE]

Seconds on this machine, and how much more memory the process takes at the peak than when it began, files that the
engine maps among it; the home is made for the run and removed. A stub takes the model's place, whose vectors are kept
and computed once anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import StubEmbedder, arguments_of, concepts, fill, fresh_runtime, memory_over, report, seconds
from memory_pipeline.cards import Collection
from memory_pipeline.points import point_id, target
from memory_pipeline.propagation import audit, project, rebuild, repair
from memory_pipeline.runtime import Runtime

_WORKSPACE = "large"


def measure(runtime: Runtime, count: int) -> list[dict[str, Any]]:
    """What each step takes, in its order, and how many points differed."""
    runtime.embedder = StubEmbedder(runtime.identity.dimension)  # type: ignore[assignment]  # in place of the model
    fill(runtime, _WORKSPACE, concepts(count))
    project(runtime, _WORKSPACE)
    into = target(_WORKSPACE, Collection.MEMORY_CARDS, runtime.identity)
    lost = count * 9 // 10
    figures = [step("audit", lambda: sum(audit(runtime, _WORKSPACE).counts.values()), differing=0)]
    runtime.index.delete(into, [point_id(_WORKSPACE, f"mem-{n:04}") for n in range(1, lost + 1)])
    figures += [
        step(
            "audit, nine of ten points are lost",
            lambda: sum(audit(runtime, _WORKSPACE).counts.values()),
            differing=lost,
        ),
        step("repair of these", lambda: sum(repair(runtime, _WORKSPACE).counts.values()), differing=lost),
        step("projection of these", lambda: project(runtime, _WORKSPACE).pending, differing=0),
        step("rebuild", lambda: rebuild(runtime, _WORKSPACE).projection.pending, differing=0),
    ]
    return figures


def step(what: str, work: Callable[[], int], *, differing: int) -> dict[str, Any]:
    """Do it, and see that it found what it has to."""
    found: list[int] = []
    with memory_over() as memory:
        taken = seconds(lambda: found.append(work()))
    assert found == [differing], (what, found)  # noqa: S101  # a figure of something else would be none
    return {"what": what, "differing": differing, "seconds": taken, "mib": memory.mib, "private": memory.private}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=100_000)
    arguments = parser.parse_args()
    with fresh_runtime() as runtime:
        figures = measure(runtime, arguments.cards)
    rows = [
        (f["what"], f"{f['differing']:,}", f"{f['seconds']:.2f}", f"{f['mib']:.0f}", f"{f['private']:.0f}")
        for f in figures
    ]
    columns = [f"{arguments.cards:,} cards", "points that differ", "seconds", "MiB over the start", "of them private"]
    report(columns, rows, {"cards": arguments.cards, "steps": figures}, arguments.json)


if __name__ == "__main__":
    main()
