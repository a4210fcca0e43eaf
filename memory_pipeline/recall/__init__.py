"""Recall: from a question to the current cards that answer it."""

from memory_pipeline.recall.request import Scope
from memory_pipeline.recall.result import FollowedLink, LeftOut, Omission, RecallHit, RecallResult
from memory_pipeline.recall.search import Recall
from memory_pipeline.recall.verify import Drop

__all__ = ["Drop", "FollowedLink", "LeftOut", "Omission", "Recall", "RecallHit", "RecallResult", "Scope"]
