"""Workspaces are asked and written at once, by several processes with several threads each, and stay apart."""

from __future__ import annotations

import json

from tests.processes import finished, started
from tests.recall.interleaving_process import WORKSPACES
from tests.recall.memories import Memory

PROCESSES, TURNS = 2, 25  # a turn is a write and a recall, in each workspace: 200 in all


def test_writes_and_recalls_of_two_workspaces_by_turns_never_show_a_card_of_the_other(memory: Memory):
    memory.make("school")
    settings = memory.runtime.settings
    running = [
        started(settings, "tests.recall.interleaving_process", str(number), str(TURNS)) for number in range(PROCESSES)
    ]
    said = [json.loads(text) for text in finished(running)]
    for workspace in WORKSPACES:
        answers = [answer for of_process in said for answer in of_process[workspace]]
        assert len(answers) == PROCESSES * TURNS
        assert all(answers)
        assert {subject for answer in answers for subject in answer} == {workspace}
        assert len(memory.search("rule", workspace=workspace, limit=1000).hits) == PROCESSES * TURNS
