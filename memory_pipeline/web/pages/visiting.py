"""Who visits, in which workspace, and what they sent: what every page begins with."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Path, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from memory_pipeline.archive.grants import Role
from memory_pipeline.cards import WORKSPACE_PATTERN
from memory_pipeline.curation import Curation
from memory_pipeline.errors import InvalidInput, NotPermitted
from memory_pipeline.web.failures import ForeignRequest, SignInNeeded
from memory_pipeline.web.identity.sessions import COOKIE, Visit
from memory_pipeline.web.pages.navigation import Entry, navigation
from memory_pipeline.web.pages.notices import Notice, read_notice, with_notice
from memory_pipeline.web.rendering import address, rendered
from memory_pipeline.web.services import services

CSRF_FIELD = "csrf"
_FIELDS_AT_MOST = 100_000

Workspace = Annotated[str, Path(pattern=f"^{WORKSPACE_PATTERN}$")]


def visit(request: Request) -> Visit:
    """Who is signed in.

    Raises:
        SignInNeeded: nobody.
    """
    found = services(request).sessions.read(request.cookies.get(COOKIE, ""))
    if found is None:
        raise SignInNeeded(
            "you are not signed in (any more): sign in on another tab, go back, and send this again, or it is lost"
        )
    return found


Visiting = Annotated[Visit, Depends(visit)]


def refuse_foreign(request: Request) -> None:
    """Ask whether a form comes from a page of ours, as far as the browser says it.

    Raises:
        ForeignRequest: another site sent it.
    """
    origin = request.headers.get("origin")
    if origin is not None and _host(origin) != request.headers.get("host"):
        raise ForeignRequest("another site sent this form: open the page here, and send it from there")


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


async def form(request: Request, visiting: Visiting) -> FormData:
    """What a form of ours holds.

    Raises:
        ForeignRequest: it is no form of ours, or one of somebody else's.
        InvalidInput: it is not in UTF-8.
    """
    refuse_foreign(request)
    # The size of the whole is bounded before; one text may take all of it.
    largest = services(request).runtime.settings.web_largest_body
    try:
        sent = await request.form(max_files=0, max_fields=_FIELDS_AT_MOST, max_part_size=largest)
        for name, value in sent.multi_items():
            f"{name}{value}".encode()  # a form may name any encoding, and some make of it what is in none
    except UnicodeError:
        raise InvalidInput("this form is not in UTF-8: open the page here, and send it from there") from None
    if not hmac.compare_digest(str(sent.get(CSRF_FIELD, "")).encode(errors="replace"), visiting.csrf.encode()):
        raise ForeignRequest(
            "this form was opened by somebody else, or before you signed in last: open the page again, and send it anew"
        )
    return sent


Sent = Annotated[FormData, Depends(form)]


@dataclass(frozen=True)
class Place:
    """Where a visitor is: what every page of a workspace is shown with.

    Attributes:
        request: what they asked for.
        visit: who they are.
        workspace: which workspace.
        role: what they may do there; None where nobody has asked yet.
    """

    request: Request
    visit: Visit
    workspace: str
    role: Role | None

    @property
    def pages(self) -> list[Entry]:
        """The pages of the workspace that the visitor may see."""
        return list(navigation(self.request, self.workspace, self.role)) if self.role else []

    @property
    def manages(self) -> bool:
        """Whether the visitor may look at cards and change them, so that links lead there."""
        return self.role is Role.ADMINISTRATOR

    def sure(self) -> Place:
        """The place, once it is known what the visitor may do there; see `place`."""
        return self if self.role else place(self.request, self.visit, self.workspace)

    def need(self, role: Role) -> Place:
        """The place, for who may do there what a role allows: for what shows nothing that the library would guard.

        Raises:
            NotPermitted: they may not.
        """
        if self.role is None or not self.role.includes(role):
            raise NotPermitted(f"this takes the role of {role} in workspace {self.workspace!r}")
        return self

    @property
    def curation(self) -> Curation:
        """The administration on the visitor's behalf."""
        return services(self.request).curation(self.visit.principal)

    def page(self, template: str, *, status: int = HTTPStatus.OK, **context: Any) -> Response:
        """A page of this workspace."""
        return page(self.request, self.visit, template, status=status, place=self, **context)

    def then(self, name: str, notice: Notice, /, **parameters: object) -> Response:
        """What follows a change: another page, which says once what became of it."""
        return seen_next(self.request, name, notice, workspace=self.workspace, **parameters)


def place(request: Request, visiting: Visiting, workspace: Workspace) -> Place:
    """Where the visitor is.

    Raises:
        UnknownWorkspace: there is no such workspace.
        NotPermitted: they have no role there.
    """
    role = services(request).role(visiting.principal, workspace)
    if role is None:
        raise NotPermitted(
            f"{visiting.principal.name!r} has no role in workspace {workspace!r}: an administrator of it gives one "
            "(`memory-pipeline grants give`)"
        )
    return Place(request, visiting, workspace, role)


Here = Annotated[Place, Depends(place)]


def unsure_place(request: Request, visiting: Visit, workspace: str) -> Place:
    """Where the visitor is, without asking the archive: what somebody typed can be shown again when that is away."""
    return Place(request, visiting, workspace, None)


def page(
    request: Request, visiting: Visit | None, template: str, *, status: int = HTTPStatus.OK, **context: Any
) -> Response:
    """A page, with what the last change left to say."""
    said = read_notice(request)
    shown: Mapping[str, Any] = {"visit": visiting, "place": None, "notice": said, **context}
    response = rendered(request, template, shown, status=status)
    return with_notice(request, response, None) if said else response


def seen_next(request: Request, name: str, notice: Notice | None, /, **parameters: object) -> Response:
    """Another page in answer to a form, so that reloading it sends nothing again."""
    response = RedirectResponse(address(request, name, **parameters), HTTPStatus.SEE_OTHER)
    return with_notice(request, response, notice) if notice else response
