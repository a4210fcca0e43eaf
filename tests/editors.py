"""An administrator at work on the archive alone: edits, lists and details in short words."""

from __future__ import annotations

from memory_pipeline.archive import editing, identities, listing, workspaces
from memory_pipeline.archive.editing import Saved
from memory_pipeline.archive.listing import CardDetail, ListRequest, Page
from memory_pipeline.cards import CardContent, Family
from memory_pipeline.edits import Change, Create, Delete, Edit, Link, Merge
from memory_pipeline.runtime import Runtime
from tests.archives import Archive
from tests.builders import WORKSPACE

SOLVED = {"family": Family.SOLVED_QUESTION, "question": "How many?", "sql": "SELECT count(*) FROM patients"}


def a_content(family: Family = Family.CONCEPT, **others) -> CardContent:
    """A content that its family allows."""
    usual = (
        SOLVED if family is Family.SOLVED_QUESTION else {"subject": "active patient", "detail": "flag_attivo = TRUE"}
    )
    return CardContent(**{**usual, "family": family, **others})


class Editor(Archive):
    """A workspace with somebody who edits it; an edit is based on the current version unless it names another."""

    def __init__(self, runtime: Runtime, workspace: str = WORKSPACE) -> None:
        super().__init__(runtime, workspace)
        workspaces.make(runtime.database, workspace, language="italian", principal="tester")
        with self.database.transaction(workspace) as tx:
            identities.register(tx, runtime.identity)

    def apply(self, edit: Edit, principal: str = "anna") -> Saved:
        with self.database.transaction(self.workspace, writing=True) as tx:
            return editing.apply(tx, edit, principal=principal)

    def create(self, *links: Link, family: Family = Family.CONCEPT, **content) -> str:
        return self.apply(Create(a_content(family, **content), links)).card_id

    def alter(self, card_id: str, *links: Link, version: int | None = None, **values) -> Saved:
        return self.apply(Change(card_id, version or self.version(card_id), values, links))

    def delete(self, card_id: str, version: int | None = None) -> Saved:
        return self.apply(Delete(card_id, version or self.version(card_id)))

    def merge(self, keep: str, other: str) -> Saved:
        return self.apply(Merge(keep, self.version(keep), other, self.version(other)))

    def version(self, card_id: str) -> int:
        return self.card(card_id)["version"]

    def detail(self, card_id: str) -> CardDetail:
        with self.database.transaction(self.workspace, snapshot=True) as tx:
            return listing.detail(tx, self.identity, card_id)

    def content(self, card_id: str) -> CardContent:
        return self.detail(card_id).content

    def links(self, card_id: str) -> set[Link]:
        """The links of a card in both directions."""
        return {Link(link.other, link.meaning, link.outgoing) for link in self.detail(card_id).links}

    def list(self, **request) -> Page:
        with self.database.transaction(self.workspace) as tx:
            return listing.list_cards(tx, self.identity, ListRequest(**request))

    def found(self, **request) -> list[str]:
        """The ids of a page, in order of ids unless another order is asked for."""
        return [card.card_id for card in self.list(**{"sort": "card_id", "descending": False, **request}).cards]

    def picture(self) -> dict[str, list[dict[str, object]]]:
        """All that an edit may touch, to be compared before and after."""
        tables = ("card", "card_link", "card_dependency", "card_literal", "card_source", "question", "projection")
        return {
            table: [dict(row) for row in self.rows(f"SELECT * FROM {table} t ORDER BY t::text")]
            for table in (*tables, "card_number")
        }
