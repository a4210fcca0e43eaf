"""An archive as older versions of the library left it: the schema of one of their revisions, and rows in every table.

The rows are written in SQL, since no current code may write to an older schema.
"""

from __future__ import annotations

from dataclasses import asdict

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from memory_pipeline.archive import migrate as migrations
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.embedding.base import EmbeddingIdentity
from memory_pipeline.points import card_fingerprint, question_fingerprint, question_id
from memory_pipeline.settings import Settings
from tests.archives import connected

REVISIONS = sorted(file.name[:4] for file in (migrations.MIGRATIONS / "versions").glob("[0-9]*.py"))
LANGUAGE = "italian"
QUESTION = "Quanti pazienti sono in cura?"
CARDS = {
    "mem-0001": CardContent(
        Family.CONCEPT,
        subject="paziente attivo",
        detail="flag_attivo = TRUE",
        concepts=("paziente",),
        dependencies=(Dependency("clinic_dwh", "public", "dim_paziente", "flag_attivo"),),
    ),
    "mem-0002": CardContent(Family.SQL_RULE, subject="data di ricovero", detail="usare data_ingresso"),
    "mem-0003": CardContent(Family.PITFALL, subject="Straße l’età", detail="in anni compiuti"),
    "sq-0001": CardContent(
        Family.SOLVED_QUESTION, question=QUESTION, sql="SELECT count(*) FROM dim_paziente WHERE stato = 'in cura'"
    ),
    "sq-0002": CardContent(
        Family.SOLVED_QUESTION, question="Quanti medici ci sono?", sql="SELECT count(*) FROM medici"
    ),
}
NAMES_A_LITERAL = "sq-0001"
WAITING_EDIT = {"operation": "create", "family": "concept", "subject": "reparto", "detail": "cod_reparto"}

_BEFORE_CARDS = """
INSERT INTO workspace (workspace, language, created_by) VALUES (%(w)s, 'italian', 'anna');
INSERT INTO workspace_grant (workspace, principal, role, granted_by)
    VALUES (%(w)s, 'anna', 'administrator', 'anna'), (%(w)s, 'ben', 'reviewer', 'anna'), (%(w)s, 'carla', 'reader', 'anna');
INSERT INTO session_reading (workspace, session_id, signature) VALUES (%(w)s, 's1', 'of its files');
INSERT INTO ledger_fault VALUES (%(w)s, 's1', 7, 'malformed', 'not JSON', 1);
INSERT INTO session VALUES (%(w)s, 's1', 'finalized', 'Quanti?', 'clinic_dwh', 'public', 'postgres', '2026-01-05Z',
    '2026-01-05Z', 'anna', NULL, 'Quanti?', 'q-1', NULL, '', ARRAY['mem-0007']);
INSERT INTO decision VALUES (%(w)s, 's1', 1, '2026-01-05Z', 'concept_clarified', 1, 'paziente attivo',
    'flag_attivo = TRUE', '', '{}', '{}', 'key', true, 'promoted', 2);
INSERT INTO card_number VALUES (%(w)s, 'mem', 9), (%(w)s, 'sq', 2);
INSERT INTO question VALUES (%(w)s, %(question_id)s, %(question)s, 'key', %(question_fingerprint)s);
INSERT INTO embedding_identity (workspace, identity, settings) VALUES (%(w)s, %(identity)s, %(settings)s);
INSERT INTO embedding VALUES (%(w)s, %(identity)s, 'passage', 'hash of a text', '\\x0000803f', false);
"""
_CARD = """
INSERT INTO card (workspace, card_id, family, version, origin, edited, flags, subject, detail, question, sql, concepts,
    text_key, fingerprint, updated_by)
VALUES (%(w)s, %(card_id)s, %(family)s, 3, 'session', true, ARRAY['ledger_differs'], %(subject)s, %(detail)s,
    %(question)s, %(sql)s, %(concepts)s, 'key', %(fingerprint)s, 'anna')
"""
# Of two decisions one stands behind a card; the card of the other was deleted.
_AFTER_CARDS = """
INSERT INTO card_dependency VALUES (%(w)s, 'mem-0001', 'clinic_dwh', 'public', 'dim_paziente', 'flag_attivo');
INSERT INTO card_link VALUES (%(w)s, 'sq-0001', 'mem-0001', 'uses');
INSERT INTO card_source VALUES (%(w)s, 's1', 1, 'concept_clarified', 2, 'key', 'mem-0001', %(question_id)s),
    (%(w)s, 's1', 3, 'concept_clarified', 4, 'another key', NULL, NULL);
INSERT INTO admin_edit (workspace, principal, operation, card_id, content, state, reason)
    VALUES (%(w)s, 'anna', 'create', NULL, %(edit)s, 'waiting', NULL),
    (%(w)s, 'anna', 'delete', 'mem-0007', NULL, 'applied', NULL),
    (%(w)s, 'ben', 'delete', 'mem-0001', '{"card_id": "mem-0001", "version": 1}', 'refused', 'no grant');
UPDATE projection SET certified = wanted, certified_at = '2026-02-01Z', pending = false WHERE workspace = %(w)s;
"""
_SINCE = {
    "0003": "UPDATE embedding_identity SET live = true WHERE workspace = %(w)s;",
    "0006": """
INSERT INTO last_audit VALUES (%(w)s, '2026-03-01 09:00Z', 6, '{}', true);
INSERT INTO backlog_sample VALUES (%(w)s, '2026-03-01 09:00Z', 3, 1.5, '2026-03-01 09:00:30Z', 0, NULL);
""",
}
"""What the libraries of a revision and of later ones wrote besides. Of literals nothing: all read them when they can."""


def an_older_archive(settings: Settings, revision: str, identity: EmbeddingIdentity, *workspaces: str) -> None:
    """Make an archive of a revision in which each workspace has rows in the tables, and all its points are certified."""
    migrate_to(settings, revision)
    with connected(settings.owner_url) as owner:
        for workspace in workspaces:
            _fill(psycopg.ClientCursor(owner), revision, workspace, identity)


def migrate_to(settings: Settings, revision: str) -> None:
    """What `memory-pipeline migrate` of the library of this revision did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "SCHEMA_REVISION", revision)
        migrations.migrate(settings.owner_url, settings.database_url)


def rows(owner: psycopg.Connection) -> dict[str, list[dict[str, object]]]:
    """Table → its rows, all of them, in a fixed order."""
    tables = owner.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    query = sql.SQL("SELECT to_jsonb(t) FROM {} AS t ORDER BY t::text")
    return {name: [row for (row,) in owner.execute(query.format(sql.Identifier(name)))] for (name,) in tables}


def _fill(owner: psycopg.ClientCursor, revision: str, workspace: str, identity: EmbeddingIdentity) -> None:
    given = {
        "w": workspace,
        "question": QUESTION,
        "question_id": question_id(QUESTION),
        "question_fingerprint": question_fingerprint(QUESTION, LANGUAGE),
        "identity": identity.hash,
        "settings": Jsonb(identity.settings | {"hash": identity.hash}),
        "edit": Jsonb(WAITING_EDIT),
    }
    owner.execute(_BEFORE_CARDS, given)
    for card_id, content in CARDS.items():
        fingerprint = card_fingerprint(content, (), LANGUAGE)
        texts = {**asdict(content), "concepts": list(content.concepts)}
        owner.execute(_CARD, {**texts, "w": workspace, "card_id": card_id, "fingerprint": fingerprint})
    owner.execute(_AFTER_CARDS, given)
    for statements in (added for since, added in _SINCE.items() if since <= revision):
        owner.execute(statements, given)
