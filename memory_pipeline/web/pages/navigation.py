"""Which pages a workspace has, and who sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive.grants import Role
from memory_pipeline.web.rendering import address

if TYPE_CHECKING:
    from fastapi import Request


@dataclass(frozen=True, slots=True)
class Entry:
    """One page in the navigation; `current` when it, or something below it, is what is shown."""

    title: str
    address: str
    current: bool


# The page's function, its title, and the role that it takes.
_PAGES = (
    ("overview", "Overview", Role.ADMINISTRATOR),
    ("cards", "Cards", Role.ADMINISTRATOR),
    ("duplicates", "Near-duplicates", Role.ADMINISTRATOR),
    ("pending", "Pending", Role.ADMINISTRATOR),
    ("sessions", "Reviews", Role.REVIEWER),
    ("recall", "Try recall", Role.READER),
)


def navigation(request: Request, workspace: str, role: Role) -> Iterator[Entry]:
    """The pages of a workspace that a role may see."""
    here = request.url.path
    for name, title, needed in _PAGES:
        if role.includes(needed):
            there = address(request, name, workspace=workspace)
            yield Entry(title, there, here == there or here.startswith(f"{there}/"))


def home(request: Request, workspace: str, role: Role) -> str:
    """Where somebody of a role begins in a workspace."""
    return next(navigation(request, workspace, role)).address
