"""What those ask who watch over the process, without a token: whether it lives, is ready, and its figures."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from memory_pipeline.web.services import services

router = APIRouter()
_THREADS = 4  # beside those of requests: whoever asks how busy it is does not queue behind them
_outside_the_queue = partial(to_thread.run_sync, limiter=CapacityLimiter(_THREADS))


@router.get("/health")
async def health() -> Response:
    """Say that the process answers."""
    return JSONResponse({"alive": True})


@router.get("/ready")
async def ready(request: Request) -> Response:
    """Say whether there is an archive to answer from; without index or model it answers in part."""
    faults = await _outside_the_queue(services(request).standing.faults)
    wrong = {name: fault for name, fault in faults.items() if fault}
    archive = wrong.pop("archive", None)
    body = {"ready": archive is None, "wrong": {"archive": archive} if archive else {}, "degraded": wrong}
    return JSONResponse(body, HTTPStatus.SERVICE_UNAVAILABLE if archive else HTTPStatus.OK)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    shown = await _outside_the_queue(services(request).metrics.exposition)
    return Response(shown, media_type=CONTENT_TYPE_LATEST)
