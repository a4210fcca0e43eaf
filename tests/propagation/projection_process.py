"""Projects or rebuilds a workspace: started by tests as a process of its own, to be killed at a chosen moment or to run with others.

A moment is `before_upsert`, `after_upsert`, the number of a call of any function (the end, if it makes fewer), or
`never`. The process says when it is ready, waits for a line, and prints in the end how many texts it embedded and how
many points it wrote.
"""

from __future__ import annotations

import json
import sys

from memory_pipeline.propagation import project, rebuild
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.doubles import HashEmbedder, WatchedIndex, kill_this_process

WORK = {"project": project, "rebuild": rebuild}


def main(work: str, workspace: str, moment: str) -> None:
    with Runtime(load_settings()) as runtime:
        runtime.embedder = HashEmbedder()
        runtime.index = WatchedIndex(runtime.index)
        print("ready", flush=True)  # noqa: T201  # what the test reads
        sys.stdin.readline()
        if moment.isdigit():
            be_killed_at_call(int(moment))
        elif moment != "never":
            setattr(runtime.index, moment, kill_this_process)
        WORK[work](runtime, workspace)
        if moment.isdigit():
            kill_this_process()
        print(json.dumps([runtime.embedder.embedded, runtime.index.upserted]))  # noqa: T201  # what the test reads


def be_killed_at_call(number: int) -> None:
    left = number

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            kill_this_process()

    sys.setprofile(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
