"""Addresses whose pages are being built."""

from fastapi import APIRouter, HTTPException

router = APIRouter(prefix="/w/{workspace}")


def _soon() -> None:
    raise HTTPException(404)


for name, path in {
    "overview": "/overview",
    "sessions": "/sessions", "session": "/sessions/{session_id}", "recall": "/recall",
}.items():  # fmt: skip
    router.add_api_route(path, _soon, name=name, methods=["GET"])
