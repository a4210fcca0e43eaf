"""Projections in batches of one size, whatever time they take."""

from __future__ import annotations

import pytest

from memory_pipeline.propagation import pace


def batches_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let every batch of a projection have this size."""
    monkeypatch.setattr(pace, "FIRST", size)
    monkeypatch.setattr(pace, "LARGEST", size)
