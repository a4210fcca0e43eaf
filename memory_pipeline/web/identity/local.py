"""The token of an embedded set-up: made at the first start, kept where nobody else reads it, and shown once."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Self

from memory_pipeline.archive.grants import Principal
from memory_pipeline.errors import InvalidSettings
from memory_pipeline.web.identity.authority import Identity, InvalidToken

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings

_FILE = "administrator.token"
_OWNER_ALONE = 0o600
_BYTES = 32
_OTHERS = 0o077


class LocalToken:
    """The one token of a home. Who has it acts as the principal whom the settings name, as on the command line.

    Attributes:
        token: the token.
        new: whether it was made just now, and is to be shown.
    """

    def __init__(self, token: str, principal: str, *, new: bool = False) -> None:
        self.token, self.new = token, new
        self._principal = Principal.of(principal)

    @classmethod
    def of_home(cls, settings: Settings) -> Self:
        """The token of the settings' home, made where there is none.

        Raises:
            InvalidSettings: its file cannot be made or read, or others could read it.
        """
        path = cls.place(settings)
        try:
            token = _read(path)
            new = token is None
            return cls(token or _made(path), settings.acting_principal, new=new)
        except OSError as error:
            raise InvalidSettings(f"the local token {path} cannot be used ({error.strerror})") from None

    @classmethod
    def check(cls, settings: Settings) -> bool:
        """Whether the settings' home has a token already.

        Raises:
            InvalidSettings: it has, and its file holds none, or others could read it.
            OSError: its file cannot be read.
        """
        return _read(cls.place(settings)) is not None

    @staticmethod
    def place(settings: Settings) -> Path:
        """The file of the token of the settings' home."""
        return settings.home / _FILE

    def identify(self, token: str) -> Identity:
        """See `Authority.identify`."""
        if not hmac.compare_digest(_digest(token), _digest(self.token)):
            raise InvalidToken(f"this is not the token of this home: it stands in its file {_FILE}")
        return Identity(self._principal)

    @property
    def secret(self) -> bytes:
        """What signs cookies: with the token, they become invalid too."""
        return hmac.digest(self.token.encode(), b"memory-pipeline cookies", "sha256")


def _read(path: Path) -> str | None:
    """The token in a file, None where there is no file."""
    try:
        with path.open(encoding="ascii") as file:
            mode, token = os.fstat(file.fileno()).st_mode, file.read().strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        token, mode = "", 0
    if mode & _OTHERS:
        raise InvalidSettings(f"others may have read {path}: delete it, and the next start makes a new token")
    if not token:
        raise InvalidSettings(f"{path} holds no token: delete it, and the next start makes one")
    return token


def _made(path: Path) -> str:
    token = secrets.token_urlsafe(_BYTES)
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)  # and not over the token of another process that starts at the same moment
    except FileExistsError:
        return _read(path) or _made(path)
    finally:
        aside.unlink()
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
