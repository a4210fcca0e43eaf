"""Lists cards of a large workspace as an administrator does: filters, searches, orders, pages, and single cards.

    python -m benchmarks.listing [--cards 50000] [--runs 20] [--json FILE]

Times are milliseconds on this machine, the whole call included; the home is made for the run and removed. A third of
the cards are solved questions with SQL of 1 to 3 kB; each card has three dependencies, and two of three have sources.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import text

from benchmarks.common import arguments_of, fill, fresh_runtime, report, seconds, summary
from memory_pipeline.archive import identities
from memory_pipeline.archive.listing import CardDetail, ListRequest, Page, detail, list_cards
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.runtime import Runtime

_WORKSPACE = "large"
_TEXT = """
paziente attivo ricovero dimissione età più diagnosi flag_attivo reparto ablazione fibrillazione atriale data inizio
fine episodio terapia farmaco dosaggio esame pressione visita priorità urgenza codice stato è perché così valore
"""
_WORDS = _TEXT.split()

SOURCES = text(
    "INSERT INTO card_source (workspace, session_id, seq, decision_type, decided_by, text_key, card_id) "
    "SELECT :workspace, 'session-' || card_id, seq, 'concept_clarified', seq, 'key', card_id "
    "FROM card, generate_series(1, length(detail) % 3) AS seq WHERE workspace = :workspace"
)
CERTIFY = text("UPDATE projection SET pending = false WHERE workspace = :workspace AND wanted < '8'")

REQUESTS = {
    "first page, as it opens": ListRequest(),
    "text, two filters": ListRequest(text="flag_attivo ricovero", families=(Family.CONCEPT,), origin="hand"),
    "text, table and column": ListRequest(text="eta", table="FACT_EPISODE_3", column="Column_12"),
    "text, a thousand at once": ListRequest(text="paziente", limit=1_000),
    "text that most cards hold": ListRequest(text="paziente"),
    "text that no card holds": ListRequest(text="inesistente"),
    "concept, state, from a moment on": ListRequest(
        concept="Età", state="recallable", updated_after=datetime(2020, 1, 1, tzinfo=UTC)
    ),
    "by title": ListRequest(sort="title", descending=False),
    "by sources": ListRequest(sort="sources"),
    "by card_id, the last page": ListRequest(sort="card_id", descending=False),
    "text, by title, a deep page": ListRequest(text="paziente", sort="title"),
}


def some(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(_WORDS, k=count))


def contents(count: int) -> Iterator[CardContent]:
    chance = random.Random(1)  # noqa: S311  # the same cards in each run
    for number in range(count):
        table = Dependency("dwh", "public", f"fact_episode_{number % 40}")
        placed = {
            "database": "dwh",
            "schema": "public",
            "dependencies": (table, *(replace(table, column=f"column_{n + number % n}") for n in (11, 23))),
        }
        if number % 3 == 0:
            sql = " ".join(("SELECT", some(chance, chance.randrange(100, 400)), "FROM fact_episode"))
            yield CardContent(Family.SOLVED_QUESTION, question=f"{some(chance, 8)}? {number}", sql=sql, **placed)
        else:
            family = Family.CONCEPT if number % 3 == 1 else Family.SQL_RULE
            concepts = tuple(chance.choices(_WORDS, k=2))
            subject, said = f"{some(chance, 3)} {number}", some(chance, chance.randrange(10, 60))
            yield CardContent(family, subject, said, some(chance, 10), concepts=concepts, **placed)


def prepare(runtime: Runtime, count: int) -> None:
    """Make the cards, with sources and with points that pass for certified."""
    fill(runtime, _WORKSPACE, contents(count))
    with runtime.database.transaction(_WORKSPACE) as tx:
        identities.register(tx, runtime.identity)
    with runtime.database.transaction(_WORKSPACE, writing=True) as tx:
        tx.run(SOURCES)
        tx.run(CERTIFY)


def milliseconds(work: Callable[[], object], runs: int) -> list[float]:
    work()  # the first one warms the caches
    return [1_000 * seconds(work) for _ in range(runs)]


def listed(runtime: Runtime, request: ListRequest) -> Page:
    with runtime.database.transaction(_WORKSPACE, snapshot=True) as tx:
        return list_cards(tx, runtime.identity.hash, request)


def shown(runtime: Runtime, card_id: str) -> CardDetail:
    with runtime.database.transaction(_WORKSPACE, snapshot=True) as tx:
        return detail(tx, runtime.identity.hash, card_id)


def measure(runtime: Runtime, count: int, runs: int) -> dict[str, dict[str, float]]:
    figures = {}
    for name, asked in REQUESTS.items():
        request = replace(asked, offset=count * 9 // 10) if "page" in name and "first" not in name else asked
        times = milliseconds(lambda request=request: listed(runtime, request), runs)
        figures[name] = summary(times) | {"found": listed(runtime, request).total}
    return figures | {"detail": summary(milliseconds(lambda: shown(runtime, "mem-0002"), runs)) | {"found": 1}}


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--cards", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    with fresh_runtime() as runtime:
        prepare(runtime, arguments.cards)
        figures = measure(runtime, arguments.cards, arguments.runs)
    rows = [(name, f"{f['found']:,}", f"{f['p50']:,}", f"{f['p95']:,}") for name, f in figures.items()]
    report([f"request, {arguments.cards:,} cards", "found", "p50, ms", "p95, ms"], rows, figures, arguments.json)


if __name__ == "__main__":
    main()
