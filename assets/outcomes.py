"""What a check found, in the one shape that both its run and a sensor without a run report."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dagster import AssetCheckEvaluation, AssetCheckKey, AssetCheckResult, AssetCheckSeverity

from assets.common import translated
from memory_pipeline.archive import workspaces
from memory_pipeline.resources import Memory

T = TypeVar("T")

LISTED = 50
"""How many cards or sessions a check names at most; its counts cover all of them."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a check over all workspaces.

    Attributes:
        passed: whether there is nothing to do for anybody.
        summary: what was found, in one line.
        metadata: the same in detail.
        severity: how bad it is when it did not pass.
    """

    passed: bool
    summary: str
    metadata: Mapping[str, Any]
    severity: AssetCheckSeverity = AssetCheckSeverity.ERROR

    def result(self) -> AssetCheckResult:
        """As a run's step reports it."""
        return AssetCheckResult(
            passed=self.passed, severity=self.severity, description=self.summary, metadata=self.metadata
        )

    def evaluation(self, key: AssetCheckKey) -> AssetCheckEvaluation:
        """As it is reported without a run."""
        return AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=key.name,
            passed=self.passed,
            severity=self.severity,
            description=self.summary,
            metadata=self.metadata,
        )


def workspace_names(memory: Memory) -> list[str]:
    """Every workspace of the archive, in alphabetical order."""
    with translated():
        return workspaces.names(memory.runtime.database)


def of_each_workspace(names: Iterable[str], look: Callable[[str], T]) -> tuple[dict[str, T], dict[str, str]]:
    """Look at some workspaces.

    Returns:
        what was found in each, and why it failed in those where it did: one that is broken hides no other.
    """
    found, broken = {}, {}
    for name in names:
        try:
            found[name] = look(name)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with one is the outcome of the check
            broken[name] = str(error) or type(error).__name__
    return found, broken


def with_broken(outcome: Outcome, broken: Mapping[str, str]) -> Outcome:
    """The outcome, failed if some workspaces could not be looked at."""
    if not broken:
        return outcome
    summary = f"{outcome.summary}; could not look at {', '.join(f'{n} ({why})' for n, why in broken.items())}"
    return Outcome(passed=False, summary=summary[:2000], metadata={**outcome.metadata, "not_looked_at": dict(broken)})
