"""The way in and out: signing in with a token, signing out, and choosing the workspace."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from memory_pipeline.web.identity import InvalidToken
from memory_pipeline.web.identity.sessions import COOKIE
from memory_pipeline.web.pages.navigation import home
from memory_pipeline.web.pages.visiting import Sent, Visiting, page, refuse_foreign, seen_next
from memory_pipeline.web.services import services

router = APIRouter()


@router.get("/sign-in")
def sign_in(request: Request, to: str = "/") -> Response:
    """Ask for a token."""
    return page(request, None, "sign_in.html", to=_own(to), fault=None)


@router.post("/sign-in")
def signed_in(request: Request, token: Annotated[str, Form()] = "", to: Annotated[str, Form()] = "/") -> Response:
    """Take a token, and give a cookie for it."""
    refuse_foreign(request)
    try:
        identity = services(request).identify(token.strip(), request.client.host if request.client else "")
        cookie, until = services(request).sessions.begin(identity)
    except InvalidToken as error:
        return page(request, None, "sign_in.html", status=HTTPStatus.UNAUTHORIZED, to=_own(to), fault=str(error))
    response = RedirectResponse(_own(to), HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE, cookie, expires=until, httponly=True, samesite="lax", secure=request.url.scheme == "https"
    )
    return response


@router.post("/sign-out")
def sign_out(request: Request, _: Sent) -> Response:
    """Take the cookie back."""
    response = seen_next(request, "sign_in", None)
    response.delete_cookie(COOKIE)
    return response


@router.get("/")
def choose_workspace(request: Request, visiting: Visiting) -> Response:
    """The workspaces in which the visitor has a role."""
    found = services(request).curation(visiting.principal).workspaces()
    choices = [(name, role, home(request, name, role)) for name, role in found.items()]
    return page(request, visiting, "workspaces.html", choices=choices)


def _own(address: str) -> str:
    """The address where it is one of ours, and not one that leads a browser to another host."""
    ours = address.startswith("/") and not address.startswith("//") and "\\" not in address
    return address if ours and address.isprintable() else "/"
