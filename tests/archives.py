"""A workspace of the archive as tests see it: fed from session directories, looked at in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy import RowMapping, make_url, text

from memory_pipeline.archive.ingest import IngestReport, ingest
from memory_pipeline.archive.sessions import no_progress
from memory_pipeline.runtime import Runtime
from tests.builders import WORKSPACE, a_session, aged


@dataclass
class Archive:
    """A workspace of the archive, and the directory that it is fed from."""

    runtime: Runtime
    workspace: str = WORKSPACE

    @property
    def root(self):
        return self.runtime.settings.sessions

    @property
    def database(self):
        return self.runtime.database

    @property
    def identity(self) -> str:
        return self.runtime.identity.hash

    def session(self, *decisions, **others):
        """Write a session whose files are old enough to be trusted."""
        return aged(a_session(self.root, *decisions, **{"workspace": self.workspace, **others}))

    def ingest(self, progress=no_progress) -> IngestReport:
        return ingest(self.database, self.workspace, self.runtime.settings, self.runtime.identity, progress)

    def given(self, *decisions, **others) -> IngestReport:
        """Write a session and take it in."""
        self.session(*decisions, **others)
        return self.ingest()

    def rows(self, query: str, **parameters: object) -> list[RowMapping]:
        with self.database.transaction(self.workspace) as tx:
            return list(tx.rows(text(query), **parameters))

    def column(self, query: str, **parameters: object) -> list[Any]:
        return [next(iter(row.values())) for row in self.rows(query, **parameters)]

    def change(self, statement: str, **parameters: object) -> int:
        with self.database.transaction(self.workspace) as tx:
            return tx.run(text(statement), **parameters)

    def card(self, card_id: str = "mem-0001") -> RowMapping:
        (row,) = self.rows("SELECT * FROM card WHERE card_id = :card_id", card_id=card_id)
        return row

    def card_ids(self, family: str = "concept") -> list[str]:
        return self.column("SELECT card_id FROM card WHERE family = :family ORDER BY card_id", family=family)

    def sources(self, card_id: str) -> list[tuple[str, int]]:
        query = "SELECT session_id, seq FROM card_source WHERE card_id = :card_id ORDER BY session_id, seq"
        return [(row["session_id"], row["seq"]) for row in self.rows(query, card_id=card_id)]

    def questions(self) -> list[str]:
        return self.column("SELECT text FROM question ORDER BY text")

    def faults(self) -> list[tuple[str, str]]:
        query = "SELECT session_id, kind FROM ledger_fault ORDER BY session_id, ordinal"
        return [(row["session_id"], row["kind"]) for row in self.rows(query)]

    def edited(self, card_id: str, **texts: str) -> None:
        """Change a card as an administrator does, whose word then stands."""
        values = ", ".join(["edited = true", *(f"{name} = :{name}" for name in texts)])
        self.change(f"UPDATE card SET {values} WHERE card_id = :card_id", card_id=card_id, **texts)

    def submitted_edit(self, state: str = "waiting") -> None:
        """An edit that an administrator submitted, and what became of it."""
        statement = (
            "INSERT INTO admin_edit (workspace, principal, operation, state) VALUES (:workspace, 'a', 'edit', :state)"
        )
        self.change(statement, state=state)

    def certify_all(self) -> None:
        """Make the archive believe that the index holds what it wants."""
        self.change("DELETE FROM projection WHERE wanted IS NULL")
        self.change("UPDATE projection SET certified = wanted, pending = false")

    def pending(self) -> set[str]:
        return set(self.column("SELECT item_id FROM projection WHERE pending"))


def connected(url) -> psycopg.Connection:
    plain = make_url(url.get_secret_value()).set(drivername="postgresql")
    return psycopg.connect(plain.render_as_string(hide_password=False), autocommit=True)
