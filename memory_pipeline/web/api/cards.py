"""Cards for programs: list, detail, create, change, delete, links, duplicates, merge."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from memory_pipeline.archive.duplicates import Proposals
from memory_pipeline.archive.listing import CardDetail, LinkedCard, Page
from memory_pipeline.curation import Outcome
from memory_pipeline.edits import Delete
from memory_pipeline.edits_json import parse_edit
from memory_pipeline.web.api.asking import CardId, Curating, Workspace
from memory_pipeline.web.api.reading import routes
from memory_pipeline.web.api.shapes import CardChange, LinksChange, ListQuery, MergeBody, NewCard

router = routes(prefix="/workspaces/{workspace}", tags=["cards"])


@router.get("/cards")
def list_cards(curation: Curating, workspace: Workspace, asked: Annotated[ListQuery, Query()]) -> Page:
    """The cards that fit all conditions, one page of them, and how many there are in all."""
    return curation.list(workspace, asked.request())


@router.post("/cards")
def create_card(curation: Curating, workspace: Workspace, body: NewCard) -> Outcome:
    """Make a card by hand, with its links and dependencies."""
    return curation.save(workspace, parse_edit({"operation": "create", **_given(body)}))


@router.get("/cards/{card_id}")
def show_card(curation: Curating, workspace: Workspace, card_id: CardId) -> CardDetail:
    """A card with its sources, links, dependencies, and how far the index follows it."""
    return curation.detail(workspace, card_id)


@router.patch("/cards/{card_id}")
def change_card(curation: Curating, workspace: Workspace, card_id: CardId, body: CardChange) -> Outcome:
    """Replace fields of a card, and make, change or remove links of it, in one save."""
    return curation.save(workspace, parse_edit({"operation": "change", "card_id": card_id, **_given(body)}))


@router.delete("/cards/{card_id}")
def delete_card(
    curation: Curating,
    workspace: Workspace,
    card_id: CardId,
    version: Annotated[int, Query(ge=1, le=2**31 - 1, description="the version that the deletion is based on")],
) -> Outcome:
    """Delete a card with its links and dependencies; the decisions behind it do not make it again."""
    return curation.save(workspace, Delete(card_id, version))


@router.get("/cards/{card_id}/links")
def show_links(curation: Curating, workspace: Workspace, card_id: CardId) -> list[LinkedCard]:
    """The links of a card, in both directions."""
    return list(curation.detail(workspace, card_id).links)


@router.post("/cards/{card_id}/links")
def change_links(curation: Curating, workspace: Workspace, card_id: CardId, body: LinksChange) -> Outcome:
    """Make, change or remove links of a card; each counts in the versions of both of its ends."""
    return curation.save(workspace, parse_edit({"operation": "change", "card_id": card_id, **_given(body)}))


@router.get("/duplicates")
def list_duplicates(
    curation: Curating,
    workspace: Workspace,
    limit: Annotated[int, Query(ge=1, le=1_000, description="how many pairs at most")] = 50,
) -> Proposals:
    """Pairs of cards that seem to say the same, with the versions that a merge is based on."""
    return curation.duplicates(workspace, limit)


@router.post("/merges")
def merge_cards(curation: Curating, workspace: Workspace, body: MergeBody) -> Outcome:
    """Make one card of two of a family; one is kept, the other one goes like any that is deleted."""
    return curation.save(workspace, parse_edit({"operation": "merge", **_given(body)}))


def _given(body: BaseModel) -> dict[str, Any]:
    """The fields that the request names, as the library reads an edit."""
    return body.model_dump(mode="json", by_alias=True, exclude_unset=True)
