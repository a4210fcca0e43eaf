"""A process that takes the token of a home when it is told to, and says which it is."""

from __future__ import annotations

import sys
from pathlib import Path

from memory_pipeline.settings import embedded_settings
from memory_pipeline.web.identity import LocalToken

if __name__ == "__main__":
    settings = embedded_settings(Path(sys.argv[1]))
    print("ready", flush=True)  # noqa: T201  # what the test reads
    sys.stdin.readline()
    print(LocalToken.of_home(settings).token)  # noqa: T201  # likewise
