"""Makes session directories for benchmarks: Italian cardiology, drawn by a fixed seed, and what they have to become."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_pipeline.ledger import LEDGER_FILE, MANIFEST_FILE, SQL_FILE

_BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
_HOUR = 3_600  # seconds; files of that age are at rest
_SHARED = 400  # clarifications that are made again and again, in a workspace of any size

_PEOPLE = ["pazienti attivi", "pazienti ricoverati", "pazienti in lista d'attesa", "portatori di pacemaker"]
_EVENTS = ["un'ablazione", "una coronarografia", "un ricovero urgente", "un ecocardiogramma", "una visita di controllo"]
_PLACES = ["Roma", "Milano", "Torino", "Napoli", "Bari", "Palermo", "Genova", "Bologna"]
_TERMS = [
    "frazione di eiezione ridotta",
    "scompenso avanzato",
    "paziente fragile",
    "ricovero ripetuto",
    "esito incerto",
]
_MEASURES = ["fe_percento", "classe_nyha", "eta_anni", "giorni_degenza", "pressione_sistolica", "bnp_pg_ml"]

_COUNT = """SELECT COUNT(DISTINCT p.paziente_id) AS pazienti
FROM dm.dim_paziente AS p
JOIN dm.fact_procedura AS f ON f.paziente_id = p.paziente_id
JOIN dm.dim_centro AS c ON c.centro_id = f.centro_id
WHERE p.flag_attivo = TRUE AND c.citta = '{place}' AND f.{measure} >= {bound}
  AND f.data_procedura BETWEEN DATE '{year}-01-01' AND DATE '{year}-12-31'
"""
_GROUPED = """WITH ricoveri AS (
    SELECT r.paziente_id, r.reparto_id, r.data_ingresso, r.{measure},
           ROW_NUMBER() OVER (PARTITION BY r.paziente_id ORDER BY r.data_ingresso DESC) AS ordine
    FROM dm.fact_ricovero r
    WHERE EXTRACT(YEAR FROM r.data_ingresso) = {year} AND r.esito <> 'annullato {bound}'
), ultimi AS (
    SELECT * FROM ricoveri WHERE ordine = 1
)
SELECT d.descrizione, COUNT(*) AS ricoveri,
       AVG(CASE WHEN u.{measure} > {bound} THEN 1.0 ELSE 0.0 END) AS quota
