"""Waits for work that nobody can end, and no longer than it may take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Value = TypeVar("_Value")


def bounded(work: Callable[[], _Value], seconds: float, *, name: str) -> _Value:
    """What the work comes to, unless it takes longer: then its thread, of that name, is left to itself.

    Raises:
        TimeoutError: it takes longer.
    """
    future: Future[_Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  # handed to whoever waits
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future.result(seconds)
