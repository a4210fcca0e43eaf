"""Takes thousands of made-up session directories into the archive: first, again, and after a few of them changed.

    python -m benchmarks.ingest [--sessions 10000] [--workspaces 1] [--json FILE]

Seconds on this machine; how many statements went to PostgreSQL, and how many files of sessions were read; MiB by which
the process grew at its peak, PostgreSQL left out. The home is made for the run and removed. What the archive then holds
is compared with what was written.
"""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, event

from benchmarks.common import arguments_of, fresh_runtime, report, seconds
from benchmarks.made_sessions import Expected, append_clarification, write_session, write_sessions
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.archive.status import status
from memory_pipeline.runtime import Runtime

Figures = dict[str, dict[str, float]]


@contextmanager
def counted(root: Path) -> Iterator[Counter[str]]:
    """Counts statements, each execution of them, and the files below a directory that are opened."""
    found: Counter[str] = Counter()
    opened: set[str] = set()

    def execution(_connection, _cursor, _statement, parameters, _context, executemany) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001  # SQLAlchemy's
        found["statements"] += len(parameters) if executemany else 1

    def opening(name: str, arguments: tuple[object, ...]) -> None:
        if name == "open" and counting and str(arguments[0]).startswith(f"{root}/"):
            opened.add(str(arguments[0]))

    counting = True
    event.listen(Engine, "before_cursor_execute", execution)
    sys.addaudithook(opening)  # which stays for as long as the process
    try:
        yield found
    finally:
        counting = False
        found["files"] = len(opened)
        event.remove(Engine, "before_cursor_execute", execution)


def peak() -> float:
    """The most memory that the process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(runtime: Runtime, workspaces: dict[str, Expected]) -> Figures:
    """Ingests of all workspaces, of which one in a hundred sessions changes and then one is added."""
    root, figures = runtime.settings.sessions, Figures()

    def ingest_all() -> None:
        for name in workspaces:
            ingest(runtime.database, name, runtime.settings, runtime.identity)

    def step(what: str, change: Callable[[], object] = lambda: None) -> None:
        change()
        before = peak()
        with counted(root) as found:
            spent = seconds(ingest_all)
        verify(runtime, workspaces)
        figures[what] = {"seconds": round(spent, 3), "grown": round(peak() - before, 1), **found}

    step("first")
    step("unchanged")
    step("one in a hundred changed", lambda: change_some(root, workspaces))
    step("one added", lambda: add_one(root, workspaces))
    return figures


def change_some(root: Path, workspaces: dict[str, Expected]) -> None:
    """Append to every hundredth ledger."""
    for name, expected in workspaces.items():
        for directory in sorted((root / name).iterdir())[::100]:
            append_clarification(directory, expected)


def add_one(root: Path, workspaces: dict[str, Expected]) -> None:
    """Write one session more, in the first workspace."""
    name, expected = next(iter(workspaces.items()))
    write_session(root, name, expected.sessions, expected)


def verify(runtime: Runtime, workspaces: dict[str, Expected]) -> None:
    """Hold that the archive has what was written; figures of something else would be none."""
    for name, found in status(runtime.database, runtime.identity.hash).items():
        expected = workspaces[name]
        held = (found.sessions, found.cards["concept"], found.cards["solved_question"], found.sources, found.faults)
        wanted = (expected.sessions, len(expected.texts), expected.solved_questions, expected.sources, 0)
        assert held == wanted, (name, held, wanted)  # noqa: S101  # stops the benchmark


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--workspaces", type=int, default=1)
    arguments = parser.parse_args()
    with fresh_runtime() as runtime:
        names = [f"w{n:02d}" for n in range(arguments.workspaces)]
        each = arguments.sessions // len(names)
        expected = {name: write_sessions(runtime.settings.sessions, name, each) for name in names}
        figures = measure(runtime, expected)
    rows = [
        (what, f"{f['seconds']:.3f}", f"{f['statements']:,}", f"{f['files']:,}", f"{f['grown']:,}")
        for what, f in figures.items()
    ]
    figures["first"]["sessions a second"] = round(each * len(names) / figures["first"]["seconds"])
    columns = (f"{each * len(names):,} sessions", "seconds", "statements", "files read", "MiB grown")
    report(columns, rows, {"sessions": each * len(names), "workspaces": len(names), "figures": figures}, arguments.json)


if __name__ == "__main__":
    main()
