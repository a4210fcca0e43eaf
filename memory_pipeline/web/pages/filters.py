"""The filters of the list as its address holds them, so that it can be kept and sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlencode

from memory_pipeline.archive.listing import ListRequest
from memory_pipeline.errors import InvalidInput
from memory_pipeline.web.pages.numbers import whole

SIZES = (25, 50, 100, 250)
_TEXTS = ("text", "concept", "database", "schema", "table", "column", "flag")


class Query(Protocol):
    """The query of an address: names with their values, of which a name may have several."""

    def get(self, name: str, default: str, /) -> str:
        """The value of a name, or the default."""

    def getlist(self, name: str, /) -> list[str]:
        """All values of a name."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What the form of the list says, in the texts that its fields hold.

    `after` and `before` are days in UTC, both of them within; the others are those of `ListRequest`, "" for any.
    """

    text: str = ""
    family: tuple[str, ...] = ()
    concept: str = ""
    database: str = ""
    schema: str = ""
    table: str = ""
    column: str = ""
    origin: str = ""
    after: str = ""
    before: str = ""
    state: str = ""
    flag: str = ""
    sort: str = "updated_at"
    order: str = "descending"
    size: str = "50"
    page: str = "1"

    @classmethod
    def of(cls, query: Query) -> Filters:
        """The filters of an address."""
        families = tuple(filter(None, query.getlist("family")))
        default = cls()
        texts = {
            each.name: query.get(each.name, getattr(default, each.name)).strip()
            for each in fields(cls)
            if each.name != "family"
        }
        return cls(family=families, **{**texts, "page": texts["page"].lstrip("0") or "1"})

    def request(self) -> ListRequest:
        """What is asked of the archive.

        Raises:
            InvalidInput: a number or a day is none; what else is wrong, the archive says.
        """
        size = whole("size", self.size)
        return ListRequest(
            **{name: getattr(self, name) for name in _TEXTS},
            families=self.family,
            origin=self.origin or None,  # type: ignore[arg-type]  # the archive says what is none
            state=self.state or None,  # type: ignore[arg-type]  # likewise
            updated_after=_day("after", self.after),
            updated_before=_day("before", self.before, end=True),
            sort=self.sort,  # type: ignore[arg-type]  # likewise
            descending=self.order != "ascending",
            limit=size,
            offset=(max(whole("page", self.page), 1) - 1) * size,
        )

    def address(self, **changes: Any) -> str:
        """The query of the same list with other values; the first page unless another one is named."""
        other, default = replace(self, **{"page": "1", **changes}), Filters()
        named: Mapping[str, Any] = {each.name: getattr(other, each.name) for each in fields(self)}
        return urlencode({k: v for k, v in named.items() if v != getattr(default, k)}, doseq=True)

    @property
    def narrowed(self) -> bool:
        """Whether anything but the order and the page is asked for."""
        return replace(Filters(), sort=self.sort, order=self.order, size=self.size, page=self.page) != self

    @property
    def folded(self) -> bool:
        """Whether none of the rarer filters is used, so that they need not be seen."""
        rare = (self.database, self.schema, self.table, self.column, self.origin, self.after, self.before, self.flag)
        return not any((*rare, self.concept))


def _day(name: str, text: str, *, end: bool = False) -> datetime | None:
    """The beginning of a day, or its end."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return day + timedelta(days=1) if end else day
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name}: has to be a day, such as 2026-01-31") from None
