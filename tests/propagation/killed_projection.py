"""Projects a workspace and is killed at a chosen moment: started by the crash tests as a process of its own."""

from __future__ import annotations

import sys

from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.doubles import HashEmbedder, WatchedIndex, kill_this_process


def main(workspace: str, moment: str) -> None:
    with Runtime(load_settings()) as runtime:
        runtime.embedder = HashEmbedder()
        watched = WatchedIndex(runtime.index)
        setattr(watched, moment, kill_this_process)
        runtime.index = watched
        project(runtime, workspace)


if __name__ == "__main__":
    main(*sys.argv[1:])
