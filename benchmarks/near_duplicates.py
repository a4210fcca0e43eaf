"""Proposes pairs of real cards for merging, and compares them with what was labelled by hand; then times 10,000 cards.

    python -m benchmarks.near_duplicates --data DIRECTORY [--json FILE] [--unlabelled]

DIRECTORY holds `bird/sessions/`, which is ingested into a home that is made for the run and removed. The labels beside
this file name cards by a decision behind them, as [session, seq]; those of the workspace `clinica` are made up, and
hold their texts. The thresholds were chosen on the workspaces in `CHOSEN_ON` alone.
"""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from sqlalchemy import text

from benchmarks.common import arguments_of, fresh_home, report
from memory_pipeline.archive import cards, workspaces
from memory_pipeline.archive.database import Database
from memory_pipeline.archive.duplicates import Proposal, Proposals, proposed
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

CHOSEN_ON = ("toxicology", "card_games", "financial")
OTHERS = ("california_schools", "formula_1", "student_club")
MADE_UP = "clinica"
LARGE = "large"

_LABELS = Path(__file__).with_suffix(".jsonl")
_ALL = 100_000
_CARDS = 10_000
_SYLLABLES = ("ba", "cen", "dil", "fo", "gur", "la", "mev", "nip", "po", "rus", "sa", "ter", "vi", "zo")
_CARD_OF = text("SELECT card_id FROM card_source WHERE workspace = :workspace AND session_id = :session AND seq = :seq")


@dataclass(frozen=True, slots=True)
class Label:
    """Whether two cards, whose ids are in order, say the same to a reader."""

    workspace: str
    pair: frozenset[str]
    duplicate: bool


@dataclass
class Score:
    """How proposals of one kind compare with the labels."""

    right: int = 0
    wrong: int = 0
    unlabelled: int = 0

    @property
    def precision(self) -> float | None:
        """Which part of the labelled proposals is right; None without any."""
        labelled = self.right + self.wrong
        return self.right / labelled if labelled else None


def labels(database: Database) -> Iterator[Label]:
    """The labels, with the ids that the cards have here; the cards of the made-up ones are made."""
    rows = [json.loads(line) for line in _LABELS.read_text(encoding="utf-8").splitlines()]
    made = _make_up(database, [row for row in rows if row["workspace"] == MADE_UP])
    for row in rows:
        workspace = row["workspace"]
        if workspace == MADE_UP:
            ids = [made[tuple(row[side])] for side in ("one", "other")]
        else:
            with database.transaction(workspace) as tx:
                ids = [
                    tx.row(_CARD_OF, session=session, seq=seq)["card_id"] for session, seq in (row["one"], row["other"])
                ]
        yield Label(workspace, frozenset(ids), row["duplicate"])


