"""Looks at workspaces one after the other, in a time that no tick outlasts, whatever holds the archive up."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from dagster import SensorEvaluationContext

from assets.common import translated
from assets.outcomes import of_each_workspace
from memory_pipeline.archive import workspaces
from memory_pipeline.archive.database import Database
from memory_pipeline.resources import Memory
from memory_pipeline.scheduling import explain, in_turn

T = TypeVar("T")

STATEMENT_SECONDS = 5.0
"""How long one statement of a look may take: behind a lock, as a migration takes it, the tick would never end."""


def known_workspaces(memory: Memory) -> list[str]:
    """Every workspace of the archive, in alphabetical order."""
    with translated():
        return workspaces.names(_impatient(memory))


def look_at_each(
    memory: Memory, names: Sequence[str], look: Callable[[Database, str], T]
) -> tuple[dict[str, T], dict[str, str]]:
    """Look at workspaces, beginning with another one each time, for as long as a tick has time.

    Args:
        memory: the services.
        names: which workspaces.
        look: what to find out of one, in an archive that lets no statement take long.

    Returns:
        what was found in each, and why there is nothing of the others.
    """
    database = _impatient(memory)
    found, broken = of_each_workspace(in_turn(names), lambda name: look(database, name))
    return found, broken | {n: "no time was left for it" for n in names if n not in found and n not in broken}


def why_none(
    context: SensorEvaluationContext, requested: Collection[str], skipped: Mapping[str, str], *, idle: str
) -> str | None:
    """Why no run is asked for; where some are, the tick's log says why the others are not."""
    if not requested:
        return explain(skipped, idle=idle)
    if skipped:
        context.log.info(explain(skipped, idle=idle))
    return None


def _impatient(memory: Memory) -> Database:
    return memory.runtime.database.within(STATEMENT_SECONDS)
