"""What stands before every request: the token, the name of the host, the size of the body; and what is counted."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any, Final

from sash.serve.limits import Refused

__all__ = ["LOOPBACK", "OPEN", "SAFE_HEADERS", "Guard"]

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
OPEN: Final = ("/", "/healthz", "/openapi.json")  # the page itself holds no data; it asks for the token
SAFE_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
}


class Guard:
    """Decides whether a request is let in."""

    def __init__(self, token: str | Iterable[str] | None, hosts: Iterable[str] | None) -> None:
        tokens = [] if token is None else [token] if isinstance(token, str) else list(token)
        for one in tokens:
            if not isinstance(one, str) or not one or not one.isascii() or not one.isprintable() or " " in one:
                raise ValueError("a token must be visible ASCII characters without spaces. Make one with secrets.token_urlsafe().")
        if token is not None and not tokens:
            raise ValueError("there is no token. Give at least one, or None for none.")
        self._digests = [_digest(one.encode()) for one in tokens]
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)

    @property
    def needs_token(self) -> bool:
        """Whether requests must carry a token."""
        return bool(self._digests)

    def check(self, path: str, headers: dict[bytes, bytes]) -> None:
        """Refuse a request that is not meant for this server, or that lacks the token."""
        if self._hosts is not None and _host(headers.get(b"host", b"")) not in self._hosts:
            raise Refused(421, "this server answers to other host names. Ask it by the address that it printed.")
        if not self._digests or path in OPEN or path.startswith("/static/"):
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Digests of one length, all of them compared: neither length nor place of a difference shows in the time it takes.
        digest = _digest(given.strip())
        found = [hmac.compare_digest(digest, known) for known in self._digests]
        if not (any(found) and scheme.lower() == b"bearer"):
            raise Refused(401, "the request has no valid token. Send it as the header Authorization: Bearer TOKEN.")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _host(value: bytes) -> str:
    """The name in a Host header, without the port."""
    text: Any = value.decode("latin-1").strip().lower()
    if text.startswith("["):
        return str(text[1:].partition("]")[0])
    return str(text.rpartition(":")[0] if ":" in text and text.rpartition(":")[2].isdecimal() else text)
