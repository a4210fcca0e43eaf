"""Reads the bodies of requests: JSON as the library reads it elsewhere, which leaves nothing to guess."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from memory_pipeline import jsonl

_BAD_REQUEST = 400


def routes(**options: Any) -> APIRouter:
    """A router whose routes read bodies so."""
    return APIRouter(route_class=_JsonRoute, **options)


class _JsonRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answered = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await answered(_JsonRequest(request.scope, request.receive) if self.body_field else request)

        return answer


class _JsonRequest(Request):
    async def body(self) -> bytes:
        """The body, if it says that it is JSON: FastAPI would hand on any other as it is, and find fault with that."""
        said = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if said != "application/json" and not (said.startswith("application/") and said.endswith("+json")):
            raise _refused("has to be JSON, and the header `Content-Type: application/json` has to say so")
        return await super().body()

    async def json(self) -> object:
        try:
            return jsonl.parsed(await self.body())
        except ValueError as error:
            raise _refused(str(error)) from None


def _refused(fault: str) -> HTTPException:
    # FastAPI hides any other error in one of its own, which says nothing of what is wrong.
    return HTTPException(_BAD_REQUEST, f"the body {fault}")
