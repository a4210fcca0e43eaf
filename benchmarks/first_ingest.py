"""First ingest and projection of real sessions, then the same with nothing to do, and recall, in a fresh home.

    python -m benchmarks.first_ingest --sessions DIRECTORY [--json FILE]

Times are seconds on this machine; the home is made for the run and removed.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.common import arguments_of, fresh_home, percentile, report, seconds
from memory_pipeline import Recall
from memory_pipeline.archive.ingest import ingest, workspaces_to_ingest
from memory_pipeline.archive.status import status
from memory_pipeline.console import progress
from memory_pipeline.propagation import AuditReport, audit, project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

_QUESTIONS = 100


def measure(sessions: Path, home: Path) -> dict[str, float]:
    settings = embedded_settings(home).model_copy(update={"sessions_root": sessions})
    names = workspaces_to_ingest(sessions).workspaces
    figures: dict[str, float] = {}
    with Runtime(settings, create=True, warm=True) as runtime, progress("working") as bar:
        figures["make the home and migrate"] = seconds(runtime.migrate)

        def ingest_all() -> None:
            for name in names:
                ingest(runtime.database, name, settings, runtime.identity, bar(name))

        def project_all() -> None:
            for name in names:
                project(runtime, name, progress=bar(name))

        figures["first ingest"] = seconds(ingest_all)
        figures["ingest, nothing new"] = seconds(ingest_all)
        figures["first projection, embedding included"] = seconds(project_all)
        figures["projection, nothing to do"] = seconds(project_all)
        audits: list[AuditReport] = []
        figures["audit"] = seconds(lambda: audits.extend(audit(runtime, name) for name in names))
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
    times = [seconds(lambda text=text: recall.search(workspace, text)) for text in texts]
    return {f"recall p{percent}, warm, embedding included": percentile(times, percent) for percent in (50, 95)}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    arguments = parser.parse_args()
    with fresh_home() as home:
        figures = measure(arguments.sessions, home)
    rows = [(what, f"{f:,.3f}" if isinstance(f, float) else f"{f:,}") for what, f in figures.items()]
    report(["what", "figure"], rows, figures, arguments.json)


if __name__ == "__main__":
    main()