def _make_up(database: Database, rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    workspaces.make(database, MADE_UP, language="italian", principal="benchmark")
    texts = list(dict.fromkeys((row[side][0], row[side][1]) for row in rows for side in ("one", "other")))
    contents = [CardContent(Family.CONCEPT, subject=subject, detail=detail) for subject, detail in texts]
    with database.transaction(MADE_UP, writing=True) as tx:
        return dict(zip(texts, cards.create(tx, contents, origin="hand", principal="benchmark"), strict=True))


def proposals(database: Database, workspace: str) -> Proposals:
    with database.transaction(workspace, snapshot=True) as tx:
        return proposed(tx, _ALL)


def score(found: list[tuple[str, Proposal]], known: list[Label], kind: str) -> tuple[Score, int, int]:
    """How proposals of a kind compare, and of how many labelled duplicates how many were proposed, of any kind."""
    verdicts = {(label.workspace, label.pair): label.duplicate for label in known}
    result = Score()
    for workspace, pair in found:
        if pair.kind == kind:
            verdict = verdicts.get((workspace, _ids(pair)))
            result.right += verdict is True
            result.wrong += verdict is False
            result.unlabelled += verdict is None
    pairs = {(workspace, _ids(pair)) for workspace, pair in found}
    duplicates = {key for key, duplicate in verdicts.items() if duplicate}
    return result, len(duplicates & pairs), len(duplicates)


def _ids(pair: Proposal) -> frozenset[str]:
    return frozenset((pair.keep.card_id, pair.other.card_id))


def large(database: Database) -> dict[str, float]:
    """Seconds for 10,000 cards of some words each, a tenth of them near others; and what Python holds at the peak."""
    workspaces.make(database, LARGE, language="italian", principal="benchmark")
    contents = [_made(n) for n in range(_CARDS)]
    with database.transaction(LARGE, writing=True) as tx:
        cards.create(tx, contents, origin="hand", principal="benchmark")
    start = time.perf_counter()
    found = proposals(database, LARGE)
    seconds = time.perf_counter() - start
    tracemalloc.start()
    proposals(database, LARGE)
    mebibytes = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return {"cards": found.cards, "pairs": found.total, "seconds": round(seconds, 2), "MiB": round(mebibytes, 1)}


def _made(n: int) -> CardContent:
    """A card of some words; every tenth says what the one before it says, in other words."""
    reworded = n % 10 == 9  # noqa: PLR2004  # every tenth
    chance = random.Random(n - reworded)  # noqa: S311  # the same cards in every run
    first, *others = (_word(chance) for _ in range(8))
    detail = f"{' '.join(others)}, tipo = '{chance.randrange(100)}'"
    return CardContent(Family.CONCEPT, subject=first, detail=f"per {first} si intende {detail}" if reworded else detail)


def _word(chance: random.Random) -> str:
    return "".join(chance.choice(_SYLLABLES) for _ in range(1 + chance.randrange(3)))


def measure(data: Path, home: Path) -> dict[str, Any]:
    root = data / "bird" / "sessions"
    settings = embedded_settings(home).model_copy(update={"sessions_root": root})
    with Runtime(settings, create=True) as runtime:
        runtime.migrate()
        for name in (*CHOSEN_ON, *OTHERS):
            ingest(runtime.database, name, settings, runtime.identity)
        known = list(labels(runtime.database))
        found = [(n, p) for n in (*CHOSEN_ON, *OTHERS, MADE_UP) for p in proposals(runtime.database, n).pairs]
        return {
            "labels": dict(Counter("duplicate" if label.duplicate else "not" for label in known)),
            "scores": {name: _scores(found, known, names) for name, names in _PARTS.items()},
            "unlabelled": [f"{name} {sorted(_ids(pair))}" for name, pair in found if _unknown(name, pair, known)],
            "large": large(runtime.database),
        }


_PARTS = {"chosen on": CHOSEN_ON, "others": OTHERS, "made up": (MADE_UP,)}


def _unknown(workspace: str, pair: Proposal, known: list[Label]) -> bool:
    return all((label.workspace, label.pair) != (workspace, _ids(pair)) for label in known)


def _scores(found: list[tuple[str, Proposal]], known: list[Label], names: tuple[str, ...]) -> dict[str, Any]:
    here = [each for each in found if each[0] in names]
    labelled = [label for label in known if label.workspace in names]
    scores = {}
    for kind in ("form", "near"):
        result, recalled, duplicates = score(here, labelled, kind)
        scores[kind] = {**vars(result), "precision": result.precision}
    return {**scores, "recall": recalled / duplicates, "duplicates": duplicates, "labels": len(labelled)}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--unlabelled", action="store_true", help="Name the proposals that have no label.")
    arguments = parser.parse_args()
    with fresh_home() as home:
        figures = measure(arguments.data, home)
    rows = []
    for part, scores in figures["scores"].items():
        for kind in ("form", "near"):
            row = scores[kind]
            precision = "" if row["precision"] is None else f"{row['precision']:.2f}"
            recall = f"{scores['recall']:.2f} of {scores['duplicates']}"
            rows.append((part, kind, row["right"], row["wrong"], row["unlabelled"], precision, recall))
    columns = ("workspaces", "kind", "right", "wrong", "unlabelled", "precision", "recall of both")
    report(columns, rows, figures, arguments.json)
    Console().print(f"labels: {figures['labels']}; large workspace: {figures['large']}")
    if arguments.unlabelled:
        Console().print(*figures["unlabelled"], sep="\n")


if __name__ == "__main__":
    main()
