"""Checks of what an installation is made of: settings, variables that nothing reads, packages."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version

from memory_pipeline.doctor.base import Finding, Installation, fault, ok, warning
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.extras import NEEDED, require
from memory_pipeline.settings import unknown_variables

_MEND = "mend it where it is set: .env.example names every setting with an example"


def settings(installation: Installation) -> Iterator[Finding]:
    """Every fault of the settings."""
    yield from (fault(each, _MEND) for each in installation.examined.faults)
    if not installation.examined.faults:
        given = installation.settings.model_fields_set
        yield ok(f"{len(given)} set, all of them valid" if given else "none set: everything runs from the home")


def variables(installation: Installation) -> Iterator[Finding]:
    """Names that look like settings, and that nothing reads."""
    unknown = unknown_variables(installation.settings)
    for each in unknown:
        meant = f"is {each.meant} meant?" if each.meant else "take it away, or see .env.example"
        yield warning(f"{each.name} is no setting, and has no effect", meant)
    if not unknown:
        yield ok("each that begins with MEMORY_ is a setting")


def installation(_: Installation) -> Iterator[Finding]:
    """Versions, and which extras are there."""
    extras = [name for name in NEEDED if _installed(name)]
    yield ok(
        f"memory-pipeline {version('memory-pipeline')}, Python {platform.python_version()}; "
        f"extras: {', '.join(extras) or 'none'}"
    )


def _installed(extra: str) -> bool:
    try:
        require(extra)
    except InvalidSettings:
        return False
    return True
