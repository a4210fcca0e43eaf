"""Runs a module as `python -m` does, for no longer than the process that started it lives.

    python -m memory_pipeline.attached DESCRIPTOR MODULE [ARGUMENT …]

Whoever starts it is the only one to hold the writing end of the pipe whose reading end is DESCRIPTOR, and makes it the
leader of a process group. However the starter ends, `kill -9` included, the pipe then ends too, and with it the group.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

_STOP_SECONDS = 8.0


def main() -> None:
    """Run the module that the arguments name."""
    # A shell that starts something in the background has it ignore SIGINT. Dagster would do the same with SIGTERM.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    descriptor, module = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_end_with, args=(descriptor,), daemon=True).start()
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
