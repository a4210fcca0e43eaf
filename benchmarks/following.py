"""From commit to recallable while 20 edits a second come in: through the sensors, and through administrators' saves.

    python -m benchmarks.following [--cards 2400] [--seconds 120] [--rate 20] [--json FILE]

`memory-pipeline dev` runs over a home that is made for the run: Dagster with its daemon and sensors, the embedded
index, the default model. Each edit changes another card, so that each brings a new text to embed. First they are
submitted, and left to the sensors; then as many are saved, each by a call that also makes it recallable if it can be.
Both times count from the commit of the edit to the certification of its point, after which recall finds it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import TextClause, text

from benchmarks.common import (
    StubEmbedder,
    arguments_of,
    concepts,
    environment_of,
    fill,
    free_port,
    fresh_home,
    percentile,
    report,
    seconds,
)
from memory_pipeline.archive import queue
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

Figure = dict[str, Any]

_WORKSPACE = "large"
_PATIENCE = 1_200  # seconds until everything is recallable
_ADMINISTRATORS = 8  # who save at once, at most
_LAGS = text("""
    SELECT CAST(extract(epoch FROM p.certified_at - coalesce(e.submitted_at, p.wanted_at)) AS double precision) AS lag
    FROM projection p
    LEFT JOIN admin_edit e ON e.workspace = p.workspace AND e.card_id = p.item_id AND e.submitted_at > :since
    WHERE p.workspace = :workspace AND p.certified_at > :since
""")
_NOW = text("SELECT clock_timestamp() AS now")
_LEFT = text("""
    SELECT (SELECT count(*) FROM projection WHERE workspace = :workspace AND pending)
        + (SELECT count(*) FROM admin_edit WHERE workspace = :workspace AND state = 'waiting') AS left
""")


@contextmanager
def dev(home: Path) -> Iterator[None]:
    """Dagster at work over a home."""
    command = [sys.executable, "-m", "memory_pipeline.cli", "dev", "--no-web", "--port", str(free_port())]
    with (home / "dev.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment_of(home), stdout=log, stderr=log)  # noqa: S603  # our own command
        try:
            yield
            assert process.poll() is None, (home / "dev.log").read_text()  # noqa: S101  # else nobody propagated
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def submit(runtime: Runtime, edit: Change) -> None:
    """Leave an edit to the sensors."""
    with runtime.database.transaction(_WORKSPACE) as tx:
        queue.submit(tx, runtime.settings.acting_principal, [edit])


def save(runtime: Runtime, edit: Change) -> None:
    """Save an edit as a page does: it is recallable when the call ends, unless others were at it for too long."""
    Curation(runtime).save(_WORKSPACE, edit)


def follow(runtime: Runtime, commit: Callable[[Runtime, Change], None], edits: list[Change], rate: float) -> Figure:
    """Commit the edits at a rate, wait until all are recallable, and say what that took."""
    since = _one(runtime, _NOW)
    began, calls = time.monotonic(), []
    with ThreadPoolExecutor(_ADMINISTRATORS) as administrators:
        for number, edit in enumerate(edits):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            calls.append(administrators.submit(lambda edit=edit: seconds(lambda: commit(runtime, edit))))
    committed = time.monotonic() - began
    took = [call.result() for call in calls]
    while left := _one(runtime, _LEFT):
        assert time.monotonic() < began + _PATIENCE, f"{left} are left"  # noqa: S101  # a figure of some is none of all
        time.sleep(0.5)
    with runtime.database.transaction(_WORKSPACE) as tx:
        lags = [row["lag"] for row in tx.rows(_LAGS, since=since)]
    assert len(lags) == len(edits), (len(lags), len(edits))  # noqa: S101  # likewise
    return {
        "edits": len(edits),
        "edits a second": len(edits) / committed,
        "call": {"p50": percentile(took, 50), "p95": percentile(took, 95)},
        "recallable": {"p50": percentile(lags, 50), "p95": percentile(lags, 95), "last": max(lags)},
    }


def _one(runtime: Runtime, query: TextClause) -> Any:
    with runtime.database.transaction(_WORKSPACE) as tx:
        (value,) = tx.row(query).values()
    return value


def changes(first: int, count: int, version: int) -> list[Change]:
    return [
        Change(f"mem-{n:04d}", version, {"detail": f"versione {version + 1} del dettaglio {n}: flag_attivo = TRUE"})
        for n in range(first, first + count)
    ]


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=2_400)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rate", type=float, default=20)
    arguments = parser.parse_args()
    edits = round(arguments.seconds * arguments.rate)
    if edits > arguments.cards:
        parser.error(f"{edits:,} edits, each of another card, need as many cards: --cards {edits}")
    figures = {}
    with fresh_home() as home:
        with Runtime(embedded_settings(home), create=True) as runtime:
            runtime.migrate()
            runtime.embedder = StubEmbedder(runtime.identity.dimension)  # type: ignore[assignment]  # of what is there before
            fill(runtime, _WORKSPACE, concepts(arguments.cards))
            project(runtime, _WORKSPACE)
        with dev(home), Runtime(embedded_settings(home), warm=True) as runtime:
            for version, (way, commit) in enumerate({"sensors": submit, "save": save}.items(), start=1):
                figures[way] = follow(runtime, commit, changes(1, edits, version), arguments.rate)
    rows = [
        (way, f"{f['edits a second']:.1f}", *(f"{x:.2f}" for x in (*f["call"].values(), *f["recallable"].values())))
        for way, f in figures.items()
    ]
    columns = ("way", "edits a second", "call, p50 s", "p95", "recallable, p50 s", "p95", "last")
    report(columns, rows, figures, arguments.json)


if __name__ == "__main__":
    main()
