"""Runs the whole pipeline over the sample sessions, in a home of its own, and asks three questions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_pipeline import console
from memory_pipeline.archive.status import WorkspaceStatus, status
from memory_pipeline.cards import Family
from memory_pipeline.errors import ArchiveUnavailable, MemoryPipelineError, UnknownWorkspace
from memory_pipeline.recall import Recall, RecallResult
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

if TYPE_CHECKING:
    from memory_pipeline.archive.sessions import Progress

HOME = Path(".memory-demo")
WORKSPACE = "psd"
SAMPLES = Path(__file__).parent / "sessions"
QUESTIONS = (
    (
        "A concept, asked in other words",
        "Da quando si iniziano a contare le aritmie dopo l'intervento?",
        Family.CONCEPT,
    ),
    ("A solved question", "Quante ablazioni transcatetere sono state eseguite nel 2023?", Family.SOLVED_QUESTION),
    ("Something that the archive does not know", "Quanti trapianti di cuore ci sono stati?", None),
)
_HITS = 3
_POLL = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What the demo made: the status by workspace, the checks' outcomes, and the recalls (title, question, result)."""

    home: Path
    status: dict[str, WorkspaceStatus]
    checks: list[dict[str, Any]]
    recalls: list[tuple[str, str, RecallResult]]
    succeeded: bool

    @property
    def notes(self) -> list[str]:
        """Where things are, and what to do next."""
        where = self.home.resolve()
        return [f"The demo's home is {where}", f"In Dagster and on its pages: MEMORY_HOME={self.home} make dev"]

    def as_json(self) -> dict[str, Any]:
        """The outcome as JSON-ready values."""
        return {
            "home": str(self.home.resolve()),
            "workspaces": {name: state.as_json() for name, state in self.status.items()},
            "checks": self.checks,
            "recalls": [{"title": t, "question": q, **result.as_json()} for t, q, result in self.recalls],
        }


def run_demo() -> DemoOutcome:
    """Copy the sample sessions, migrate, materialize every asset in Dagster, and recall.

    Raises:
        MemoryPipelineError: the materialization failed; its last lines were printed.
    """
    settings = embedded_settings(HOME)
    copy_samples(settings.sessions)
    with Runtime(settings, create=True) as runtime:
        runtime.migrate()
        materialized = _materialize(runtime)
        recall = Recall(runtime)
        recalls = [
            (title, q, recall.search(WORKSPACE, q, limit=_HITS, families=[family] if family else None))
            for title, q, family in QUESTIONS
        ]
        found = status(runtime.database, runtime.identity.hash)
    return DemoOutcome(HOME, found, materialized["checks"], recalls, materialized["succeeded"])


def copy_samples(root: Path) -> None:
    """Copy the sessions that are not there yet; one that was changed since, by appending to its ledger, stays."""
    for session in sorted((SAMPLES / WORKSPACE).iterdir()):
        copy = root / WORKSPACE / session.name
        if not copy.exists():
            aside = root / WORKSPACE / f".{session.name}"  # hidden: half a session is none
            shutil.rmtree(aside, ignore_errors=True)
            shutil.copytree(session, aside)
            aside.rename(copy)


def _materialize(runtime: Runtime) -> dict[str, Any]:
    from memory_pipeline.dagster_home import dagster_environment  # noqa: PLC0415  # needs the extra

    command = [sys.executable, "-m", "assets.materialize", "--workspace", WORKSPACE, "--json"]
    with console.progress("materializing the assets") as progress:
        process = subprocess.Popen(  # noqa: S603  # our own module
            command, env=dagster_environment(runtime), cwd=runtime.settings.home, stdout=subprocess.PIPE, text=True
        )
        stop = threading.Event()
        watcher = threading.Thread(target=_watch, args=(runtime, progress(WORKSPACE), stop), daemon=True)
        watcher.start()
        output, _ = process.communicate()
        stop.set()
        watcher.join()
    return _outcome(process.returncode, output)


def _outcome(code: int, output: str) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads(output)
    except ValueError:
        raise MemoryPipelineError(
            f"the materialization ended with exit code {code} and no outcome; see above"
        ) from None
    return outcome


def _watch(runtime: Runtime, tell: Progress, stop: threading.Event) -> None:
    """Tell how many points are projected while the other process works."""
    while not stop.wait(_POLL):
        try:
            state = status(runtime.database, runtime.identity.hash).get(WORKSPACE)
        except (UnknownWorkspace, ArchiveUnavailable):
            continue  # it is only a progress bar
        if state is not None:
            tell(state.certified, state.certified + state.pending)
