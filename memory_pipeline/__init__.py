"""The memory of a text-to-SQL assistant: session ledgers become verified, recallable cards.

What is asked of it at run time is `Recall.from_settings().search("psd", "quante ablazioni nel 2023?", limit=5)`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_pipeline.recall import Recall, RecallHit, RecallResult, Scope

__all__ = ["Recall", "RecallHit", "RecallResult", "Scope"]


def __getattr__(name: str) -> object:
    # Imported when asked for, so that whoever needs only an error or a path does not pay for the archive and the index.
    if name in __all__:
        from memory_pipeline import recall  # noqa: PLC0415  # `import memory_pipeline` stays cheap

        return getattr(recall, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
