"""Puts the web together: what stands before every request, the pages, the HTTP interface, and the errors' answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from memory_pipeline.archive.database import CONNECTIONS
from memory_pipeline.web import api, health, pages
from memory_pipeline.web.failures import handle_failures
from memory_pipeline.web.observing import Observed
from memory_pipeline.web.protection import Headed, Heads, Limited, Sized

if TYPE_CHECKING:
    from memory_pipeline.web.services import Services

# A request works in a thread, and there are fewer than the archive has connections: more requests wait here for as long
# as it takes, in their order, and not for a connection, whose wait ends in an error. More threads would make none of
# them faster, since a process computes one thing at a time. What is left is for looks at the archive's state.
_THREADS = CONNECTIONS - 4
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DESCRIPTION = """Memory cards of a text-to-SQL assistant: recall for readers, everything else for administrators.

Every request names its workspace and carries a bearer token. Errors have one shape, `{"error": {"kind", "message"}}`,
with further fields by kind. An edit answers whether it is `saved` and whether it is `recallable`: with the index away
it is saved all the same, and `reason` says what it waits for."""


def create_app(services: Services) -> FastAPI:
    """The web application over some services, which stay open when it ends."""
    app = _Described(
        title="memory-pipeline",
        version=version("memory-pipeline"),
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its pages load scripts from another host
        redoc_url=None,
        middleware=_middleware(services),
        lifespan=_with_few_threads,
    )
    app.state.services = services
    app.state.pages = pages.router
    handle_failures(app)
    app.include_router(health.router, include_in_schema=False)
    app.include_router(api.router)
    app.include_router(pages.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    return app


class _Described(FastAPI):
    """The application, whose description names no answer that it does not give."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description. What FastAPI itself would refuse with 422 is answered as 400; see `failures`."""
        said = super().openapi()
        for operations in said["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        for unused in ("HTTPValidationError", "ValidationError"):
            said["components"]["schemas"].pop(unused, None)
        return said


@asynccontextmanager
async def _with_few_threads(_: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = _THREADS
    yield


def _middleware(services: Services) -> list[Middleware]:
    """What stands before every request, the outermost first."""
    settings = services.runtime.settings
    return [
        Middleware(Headed),  # around all, for answers to errors too
        Middleware(Observed, metrics=services.metrics),
        # A name that leads to this address and is another's would let that other's pages read ours.
        Middleware(TrustedHostMiddleware, allowed_hosts=[*_LOOPBACK, *settings.web_hosts], www_redirect=False),
        Middleware(Limited, per_minute=settings.web_requests_per_minute),
        Middleware(Sized, largest=settings.web_largest_body),
        Middleware(Heads),
    ]
