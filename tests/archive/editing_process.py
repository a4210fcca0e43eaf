"""Edits every card once in an order of its own: started by the test of many processes, several at a time.

It reads the cards' versions, says so, waits for a line, and then edits each card on the version it read first (`stale`)
or reads just before (`fresh`). It prints how many of its edits each card took, and how many were conflicts.
"""

from __future__ import annotations

import json
import random
import sys

from memory_pipeline.edits import Change
from memory_pipeline.errors import VersionConflict
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings
from tests.editors import Editor


def main(number: str, mode: str) -> None:
    with Runtime(load_settings()) as runtime:
        editor = Editor(runtime)
        order = editor.card_ids()
        random.Random(number).shuffle(order)  # noqa: S311  # to be repeatable
        versions = {card_id: editor.version(card_id) for card_id in order}
        print("ready", flush=True)  # noqa: T201  # what the test reads
        sys.stdin.readline()
        print(json.dumps(edit_all(editor, number, versions, fresh=mode == "fresh")), flush=True)  # noqa: T201  # what the test reads


def edit_all(editor: Editor, number: str, versions: dict[str, int], *, fresh: bool) -> dict[str, object]:
    saved, conflicts = dict.fromkeys(versions, 0), 0
    for card_id, version in versions.items():
        based_on = editor.version(card_id) if fresh else version
        try:
            editor.apply(Change(card_id, based_on, {"detail": f"by {number} on {based_on}"}), principal=number)
            saved[card_id] += 1
        except VersionConflict:
            conflicts += 1
    return {"saved": saved, "conflicts": conflicts}


if __name__ == "__main__":
    main(*sys.argv[1:])
