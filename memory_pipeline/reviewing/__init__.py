"""The review of sessions: from clarified concepts to cards, and from cards to the next session."""

from memory_pipeline.candidates import Retraction, Rollback
from memory_pipeline.reviewing.outcome import FinalizeOutcome, Followed, Foresight, ReviewOutcome
from memory_pipeline.reviewing.preview import CandidatePreview, Preview
from memory_pipeline.reviewing.proposal import Proposal
from memory_pipeline.reviewing.service import Reviewing, SessionView, Waiting

__all__ = [
    "CandidatePreview",
    "FinalizeOutcome",
    "Followed",
    "Foresight",
    "Preview",
    "Proposal",
    "Retraction",
    "ReviewOutcome",
    "Reviewing",
    "Rollback",
    "SessionView",
    "Waiting",
]
