from __future__ import annotations

import pytest

from memory_pipeline.runtime import Runtime
from tests.recall.memories import Memory


@pytest.fixture
def memory(runtime: Runtime) -> Memory:
    """A workspace without cards, on a real archive and an embedded index."""
    held = Memory(runtime)
    held.make()
    return held
