"""Puts the web together: what stands before every request, the pages, the HTTP interface, and the errors' answers."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from memory_pipeline.web import api, pages
from memory_pipeline.web.failures import handle_failures
from memory_pipeline.web.protection import Headed, Limited, Sized

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings
    from memory_pipeline.web.services import Services

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DESCRIPTION = """Memory cards of a text-to-SQL assistant: recall for readers, everything else for administrators.

Every request names its workspace and carries a bearer token. Errors have one shape, `{"error": {"kind", "message"}}`,
with further fields by kind. An edit answers whether it is `saved` and whether it is `recallable`: with the index away
it is saved all the same, and `reason` says what it waits for."""


def create_app(services: Services) -> FastAPI:
    """The web application over some services, which stay open when it ends."""
    settings = services.runtime.settings
    app = FastAPI(
        title="memory-pipeline",
        version=version("memory-pipeline"),
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its pages load scripts from another host
        redoc_url=None,
        middleware=_middleware(settings),
    )
    app.state.services = services
    handle_failures(app)
    app.include_router(api.router)
    app.include_router(pages.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    return app


def _middleware(settings: Settings) -> list[Middleware]:
    """What stands before every request, the outermost first."""
    return [
        Middleware(Headed),
        # A name that leads to this address and is another's would let that other's pages read ours.
        Middleware(TrustedHostMiddleware, allowed_hosts=[*_LOOPBACK, *settings.web_hosts], www_redirect=False),
        Middleware(Limited, per_minute=settings.web_requests_per_minute),
        Middleware(Sized, largest=settings.web_largest_body),
    ]
