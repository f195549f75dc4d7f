"""What one request may ask for, and how a request is refused."""

from __future__ import annotations

import dataclasses
import time

from sash.errors import SashError
from sash.time import MICROS

__all__ = ["Deadline", "Limits", "NotAtOnce", "Refused"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """The most that one request may take; the page and the OpenAPI description tell them."""

    keys: int = 1_000  # in one question
    steps: int = 5_000  # of a range
    lookbacks: int = 32
    cells: int = 200_000  # values of one answer
    range: int = 3_660 * MICROS["d"]  # from the first to the last time, in microseconds
    text: int = 300  # characters of a parameter
    body: int = 1 << 20  # bytes
    seconds: float = 5.0  # from the moment a request is taken
    memory: int = 4 << 30  # bytes of wheels that hold all keys; larger stores are read key by key
    fresh: float = 0.2  # seconds for which a look at a store's manifest holds


class Refused(SashError):
    """A request that gets no answer: its status, and a sentence of value, rule and fix."""

    def __init__(self, status: int, sentence: str, *, again: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.again = again  # seconds after which it may work


class NotAtOnce(SashError):
    """An answer that can't be given without waiting: for a lock, or for a disk."""


class Deadline:
    """The time by which an answer must be there; one that does not wait at all raises NotAtOnce instead."""

    def __init__(self, seconds: float, *, waits: bool = True) -> None:
        self._seconds = seconds
        self._at = time.monotonic() + seconds
        self.waits = waits

    def at_once(self) -> Deadline:
        """The same time, without waiting."""
        made = Deadline(self._seconds, waits=False)
        made._at = self._at
        return made

    def may_wait(self) -> None:
        """Go on only where waiting is allowed."""
        if not self.waits:
            raise NotAtOnce

    @property
    def left(self) -> float:
        """How many seconds there are left, at least 0."""
        return max(self._at - time.monotonic(), 0.0)

    def check(self) -> None:
        """Refuse once the time is up."""
        if time.monotonic() > self._at:
            raise Refused(408, f"the answer takes longer than {self._seconds:g} s, the most a request may. Ask for less at a time.")
