"""An issuer of tokens: its keys, in a file or served as issuers do, and tokens of every kind, forged ones among them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.web.identity import IssuedTokens

ISSUER, AUDIENCE = "https://issuer.example", "memory"


class Key:
    """A key of the issuer, by its name; `public` is what it gives away of it."""

    def __init__(self, kid: str = "one", **said: str) -> None:
        self.kid = kid
        self.private: EllipticCurvePrivateKey = generate_private_key(SECP256R1())
        shown = jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        self.public: dict[str, Any] = {**shown, "kid": kid, "use": "sig", "alg": "ES256", **said}

    @property
    def pem(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def token(self, *, kid: str | None = None, without: str = "", **claims: Any) -> str:
        """A token that is fine but for what is given, and for the claim that it is to be without."""
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "exp": int(time.time()) + 600, **claims}
        said.pop(without, None)
        return jwt.encode(said, self.private, algorithm="ES256", headers={"kid": kid or self.kid})


def key_set(*keys: Key) -> str:
    return json.dumps({"keys": [key.public for key in keys]})


def settings_of(directory: Path, keys: str, **others: Any) -> Settings:
    given = {"home": directory, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, "jwt_keys": keys, **others}
    return load_settings(_env_file=None, **given)


def issued_by(directory: Path, *keys: Key, **others: Any) -> IssuedTokens:
    """Takes the tokens of an issuer whose keys are in a file."""
    file = directory / "keys.json"
    file.write_text(key_set(*keys))
    return IssuedTokens(settings_of(directory, str(file), **others))


@dataclass
class ServedKeys:
    """What an issuer's address answers; `asked` counts how often it was asked."""

    body: str
    status: int = 200
    asked: int = 0
    address: str = ""
    server: ThreadingHTTPServer | None = field(default=None, repr=False)

    def away(self) -> None:
        """Answer no more."""
        assert self.server
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def serving(*keys: Key) -> Iterator[ServedKeys]:
    """The keys at an address, until the block ends."""
    served = ServedKeys(key_set(*keys))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked += 1
            self.send_response(served.status)
            self.end_headers()
            self.wfile.write(served.body.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.server, served.address = server, f"http://127.0.0.1:{server.server_port}/keys"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield served
        server.shutdown()
