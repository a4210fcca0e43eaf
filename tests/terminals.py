"""A program under a pseudo-terminal, and what is on its screen."""

from __future__ import annotations

import os
import sys
import termios
import time
from pathlib import Path

import pexpect
import pyte
import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PATIENCE = 20  # seconds
# What pexpect forks becomes another program at once.
in_a_terminal = pytest.mark.filterwarnings("ignore:.*is multi-threaded:DeprecationWarning")


class Terminal:
    """Python under a pseudo-terminal of 80 by 24, whose screen is read as somebody would see it."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        env = {**inherited, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm-256color", **environment}
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self.program = pexpect.spawn(sys.executable, list(arguments), env=env, cwd=CHECKOUT, dimensions=(24, 80))
        self.settings = termios.tcgetattr(self.program.child_fd)
        self.output = b""

    def until(self, text: str) -> str:
        """Wait until a text is on the screen; what is on it."""
        end = time.monotonic() + PATIENCE
        while text not in "\n".join(self.screen.display):
            assert time.monotonic() < end, self.screen.display
            assert self._read() or text in "\n".join(self.screen.display), self.screen.display
        return "\n".join(self.screen.display)

    def resize(self, width: int, height: int) -> None:
        self.screen.resize(height, width)
        self.program.setwinsize(height, width)

    def wait(self) -> int:
        """Read on until the program has ended; its exit code."""
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, self.screen.display
        return self.program.wait()

    def _read(self) -> bool:
        try:
            read = self.program.read_nonblocking(65536, timeout=0.1)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.output += read
        self._stream.feed(read)
        return True
