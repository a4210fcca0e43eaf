"""Projects a large workspace into the embedded index, then with nothing to do, one per cent changed, and one deleted.

    python -m benchmarks.projection [--cards 100000] [--json FILE]

Seconds on this machine, and how much more memory the process takes at the peak than when it began. The home is made for
the run and removed. A stub takes the model's place: what is measured is everything but embedding.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from benchmarks.common import (
    StubEmbedder,
    arguments_of,
    concepts,
    fill,
    fresh_runtime,
    memory_over,
    report,
    seconds,
    without_model,
)
from memory_pipeline.archive import cards
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.index import index_directory
from memory_pipeline.propagation import ProjectionReport, project
from memory_pipeline.runtime import Runtime

_WORKSPACE = "large"
_WHOLE = text("SELECT pg_database_size(current_database()) AS bytes")


def measure(runtime: Runtime, count: int) -> list[dict[str, Any]]:
    """What projections of so many cards take, each after what it is called by."""
    runtime.embedder = StubEmbedder(runtime.identity.dimension)  # type: ignore[assignment]  # in place of the model
    fill(runtime, _WORKSPACE, concepts(count))
    changed = count // 100
    figures = [projection(runtime, "all new", count)]
    figures.append(projection(runtime, "nothing to do", 0))
    change(runtime, changed)
    figures.append(projection(runtime, "one per cent changed", changed))
    with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
        cards.delete(tx, [f"mem-{count:04d}"])
    figures.append(projection(runtime, "one deleted", 1))
    return figures


def change(runtime: Runtime, count: int) -> None:
    """Give the first cards another detail."""
    contents = {
        f"mem-{n:04d}": CardContent(Family.CONCEPT, f"subject {n}", f"changed {n}") for n in range(1, count + 1)
    }
    with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
        cards.update(tx, contents, principal="benchmark")


def projection(runtime: Runtime, what: str, points: int) -> dict[str, Any]:
    """Project, and see that it did what it is measured for."""
    done: list[ProjectionReport] = []
    with memory_over() as memory:
        taken = seconds(lambda: done.append(project(runtime, _WORKSPACE)))
    found = done[0]
    assert (found.written + found.removed, found.pending) == (points, 0), found  # noqa: S101  # a figure of something else is none
    return {"what": what, "points": points, "seconds": taken, "mib": memory.mib, "private": memory.private}


def sizes(runtime: Runtime) -> dict[str, float]:
    """MiB on disk: the archive's largest tables with their indexes, the whole archive, and the index."""
    query = text("""
        SELECT relname AS what, pg_total_relation_size(oid) AS bytes
        FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY bytes DESC LIMIT 4
    """)
    with runtime.database.transaction(_WORKSPACE) as tx:
        found = {f"table {row['what']}": row["bytes"] / 2**20 for row in tx.rows(query)}
        found["archive"] = tx.row(_WHOLE)["bytes"] / 2**20
    files = index_directory(runtime.settings).rglob("*")
    return {**found, "index": sum(file.stat().st_blocks * 512 for file in files if file.is_file()) / 2**20}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=100_000)
    arguments = parser.parse_args()
    with fresh_runtime() as runtime:
        with without_model():
            figures = measure(runtime, arguments.cards)
        on_disk = sizes(runtime)
    rows = [
        (
            f["what"],
            f"{f['points']:,}",
            f"{f['seconds']:.3f}",
            f"{f['points'] / f['seconds']:,.0f}",
            f"{f['mib']:.0f}",
            f"{f['private']:.0f}",
        )
        for f in figures
    ]
    columns = [
        f"{arguments.cards:,} cards",
        "points",
        "seconds",
        "points a second",
        "MiB over the start",
        "of them private",
    ]
    everything = {"cards": arguments.cards, "projections": figures, "sizes": on_disk}
    report(columns, rows, everything, arguments.json)
    report(["on disk", "MiB"], [(what, f"{mib:,.0f}") for what, mib in on_disk.items()], everything, None)


if __name__ == "__main__":
    main()
