"""First ingest and projection of real sessions, then the same with nothing to do, and recall, in a fresh home.

    python -m benchmarks.first_ingest --sessions DIRECTORY [--json FILE]

Times are seconds on this machine; the home is made for the run and removed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from memory_pipeline import Recall
from memory_pipeline.archive.ingest import ingest, workspaces_to_ingest
from memory_pipeline.archive.status import status
from memory_pipeline.console import progress
from memory_pipeline.propagation import AuditReport, audit, project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

_QUESTIONS = 100


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(sessions: Path, home: Path) -> dict[str, float]:
    settings = embedded_settings(home).model_copy(update={"sessions_root": sessions})
    names = workspaces_to_ingest(sessions).workspaces
    figures: dict[str, float] = {}
    with Runtime(settings, create=True, warm=True) as runtime, progress("working") as bar:
        figures["make the home and migrate"] = timed(runtime.migrate)

        def ingest_all() -> None:
            for name in names:
                ingest(runtime.database, name, settings, runtime.identity, bar(name))

        def project_all() -> None:
            for name in names:
                project(runtime, name, progress=bar(name))

        figures["first ingest"] = timed(ingest_all)
        figures["ingest, nothing new"] = timed(ingest_all)
        figures["first projection, embedding included"] = timed(project_all)
        figures["projection, nothing to do"] = timed(project_all)
        audits: list[AuditReport] = []
        figures["audit"] = timed(lambda: audits.extend(audit(runtime, name) for name in names))
        figures["points that differ from the archive"] = sum(sum(a.counts.values()) for a in audits)
        found = status(runtime.database, runtime.identity.hash)
        figures["sessions"] = sum(s.sessions for s in found.values())
        figures["cards"] = sum(sum(s.cards.values()) for s in found.values())
        figures["points certified"] = sum(s.certified for s in found.values())
        figures["points pending"] = sum(s.pending for s in found.values())
        figures |= recall_figures(runtime, names[0])
    return figures


def recall_figures(runtime: Runtime, workspace: str) -> dict[str, float]:
    with runtime.database.transaction(workspace) as tx:
        questions = tx.connection.exec_driver_sql(
            "SELECT text FROM question ORDER BY question_id LIMIT %s", (_QUESTIONS,)
        )
        texts = [f"{text} please" for text in questions.scalars()]
    recall = Recall(runtime)
    recall.search(workspace, "warm up")
    times = [timed(lambda text=text: recall.search(workspace, text)) for text in texts]
    deciles = statistics.quantiles(times, n=20)
    return {"recall p50, warm, embedding included": deciles[9], "recall p95, warm, embedding included": deciles[18]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory-benchmark-") as home:
        figures = measure(arguments.sessions, Path(home))
    table = Table("what", "figure")
    for what, figure in figures.items():
        table.add_row(what, f"{figure:,.3f}" if isinstance(figure, float) else f"{figure:,}")
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