FROM ultimi u
JOIN dm.dim_reparto d ON d.reparto_id = u.reparto_id
LEFT JOIN dm.dim_paziente p ON p.paziente_id = u.paziente_id AND p.comune IN ('{place}', 'Aosta')
GROUP BY d.descrizione
HAVING COUNT(*) > 5
ORDER BY ricoveri DESC, d.descrizione
LIMIT 20
"""
_PLAIN = """SELECT nome, cognome FROM dm.dim_paziente WHERE comune = '{place}' AND {measure} < {bound} AND anno = {year}
"""
_QUERIES = [_COUNT, _COUNT, _GROUPED, _PLAIN]  # of 150 to 800 characters, as reviewers approve them


@dataclass
class Expected:
    """What the archive has to hold of a workspace once its sessions are taken in."""

    sessions: int = 0
    solved_questions: int = 0
    promoted: int = 0
    texts: set[tuple[str, str]] = field(default_factory=set)

    @property
    def sources(self) -> int:
        """The decisions that stand behind cards."""
        return self.promoted + self.solved_questions


def write_sessions(root: Path, workspace: str, count: int) -> Expected:
    """Write so many sessions, named by their number, whose files look an hour old."""
    expected = Expected()
    for number in range(count):
        write_session(root, workspace, number, expected)
    return expected


def write_session(root: Path, workspace: str, number: int, expected: Expected) -> Path:
    """Write one session, the same one for each number, and count what it has to become."""
    draw = random.Random(f"{workspace} {number}")  # noqa: S311  # a sample is no secret
    finalized = draw.random() < 0.85  # noqa: PLR2004  # of the real ones, most are
    directory = root / workspace / f"session-{number:06d}"
    directory.mkdir(parents=True)
    written = {
        MANIFEST_FILE: _manifest(workspace, number, _question(draw), finalized=finalized),
        LEDGER_FILE: "".join(_lines(draw, number, expected, finalized=finalized)),
    }
    if finalized:
        values = {"place": draw.choice(_PLACES), "measure": draw.choice(_MEASURES), "bound": number % 9_000}
        written[SQL_FILE] = draw.choice(_QUERIES).format(**values, year=draw.randint(2015, 2025))
    for name, text in written.items():
        (directory / name).write_text(text, encoding="utf-8")
        rest(directory / name)
    expected.sessions += 1
    expected.solved_questions += finalized
    return directory


def append_clarification(directory: Path, expected: Expected) -> None:
    """Append a clarification that is promoted, as a reviewer does."""
    ledger = directory / LEDGER_FILE
    seq = len(ledger.read_bytes().splitlines()) + 1
    text = f"chiarito dopo in {directory.name}", "flag_dopo = TRUE"
    with ledger.open("a", encoding="utf-8") as file:
        file.write(_line(seq, 0, "concept_clarified", *text))
        file.write(_line(seq + 1, 0, "memory_promoted", text[0], f"seq:{seq}"))
    rest(ledger)
    expected.promoted += 1
    expected.texts.add(text)


def rest(file: Path) -> None:
    """Make a file look as if it had not been touched for an hour."""
    moment = file.stat().st_mtime - _HOUR
    os.utime(file, (moment, moment))


def _question(draw: random.Random) -> str:
    people, event, place = draw.choice(_PEOPLE), draw.choice(_EVENTS), draw.choice(_PLACES)
    return f"Quanti {people} con {draw.choice(_TERMS)} hanno avuto {event} a {place} nel {draw.randint(2015, 2025)}?"


def _manifest(workspace: str, number: int, question: str, *, finalized: bool) -> str:
    moment = (_BEGIN + timedelta(minutes=number)).isoformat()
    entries = {
        "id": f"session-{number:06d}",
        "workspace": workspace,
        "created_at": moment,
        "question": question,
        "database": "cardiologia",
        "schema": "dm",
        "dialect": "postgres",
        "language": "italian",
        "status": "finalized" if finalized else "open",
        "updated_at": moment,
        "updated_by": "revisore",
    }
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in entries.items())


def _lines(draw: random.Random, number: int, expected: Expected, *, finalized: bool) -> Iterator[str]:
    """Six to twelve lines: clarifications, tables, mostly a rewriting, an approval, and what is promoted of it."""
    clarified = [_clarification(draw, number, n) for n in range(draw.randint(1, 3))]
    decisions: list[tuple[str, str, str]] = [("concept_clarified", *text) for text in clarified]
    decisions += [("table_promoted", t, "serve alla domanda") for t in ("fact_procedura", "dim_paziente", "dim_centro")]
    decisions += [("column_promoted", f"dim_paziente.{draw.choice(_MEASURES)}", "filtro")]
    if draw.random() < 0.6:  # noqa: PLR2004  # as often as not
        decisions.append(("question_rewritten", "question", _question(draw)))
    if finalized:
        decisions.append(("sql_approved", "phase:7", ""))
    for seq, text in enumerate(clarified, 1):
        verdict = draw.choices(["memory_promoted", "memory_promotion_declined", None], [7, 2, 1])[0]
        if verdict:
            decisions.append((verdict, text[0], f"seq:{seq}"))
        if verdict == "memory_promoted":
            expected.promoted += 1
            expected.texts.add(text)
    return (_line(seq, number, *decision) for seq, decision in enumerate(decisions, 1))


def _clarification(draw: random.Random, number: int, place: int) -> tuple[str, str]:
    """One of those that many sessions share, or one of its own; a third are shared."""
    of = draw.randrange(_SHARED) if draw.random() < 1 / 3 else _SHARED + 3 * number + place
    term, measure = _TERMS[of % len(_TERMS)], _MEASURES[of % len(_MEASURES)]
    return f"{term} di tipo {of}", f"{measure} > {of % 97} AND stato = 'tipo {of}'"


def _line(seq: int, number: int, kind: str, subject: str, detail: str) -> str:
    moment = _BEGIN + timedelta(minutes=number, seconds=seq)
    entry: dict[str, Any] = {"seq": seq, "ts": moment.isoformat(), "phase": 1, "type": kind, "subject": subject}
    entry |= {"detail": detail, "rationale": "come li conta il reparto" if kind == "concept_clarified" else ""}
    return json.dumps(entry, ensure_ascii=False) + "\n"
