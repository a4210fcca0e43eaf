"""Whether an installation can do its work: small checks, each of which says what it found and what to do about it."""

from memory_pipeline.doctor.base import FAULT_EXIT_CODE, Result, State, worst
from memory_pipeline.doctor.running import examine

__all__ = ["FAULT_EXIT_CODE", "Result", "State", "examine", "worst"]
