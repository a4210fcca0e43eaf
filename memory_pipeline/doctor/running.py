"""Runs every check, one after the other, each in bounded time, and takes secrets out of what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from memory_pipeline.bounded import bounded
from memory_pipeline.doctor.base import LONG, SOON, Check, Finding, Installation, Result, State, fault, not_applicable
from memory_pipeline.doctor.masking import Masker
from memory_pipeline.doctor.registry import checks
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Examined

_NAMED = 3  # settings of one kind that are named one by one
_THREAD = "doctor"


def examine(examined: Examined, *, patience: float | None = None) -> list[Result]:
    """Run every check; one that fails hides no other.

    Args:
        examined: the settings, as far as they can be used.
        patience: seconds for each check, where they are to be fewer than it would have.

    Returns:
        what was found, in the order of the checks; of each at least one thing.
    """
    runtime = Runtime(examined.settings, patience=SOON)
    installation = Installation(examined, runtime)
    masked = Masker.of(examined.settings)
    results: list[Result] = []
    try:
        for check in checks(examined.settings):
            found = _outcome(check, installation, results, patience)
            results += [Result(check.name, each.state, masked(each.found), masked(each.do)) for each in found]
    finally:
        _close(runtime)
    return results


def _outcome(
    check: Check, installation: Installation, results: Sequence[Result], patience: float | None
) -> list[Finding]:
    if missing := _refused(check, installation.examined.refused):
        return [not_applicable(f"it needs {', '.join(missing)}, which cannot be used")]
    if before := [name for name in check.after if not _good(name, results)]:
        return [not_applicable(f"it needs {' and '.join(before)}")]
    seconds = check.seconds if patience is None else min(patience, check.seconds)
    try:
        return bounded(lambda: list(check.look(installation)), seconds, name=_THREAD)
    except TimeoutError:
        return [fault(f"no answer within {seconds:g} s", check.do)]
    except MemoryPipelineError as error:
        return [fault(str(error), check.do)]
    except Exception as error:  # noqa: BLE001  # a check that fails hides no other, and unknown words may hold a secret
        return [fault(f"it failed ({type(error).__name__})", check.do)]


def _refused(check: Check, refused: Iterable[str]) -> list[str]:
    """What a check needs and cannot use, in short where many settings of one kind cannot be used together."""
    names = [name for name in sorted(refused) if check.needs and name.startswith(check.needs)]
    kinds = Counter(name.partition("_")[0] for name in names)
    short = (f"{kind}_…" if kinds[kind := name.partition("_")[0]] > _NAMED else name for name in names)
    return [f"MEMORY_{name.upper()}" for name in dict.fromkeys(short)]


def _good(name: str, results: Sequence[Result]) -> bool:
    states = {result.state for result in results if result.check == name}
    return not states & {State.FAULT, State.NOT_APPLICABLE}


def _close(runtime: Runtime) -> None:
    """Close what was opened, unless a check that was given up is still opening it."""
    try:
        bounded(runtime.close, LONG, name=_THREAD)
    except TimeoutError:
        return
