"""Which packages an extra of this one brings, for whatever cannot run without them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from memory_pipeline.errors import InvalidSettings

NEEDED: Mapping[str, tuple[str, ...]] = {
    "pipeline": ("dagster", "dagster_postgres", "dagster_webserver", "alembic", "psutil"),
    "web": (
        *("fastapi", "itsdangerous", "jinja2", "jwt", "limits", "markdown_it", "nh3"),
        *("prometheus_client", "python_multipart", "uvicorn"),
    ),
}


def require(*extras: str) -> None:
    """Refuse to go on without what some extras bring.

    Raises:
        InvalidSettings: naming what is not installed, and how to install it.
    """
    missing = [name for extra in extras for name in NEEDED[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSettings(
            f"{', '.join(missing)} not installed: run `pip install 'memory-pipeline[{','.join(extras)}]'`"
        )
