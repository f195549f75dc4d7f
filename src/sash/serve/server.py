"""An application on an address: in the foreground, or beside a running pipeline. Other machines reach it only with a token."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sash.errors import DefinitionError, missing_extra
from sash.serve.guard import LOOPBACK

__all__ = ["Address", "beside", "foreground", "tokens"]


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str, port: int) -> Address:
        """Read HOST:PORT, a PORT alone, or a HOST alone.

        >>> Address.read("9000", 8000), Address.read("[::1]:80", 8000), Address.read("0.0.0.0", 8000)
        (Address(host='127.0.0.1', port=9000), Address(host='::1', port=80), Address(host='0.0.0.0', port=8000))
        """
        if text.isdecimal():
            host, number = LOOPBACK[1], text
        else:
            host, colon, number = text.rpartition(":")
            if not colon or (":" in host and not host.startswith("[")):
                host, number = text, str(port)
        if not number.isdecimal() or int(number) > 65535:
            raise DefinitionError(f"{text!r} is not an address. Write HOST:PORT, e.g. 127.0.0.1:8000, or a port alone.")
        return cls(host.strip("[]") or LOOPBACK[1], int(number))

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host in LOOPBACK:
            return True
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False

    @property
    def url(self) -> str:
        """How to open it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    def hosts(self) -> tuple[str, ...] | None:
        """The host names that requests may use: on loopback no others, so that no web site can ask through the user's browser."""
        return (*LOOPBACK, self.host) if self.loopback else None

    def require(self, token: list[str] | None) -> None:
        """Refuse to be reached from elsewhere without a token."""
        if not self.loopback and not token:
            raise DefinitionError(
                f"{self.host} can be reached from other machines, and there is no token. Add --token-file FILE with one token per line, "
                "or listen on 127.0.0.1."
            )


def tokens(given: str | None, file: Path | None) -> list[str] | None:
    """The tokens of the command line: one, or those of a file, one per line."""
    found = [] if given is None else [given]
    if file is not None:
        found += [line.strip() for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]
        if not found:
            raise DefinitionError(f"{file} holds no token. Write one per line.")
    for token in found:
        if len(token) < 8 or not token.isascii() or not token.isprintable() or " " in token:
            raise DefinitionError(
                "a token must be at least 8 visible ASCII characters without spaces. Make one: "
                "python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
    return found or None


def _server(app: Any, address: Address) -> tuple[Any, socket.socket]:
    """uvicorn's server and the socket it listens on: an address that is taken is known before anything else starts."""
    try:
        import uvicorn
    except ImportError:
        raise missing_extra("uvicorn", "serve") from None
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Named TCP: asyncio turns off the delay of small packets only on sockets that say so.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
    except OSError as error:
        listening.close()
        raise DefinitionError(
            f"{address.host}:{address.port} can't be listened on: {error.strerror}. Choose another with --listen."
        ) from None
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_keep_alive=30, limit_concurrency=512)
    return uvicorn.Server(config), listening


def foreground(app: Any, address: Address, ready: Any) -> None:
    """Serve until Ctrl-C; `ready` is told the address once it listens."""
    server, listening = _server(app, address)
    listening.listen(256)
    ready(Address(*listening.getsockname()[:2]))
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C has ended it in order
        server.run(sockets=[listening])


@contextlib.contextmanager
def beside(app: Any, address: Address) -> Iterator[Address]:
    """Serve in a thread while the body runs; gives the address it listens on."""
    server, listening = _server(app, address)
    listening.listen(256)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="sash serve", daemon=True)
    thread.start()
    try:
        yield Address(*listening.getsockname()[:2])
    finally:
        server.should_exit = True
        thread.join(timeout=5)
