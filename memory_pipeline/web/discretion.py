"""Says of errors what and where they are, and not what they say: that may be a card, a question or a token."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator


def without_messages(error: BaseException) -> str:
    """An error, and what it came from, by type and place in the code: what it says may be anybody's content."""
    return "\n".join(part for each in _chain(error) for part in (_kind(each), *_frames(each)))


class Discreet(logging.Formatter):
    """Formats log records without what errors say."""

    def formatException(self, ei: object) -> str:  # noqa: N802  # as the library calls it
        """The error of a record, without messages."""
        error = ei[1] if isinstance(ei, tuple) else None
        return without_messages(error) if isinstance(error, BaseException) else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and behind it what it was raised from."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)


def _kind(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _frames(error: BaseException) -> Iterator[str]:
    for frame in traceback.extract_tb(error.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
