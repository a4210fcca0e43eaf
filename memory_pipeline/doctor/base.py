"""What a check is, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Examined, Settings

PATIENCE = 10.0
"""Seconds that a check may take which asks a server."""
LONG = 100.0
"""Seconds for what may have to start a server, or to load a model."""
SOON = 5.0
"""Seconds for one connection, statement or request of a check."""
FAULT_EXIT_CODE = 24
"""What the command line ends with where something is a fault."""


class State(StrEnum):
    """What a check comes to, from good to bad."""

    NOT_APPLICABLE = "not applicable"
    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found: how it is, what it is, and what to do about it; "" where there is nothing to do."""

    state: State
    found: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was found, and by which check."""

    check: str
    state: State
    found: str
    do: str


@dataclass(frozen=True, slots=True)
class Installation:
    """What is looked at: the settings as far as they can be used, and the services that they name."""

    examined: Examined
    runtime: Runtime

    @property
    def settings(self) -> Settings:
        """The settings, with the default in place of each that was refused."""
        return self.examined.settings


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: what is looked at.
        look: looks, changes nothing, and says what it found. What it raises is a fault.
        do: what to do about that.
        needs: the settings (or how their names begin) without which there is nothing to look at.
        after: the checks that have to come to something good before.
        seconds: how long it may take.
    """

    name: str
    look: Callable[[Installation], Iterable[Finding]]
    do: str
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    seconds: float = PATIENCE


def ok(found: str) -> Finding:
    """As it should be."""
    return Finding(State.OK, found)


def warning(found: str, do: str) -> Finding:
    """It works, and somebody should look at it."""
    return Finding(State.WARNING, found, do)


def fault(found: str, do: str) -> Finding:
    """It does not work, or must not be so."""
    return Finding(State.FAULT, found, do)


def not_applicable(found: str) -> Finding:
    """There is nothing to look at."""
    return Finding(State.NOT_APPLICABLE, found)


def worst(results: Iterable[Result]) -> State:
    """The worst state among results."""
    return max((result.state for result in results), key=list(State).index, default=State.OK)
