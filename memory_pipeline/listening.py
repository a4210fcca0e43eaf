"""Where a server listens: addresses of this machine, and whether they are free."""

from __future__ import annotations

import socket

from memory_pipeline.errors import InvalidInput

SOCKET_BYTES = 103
"""How long the path of a Unix socket may be: macOS allows so many bytes, Linux 107."""

_LAST_PORT = 65_535


def listening(host: str, port: int, *, options: str = "--host and --port") -> socket.socket:
    """A socket that holds an address; nothing is accepted before somebody listens on it.

    Args:
        host: a name or an address of this machine.
        port: 1 to 65535.
        options: what names others, for the message.

    Raises:
        InvalidInput: the port is in use or is none, or the address is not of this machine.
    """
    if not 0 < port <= _LAST_PORT:  # the system's own functions take it modulo 65,536
        option = options.rsplit(maxsplit=1)[-1]
        raise InvalidInput(f"there is no port {port}: name one of 1 to {_LAST_PORT} with {option}")
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        held = socket.socket(family, kind)
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that just stopped is no obstacle
            held.bind(address)
        except OSError:
            held.close()
            raise
    except OSError as error:
        raise InvalidInput(
            f"cannot listen on {host}, port {port} ({error.strerror}): name others with {options}"
        ) from None
    return held


def address(host: str, port: int) -> str:
    """What a browser is to open."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
