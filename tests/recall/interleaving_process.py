"""Writes and recalls in two workspaces by turns: started by the test of isolation, several at a time.

It says that it is ready, waits for a line, and then has a thread for each workspace write a card, project it and ask for
it, over one `Recall`. It prints, by workspace, the answers as lists of what the hits are about.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from memory_pipeline import Recall
from memory_pipeline.archive import cards
from memory_pipeline.propagation import project
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.doubles import HashEmbedder
from tests.recall.memories import a_concept

WORKSPACES = ("clinic", "school")


def main(number: str, turns: str) -> None:
    with Runtime(load_settings(), warm=number == "0") as runtime, ThreadPoolExecutor(len(WORKSPACES)) as pool:
        runtime.embedder = HashEmbedder()
        print("ready", flush=True)  # noqa: T201  # what the test reads
        sys.stdin.readline()
        answers = pool.map(partial(interleave, runtime, Recall(runtime), number, int(turns)), WORKSPACES)
        print(json.dumps(dict(zip(WORKSPACES, answers, strict=True))))  # noqa: T201  # what the test reads


def interleave(runtime: Runtime, recall: Recall, number: str, turns: int, workspace: str) -> list[list[str]]:
    """The subjects of each answer. The cards of both workspaces say the same, but for the workspace's name."""
    answers = []
    for turn in range(turns):
        text = f"rule {turn} of process {number}"
        with runtime.database.transaction(workspace, writing=True) as tx:
            cards.create(tx, [a_concept(workspace, text)], origin="hand", principal="tester")
        project(runtime, workspace)
        answers.append([hit.subject for hit in recall.search(workspace, text, limit=20).hits])
    return answers


if __name__ == "__main__":
    main(*sys.argv[1:])
