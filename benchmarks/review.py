"""How long the review of a session takes in a large workspace, step by step.

    python -m benchmarks.review [--cards 10000] [--candidates 40] [--rounds 5] [--json FILE]

Seconds on this machine, the median of some sessions of so many candidates each; the home is made for the run and
removed. The cards are those of `benchmarks.recall_latency`. A stand-in takes the model's place, which answers at once:
what a real one takes for the new cards comes on top.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import arguments_of, fresh_home, report, seconds
from benchmarks.recall_latency import fill
from benchmarks.speech import BagOfWords, Speech
from memory_pipeline.candidates import Retraction
from memory_pipeline.reviewing import Reviewing
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import embedded_settings

_WORKSPACE = "large"
_MANIFEST = """\
id: {id}
workspace: large
question: "{question}"
database: dwh
schema: public
status: open
created_at: 2026-01-05T08:00:00Z
updated_at: 2026-01-05T08:00:00Z
updated_by: benchmark
"""


def begin(root: Path, session: str, speech: Speech, candidates: int) -> None:
    """Write a session of so many clarifications that nobody has decided about."""
    directory = root / _WORKSPACE / session
    directory.mkdir(parents=True)
    lines = [
        {
            "seq": seq,
            "ts": "2026-01-05T08:01:00Z",
            "type": "concept_clarified",
            "subject": f"{speech.some(1, 4)} {session}",
            "detail": speech.some(6, 30),
        }
        for seq in range(1, candidates + 1)
    ]
    (directory / "review_decisions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (directory / "manifest.yaml").write_text(_MANIFEST.format(id=session, question=speech.some(6, 14)))


def measure(home: Path, cards: int, candidates: int, rounds: int) -> dict[str, float]:
    """What each step takes, in seconds."""
    taken: dict[str, list[float]] = defaultdict(list)

    def timed(step: str, work: Callable[..., object], *arguments: object, **options: object) -> None:
        taken[step].append(seconds(lambda: work(*arguments, **options)))

    speech = Speech()
    with Runtime(embedded_settings(home), create=True) as runtime:
        runtime.migrate()
        runtime.embedder = BagOfWords(speech)  # type: ignore[assignment,method-assign]  # in place of the model
        fill(runtime, speech, cards)
        reviewing = Reviewing(runtime, "benchmark")
        for number in range(rounds):
            session = f"session-{number}"
            here = _WORKSPACE, session
            begin(runtime.settings.sessions, session, speech, candidates)
            every = range(1, candidates + 1)
            marker = Retraction([candidates + 1])
            timed("propose", reviewing.propose, *here)
            timed("preview", reviewing.preview, *here)
            timed("promote all", reviewing.record, *here, promote=every)
            timed("promote all again", reviewing.record, *here, promote=every)
            timed("foresee a retraction", reviewing.foresee, *here, marker)
            timed("retract", reviewing.correct, *here, marker)
            timed("session view", reviewing.view, *here)
    return {step: statistics.median(times) for step, times in taken.items()}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=10_000)
    parser.add_argument("--candidates", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with fresh_home() as home:
        found = measure(home, given.cards, given.candidates, given.rounds)
    rows = [(step, f"{took:.2f}") for step, took in found.items()]
    report([f"{given.candidates} candidates among {given.cards:,} cards", "seconds"], rows, found, given.json)


if __name__ == "__main__":
    main()
