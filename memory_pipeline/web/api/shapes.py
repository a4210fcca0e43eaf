"""The bodies of the HTTP interface that are not the library's own shapes: edits as they are sent, and errors."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from memory_pipeline.archive.cards import Origin
from memory_pipeline.archive.listing import LONGEST_PAGE, ListRequest, Sort, State
from memory_pipeline.cards import Family
from memory_pipeline.edits import DEPENDENCY_LIMIT, LIST_LIMIT
from memory_pipeline.recall.request import LIMIT_AT_MOST


def _written(given: object) -> object:
    """The moment that a text says; pydantic would take a number for seconds since 1970."""
    return datetime.fromisoformat(given) if isinstance(given, str) else given


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]


class Failure(BaseModel):
    """What went wrong; some kinds have further fields, such as `faults` by field, or what a card says `now`."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(description="the name of the error, which stays the same")
    message: str = Field(description="what is wrong, and what to do about it, for people")
    faults: dict[str, str] | None = Field(None, description="what is wrong by field, where something can be named")


class FailureBody(BaseModel):
    """The body of every answer that is no success."""

    error: Failure


_SAID = {
    400: "the request cannot be used: `faults` says why, field by field",
    401: "no token, or none that is valid",
    403: "the token's principal has no role for this in the workspace",
    404: "the archive has no such workspace, or the workspace no such card",
    409: "the card has changed since the version that the edit was based on: `now` says what it says",
    408: "the request was not sent in time",
    413: "the request is too large",
    429: "too many requests: wait for as long as `Retry-After` says",
    503: "the archive, or what else it takes, is away; nothing was saved",
}
FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": FailureBody, "description": said} for status, said in _SAID.items()
}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ListQuery(_Body):
    """Which cards to list, all conditions together, in which order, and which page of them."""

    text: str = Field("", description="words or parts of words that all occur in a card, or its id")
    family: list[Family] = Field([], max_length=len(Family), description="cards of any of these")
    concept: str = Field("", description="cards that name this concept")
    database: str = Field("", description="cards that depend on an object of this database")
    schema_: str = Field("", alias="schema", description="likewise, of this schema")
    table: str = Field("", description="likewise, of this table")
    column: str = Field("", description="likewise, on this column")
    origin: Origin | None = Field(None, description="made from sessions, or by hand")
    updated_after: Moment | None = Field(None, description="last changed at this moment or later")
    updated_before: Moment | None = Field(None, description="last changed before this moment")
    state: State | None = Field(None, description="whether the index is known to hold what the card says")
    flag: str = Field("", description="cards with this flag")
    sort: Sort = Field(
        "updated_at", description="what decides the order; `title` is a subject or question, `sources` how many"
    )
    descending: bool = Field(default=True, description="whether the order is from the largest down")
    limit: int = Field(50, ge=1, le=LONGEST_PAGE, description="how many cards the page has at most")
    offset: int = Field(0, ge=0, le=2**62, description="how many cards of the order come before the page")

    def request(self) -> ListRequest:
        """What is asked of the archive."""
        asked = self.model_dump(exclude={"family"}, by_alias=True)
        return ListRequest(families=tuple(self.family), **asked)


class PageQuery(_Body):
    """Which page of a list."""

    limit: int = Field(200, ge=1, le=LONGEST_PAGE, description="how many items the page has at most")
    offset: int = Field(0, ge=0, le=2**62, description="how many items of the order come before the page")


class LinkBody(_Body):
    """A link of the card to another one, or from it."""

    other: str = Field(description="the id of the card at the other end")
    meaning: str | None = Field(None, description="what the link says of its source and target; null removes it")
    outgoing: bool = Field(default=True, description="whether it leads from this card to the other")


class DependencyBody(_Body):
    """A database object that the card depends on; empty where a level does not apply."""

    database: str = Field("", description="its database")
    schema_: str = Field("", alias="schema", description="its schema")
    table: str = Field("", description="the table, or that of the column")
    column: str = Field("", description="the column")


class _CardFields(_Body):
    subject: str = Field(
        "", description="what it is about: a term, a rule, an error to avoid; not of a solved question"
    )
    detail: str = Field("", description="what holds of the subject; not of a solved question")
    rationale: str = Field("", description="why; not of a solved question")
    question: str = Field("", description="what was asked; of a solved question alone")
    sql: str = Field("", description="the SQL that answers it; of a solved question alone")
    dialect: str = Field("", description="sqlglot's name of the SQL's dialect; of a solved question alone")
    context: str = Field("", description="what else was settled on the way; of a solved question alone")
    database: str = Field("", description="the database that it is about")
    schema_: str = Field("", alias="schema", description="the schema that it is about")
    concepts: list[str] = Field(
        [], max_length=LIST_LIMIT, description="names of concepts that it needs; not of a solved question"
    )
    dependencies: list[DependencyBody] = Field(
        [], max_length=DEPENDENCY_LIMIT, description="database objects that it depends on, all of them"
    )
    links: list[LinkBody] = Field(
        [], max_length=LIST_LIMIT, description="links to make, change or remove; the others stay as they are"
    )


Version = Annotated[int, Field(description="the version that the edit was made from", ge=1, strict=True)]


class NewCard(_CardFields):
    """A card to make by hand: with subject and detail, or for a solved question with question and SQL."""

    family: Family = Field(description="what it is; it stays so")


class CardChange(_CardFields):
    """The fields of a card to replace, and the links to make, change or remove; the others stay as they are."""

    version: Version


class LinksChange(_Body):
    """Links to make, change or remove; the others stay as they are."""

    version: Version
    links: list[LinkBody] = Field(min_length=1, max_length=LIST_LIMIT, description="which")


class MergeBody(_Body):
    """Two cards of a family to make one of: `keep` takes what belongs to `other`, which is deleted."""

    keep: str = Field(description="the id of the card that is kept")
    keep_version: Version
    other: str = Field(description="the id of the card that becomes part of it")
    other_version: Version


class RetryBody(_Body):
    """What of the pending work to complete now."""

    card_id: str | None = Field(None, description="only of this card, which may be deleted; by default all")


class ScopeBody(_Body):
    """Only cards of a database, schema, table or column."""

    database: str | None = Field(None, description="its name")
    schema_: str | None = Field(None, alias="schema", description="its name")
    table: str | None = Field(None, description="its bare name")
    column: str | None = Field(None, description="its bare name")


class RecallBody(_Body):
    """A question, as a session would ask it."""

    question: str = Field(description="in any language, at most 20,000 characters")
    limit: int = Field(10, ge=1, le=LIMIT_AT_MOST, description="how many cards to answer with at most")
    families: list[Family] | None = Field(
        None, max_length=len(Family), description="only cards of these; by default all"
    )
    scope: ScopeBody | None = Field(None, description="only cards within it")
    session_id: str | None = Field(None, description="leave out what this session has taken or rejected")
    expand_links: bool = Field(default=False, description="whether linked cards come along")
    degraded: bool = Field(
        default=False, description="whether words alone may answer, with the index or the model away"
    )
    explain: bool = Field(default=False, description="whether to say which cards were found and left out, and why")
