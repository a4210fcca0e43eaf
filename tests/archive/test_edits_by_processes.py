"""Many processes edit the same cards at once: a version counts every edit that succeeded, and the rest are conflicts."""

from __future__ import annotations

import json
from collections import Counter

from memory_pipeline.settings import Settings
from tests.editors import Editor
from tests.processes import finished, started

PROCESSES, CARDS = 4, 10


def edit_in_processes(settings: Settings, mode: str) -> list[dict]:
    """What each process says that it did, all of them let go at once."""
    running = [started(settings, "tests.archive.editing_process", str(number), mode) for number in range(PROCESSES)]
    said = finished(running)
    assert [process.returncode for process in running] == [0] * PROCESSES
    return [json.loads(text) for text in said]


def test_versions_count_exactly_the_edits_that_succeeded(runtime, settings):
    editor = Editor(runtime)
    for number in range(CARDS):
        editor.create(subject=f"card {number}")
    for mode in ("stale", "fresh"):
        before = {card_id: editor.version(card_id) for card_id in editor.card_ids()}
        outcomes = edit_in_processes(settings, mode)
        saved = sum((Counter(outcome["saved"]) for outcome in outcomes), Counter())
        conflicts = sum(outcome["conflicts"] for outcome in outcomes)
        assert saved.total() + conflicts == PROCESSES * CARDS
        assert {card_id: editor.version(card_id) - version for card_id, version in before.items()} == saved
        if mode == "stale":
            assert set(saved.values()) == {1}  # of the edits of one version exactly one wins
        for card in map(editor.card, before):
            assert card["detail"] == f"by {card['updated_by']} on {card['version'] - 1}"  # the last one stays
