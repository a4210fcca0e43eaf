"""Takes secrets out of what is said, whoever said it: drivers quote what they were given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from memory_pipeline.errors import CREDENTIALS, MASKED
from memory_pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class Masker:
    """Replaces secrets of the settings in a text, the longest first."""

    secrets: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """For the secrets of these settings, and the passwords of their URLs."""
        found = {form for _, value in settings for secret in _secrets(value) for form in _forms(secret)}
        return cls(tuple(sorted(filter(None, found), key=lambda form: (-len(form), form))))

    def __call__(self, text: str) -> str:
        """The text without them."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return CREDENTIALS.sub(MASKED, text)


def _secrets(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, dict):
        for each in value.values():
            yield from _secrets(each)


def _forms(secret: str) -> Iterator[str]:
    """The secret, and the password in it, as it is written in a URL and as it is."""
    from sqlalchemy import make_url  # noqa: PLC0415  # only where a secret is set
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415  # likewise

    yield secret
    try:
        password = make_url(secret).password
        written = urlsplit(secret).password
    except (ArgumentError, ValueError):  # it is no URL
        return
    for form in (str(password or ""), written or ""):
        yield from (form, quote(form, safe=""))
