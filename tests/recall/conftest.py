from __future__ import annotations

import pytest

from memory_pipeline.embedding import open_embedder
from memory_pipeline.runtime import Runtime
from tests.recall.memories import AlikeEmbedder, Memory


@pytest.fixture
def memory(runtime: Runtime) -> Memory:
    """A workspace without cards, on a real archive and an embedded index."""
    held = Memory(runtime)
    held.make()
    return held


@pytest.fixture
def understanding(memory: Memory) -> Memory:
    """With the model that ships with the project instead of a hash."""
    memory.embed_with(open_embedder(memory.runtime.settings))
    return memory


@pytest.fixture
def indifferent(memory: Memory) -> Memory:
    """To whose model all texts mean the same, so that nothing but words and confirmations tells cards apart."""
    memory.embed_with(AlikeEmbedder(memory.runtime.identity.dimension))
    return memory
