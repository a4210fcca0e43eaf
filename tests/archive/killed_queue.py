"""Applies waiting edits and is killed between the first edit and its commit: started by the queue's tests."""

from __future__ import annotations

import sys

from memory_pipeline.archive import editing, queue
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.doubles import kill_this_process


def main(workspace: str) -> None:
    apply = editing.apply

    def apply_and_die(*args, **kwargs):
        apply(*args, **kwargs)
        kill_this_process()

    editing.apply = apply_and_die
    with Runtime(load_settings()) as runtime:
        queue.apply_waiting(runtime.database, workspace, runtime.identity)


if __name__ == "__main__":
    main(*sys.argv[1:])
