"""Vectors are kept once, by however many processes at the same time."""

from __future__ import annotations

import threading

from memory_pipeline.archive import embeddings
from memory_pipeline.archive.embeddings import Kept
from memory_pipeline.embedding.base import Role
from tests.builders import WORKSPACE, clarified, promoted

A, Z = (Role.PASSAGE, "a"), (Role.PASSAGE, "z")
VECTOR = Kept(b"\0\0\0\0", truncated=False)


def test_two_that_keep_the_same_texts_wait_for_each_other_in_one_order(archive):
    archive.given(clarified(1), promoted(2, 1), sql=None)

    def keep(keys):
        with archive.database.transaction(WORKSPACE) as tx:
            embeddings.keep(tx, archive.identity, dict.fromkeys(keys, VECTOR))

    with archive.database.transaction(WORKSPACE) as tx:
        embeddings.keep(tx, archive.identity, {A: VECTOR})
        other = threading.Thread(target=keep, args=([Z, A],))
        other.start()
        other.join(0.3)
        embeddings.keep(tx, archive.identity, {Z: VECTOR})  # which deadlocks if the other wrote it before it waited
    other.join()
    with archive.database.transaction(WORKSPACE) as tx:
        assert embeddings.find(tx, archive.identity, [A, Z]) == {A: VECTOR, Z: VECTOR}
