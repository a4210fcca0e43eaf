"""Reviews sessions, or appends to one, in a process of its own: started by the tests of many writers.

It says that it is ready, and then does what each line that it reads asks for, and prints what came of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from memory_pipeline.ledger import LEDGER_FILE, DecisionType, Entry, open_for_appending
from memory_pipeline.reviewing import Reviewing
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.builders import WORKSPACE, a_ledger, clarified
from tests.curating import a_runtime
from tests.doubles import kill_this_process
from tests.propagation.projection_process import be_killed_at_call


def main(work: str, root: str) -> None:
    with a_runtime(load_settings(sessions_root=Path(root), principal="tester")) as runtime:
        print("ready", flush=True)  # noqa: T201  # what the test reads
        for line in sys.stdin:
            print(json.dumps(WORK[work](runtime, **json.loads(line))), flush=True)  # noqa: T201  # what the test reads


def review(runtime: Runtime, session: str, batches: list[dict[str, list[int]]]) -> list[tuple[str, str]]:
    """Decides batch by batch, as far as nobody else has; type and detail of what was recorded."""
    outcomes = [Reviewing(runtime).record(WORKSPACE, session, partial=True, **batch) for batch in batches]
    return [(decision.type, decision.detail) for outcome in outcomes for decision in outcome.recorded]


def review_and_be_killed(runtime: Runtime, moment: str | float, **order: object) -> bool:
    """Reviews in a child that is killed at a moment; whether that came before its end.

    A runtime opens nothing before it is asked, so each child has connections and files of its own.
    """
    if child := os.fork():
        return os.waitpid(child, 0)[1] != 0
    be_killed_at(moment)
    review(runtime, **order)
    sys.setprofile(None)
    os._exit(0)


def be_killed_at(moment: str | float) -> None:
    """A moment is the number of a call of any function, a place at the one write, or seconds after it."""
    write, sync = os.write, os.fsync

    def writing(descriptor: int, data: bytes) -> int:
        if moment == "before the write":
            kill_this_process()
        written = write(descriptor, data[: len(data) // 2] if moment == "within the write" else data)
        if moment in {"within the write", "after the write"}:
            kill_this_process()
        return written

    def syncing(descriptor: int) -> None:
        os.fsync = sync
        sync(descriptor)
        if moment == "after the sync":
            kill_this_process()
        signal.setitimer(signal.ITIMER_REAL, moment)  # whose signal, unhandled, is as sudden as the other

    if isinstance(moment, int):
        be_killed_at_call(moment)
    else:
        os.write, os.fsync = writing, syncing


def append(runtime: Runtime, session: str, times: int) -> int:
    """Appends long lines in turn as some other program does, several in one write, and as a reviewer does.

    Returns:
        how many lines that makes.
    """
    directory = runtime.settings.sessions / WORKSPACE / session
    seq = 0
    for number in range(times):
        texts = [f"{number} {'à' * 512 * 2 ** (7 - number % 8)}" for _ in range(4)]  # of 128 KiB at first
        if number % 2:
            with open_for_appending(directory, WORKSPACE) as writer:
                writer.append([Entry(DecisionType.CONCEPT_CLARIFIED, "x", text) for text in texts], after=seq)
        else:
            lines = a_ledger(*(clarified(seq + place, "x", text) for place, text in enumerate(texts, 1)))
            descriptor = os.open(directory / LEDGER_FILE, os.O_WRONLY | os.O_APPEND)
            os.write(descriptor, lines)
            os.close(descriptor)
        seq += len(texts)
    return seq


WORK = {"review": review, "review_and_be_killed": review_and_be_killed, "append": append}

if __name__ == "__main__":
    main(*sys.argv[1:])
