"""Stores that are held open: their wheels stay in memory, follow the stream, and are asked by one thread at a time.

A store has one lock. Whoever holds it may bring the wheels up to date and ask them, so that an answer is of one watermark. An
aggregation's wheels have a TileStore of their own: they are opened aside, in a thread, and put in place when they are complete. The
wheels of two aggregations may be at two watermarks for a moment; an answer is then of the smaller one, which both hold.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from sash.serve.limits import Deadline, Limits, Refused
from sash.wheel import KeyedWheels, TileStore, TileStoreError

__all__ = ["OpenStore", "View"]

T = TypeVar("T")

_PER_SLICE: Final = 32  # bytes in wheels, about, of a slice of numbers
_PER_OBJECT: Final = 400  # of one that Python holds
_FEW: Final = 16  # keys that are read from disk while the wheels of all are being opened, or where these are too large
_CACHED: Final = 256  # single keys whose wheels are kept
_READ: Final = 5_000_000  # slices that are read for one answer, at most


class View(NamedTuple):
    """A store at one watermark: what may be asked while its lock is held."""

    store: TileStore
    wheels: Mapping[str, KeyedWheels]
    first: int  # slices from here on ...
    complete: int  # ... up to here are complete, on the grain
    watermark: int
    upto: int  # where the wheels end: at `complete`, or where what is provisional does
    provisional: bool = False


class _Whole:
    """The wheels of one aggregation over all keys, with the store they are fed from."""

    def __init__(self, path: Path | str, aggs: Mapping[str, Any], name: str) -> None:
        self.store = TileStore(path, aggs)
        self.wheels = self.store.wheels(name)


class OpenStore:
    """A tile store by the name that requests know it by."""

    def __init__(self, name: str, place: str | Path | TileStore, limits: Limits) -> None:
        self.name = name
        self._limits = limits
        # One of its own, also where a TileStore was given: others may be using that one.
        self._store = TileStore(place.path, place.aggs) if isinstance(place, TileStore) else TileStore(place)
        self._aggs = self._store.aggs
        self._lock = threading.Lock()
        self._whole: dict[str, _Whole] = {}
        self._opening: dict[str, threading.Event] = {}
        self._failed: dict[str, BaseException] = {}
        self._single: OrderedDict[tuple[str, Any], KeyedWheels] = OrderedDict()
        self._open_wheels: dict[tuple[str, tuple[Any, ...] | None, int | None], KeyedWheels] = {}
        self._open_batch = -1
        self._keys: list[Any] | None = None
        self._looked = 0.0

    def said(self, error: BaseException) -> str:
        """What an error says, with the name of the store where it says its path."""
        return str(error).replace(str(self._store.path), f"the store {self.name!r}")

    # --- what there is

    @contextlib.contextmanager
    def facts(self, deadline: Deadline) -> Iterator[TileStore]:
        """The store itself, up to date; its lock is held meanwhile."""
        with self._locked(deadline):
            self._freshen(deadline)
            yield self._store

    def keys(self, deadline: Deadline) -> list[Any]:
        """The keys that have slices."""
        with self._locked(deadline):
            self._freshen(deadline)
            if self._keys is None:
                whole = next(iter(self._whole.values()), None)
                self._keys = self._reading(self._store.keys) if whole is None else whole.wheels.keys()
            return self._keys

    @property
    def memory(self) -> int:
        """The bytes of the wheels that are open."""
        return sum(whole.wheels.memory for whole in list(self._whole.values()))

    # --- what is asked

    @contextlib.contextmanager
    def view(self, names: Sequence[str], keys: Sequence[Any] | None, deadline: Deadline) -> Iterator[View]:
        """The wheels of some aggregations, that hold at least these keys, all of them where there are none; the lock is held."""
        while True:
            with self._locked(deadline):
                self._freshen(deadline)
                span = self._need_slices()
                waits = self._missing(names, keys)
                if any(name not in self._whole for name in names):
                    deadline.may_wait()
                if waits is None:
                    yield self._viewed(names, keys, span)
                    return
            if not waits.wait(min(deadline.left, self._limits.seconds / 2)):
                raise Refused(503, f"the store {self.name!r} is being opened. Ask again in a moment.", again=2)

    def _missing(self, names: Sequence[str], keys: Sequence[Any] | None) -> threading.Event | None:
        """What has to be waited for before these wheels can be asked: None where they are there or are quickly read."""
        waits = None
        for name in names:
            if name in self._whole:
                continue
            if (failed := self._failed.pop(name, None)) is not None:
                raise self._gone(failed)
            if self._fits(name):
                waits = self._open(name)
            elif keys is None or len(keys) > _FEW:
                raise Refused(
                    422,
                    f"the store {self.name!r} has {len(self._store):,} slices, too many to hold all keys in memory. "
                    f"Ask about up to {_FEW} keys, or start the server with more memory.",
                )
        return None if keys is not None and len(keys) <= _FEW and len(self._store) > 1_000_000 else waits

    def _fits(self, name: str) -> bool:
        plain = self._store.columns.get(name, "") not in ("binary", "large_binary")
        return len(self._store) * (_PER_SLICE if plain else _PER_OBJECT) + self.memory <= self._limits.memory

    def _open(self, name: str) -> threading.Event:
        """Open wheels of all keys aside; the event tells that they are in place."""
        if (done := self._opening.get(name)) is not None:
            return done
        done = self._opening[name] = threading.Event()

        def work() -> None:
            made: _Whole | None = None
            try:
                made = _Whole(self._store.path, self._aggs, name)
            except BaseException as error:
                self._failed[name] = error
            with self._lock:
                if made is not None and self._opening.get(name) is done:
                    self._whole[name] = made
                    self._single.clear()
                    self._looked = 0.0  # the store itself is brought up to what these wheels have seen
                self._opening.pop(name, None)
            done.set()

        threading.Thread(target=work, name=f"opens {self.name} {name}", daemon=True).start()
        return done

    def _viewed(self, names: Sequence[str], keys: Sequence[Any] | None, span: tuple[int, int]) -> View:
        store = self._store
        found = {name: self._whole[name].wheels if name in self._whole else self._few(name, keys or ()) for name in names}
        assert store.watermark is not None
        whole = store.watermark // store.grain * store.grain
        first = max([store.kept_from if store.kept_from is not None else span[0], *(w.start for w in found.values())])
        complete = min([whole, *(w.watermark for w in found.values())])
        watermark = store.watermark if complete == whole else complete
        return View(store, found, first, complete, watermark, complete)

    @contextlib.contextmanager
    def open_view(self, names: Sequence[str], keys: Sequence[Any] | None, since: int | None, deadline: Deadline) -> Iterator[View]:
        """The same with what is not final yet, from `since` on: read from disk, and kept until the next batch; the lock is held."""
        deadline.may_wait()
        with self._locked(deadline):
            self._freshen(deadline)
            store = self._store
            if store.provisional is None:
                self._need_slices()
            asked = None if keys is None else tuple(keys)
            while True:
                batch = store.batch
                found = {name: self._with_open(name, asked, since) for name in names}
                if store.batch == batch:  # reading may have met a newer one
                    break
            assert store.watermark is not None
            complete = store.watermark // store.grain * store.grain
            first = max(w.start for w in found.values())
            upto = min(w.watermark for w in found.values())
            yield View(store, found, first, min(complete, upto), store.watermark, upto, True)

    def _with_open(self, name: str, keys: tuple[Any, ...] | None, since: int | None) -> KeyedWheels:
        store, place = self._store, (name, keys, since)
        if self._open_batch != store.batch:
            self._open_wheels.clear()
            self._open_batch = store.batch
        if (found := self._open_wheels.get(place)) is not None:
            return found
        if keys is None or len(keys) > _FEW:
            span = store.span
            share = 1.0 if since is None or span is None else min(max((span[1] - since) / (span[1] - span[0]), 0.0), 1.0)
            if len(store) * share > _READ:
                raise Refused(
                    422,
                    f"what is provisional is added on disk to {int(len(store) * share):,} slices, more than {_READ:,}. "
                    f"Ask about up to {_FEW} keys, a shorter range, or without provisional.",
                )
        first = None if since is None else max(since, _first(store) // store.grain * store.grain)
        made = self._reading(lambda: store.wheels(name, keys=keys, start=first, provisional=True))
        if len(self._open_wheels) >= _CACHED:
            self._open_wheels.clear()
        self._open_wheels[place] = made
        return made

    def _few(self, name: str, keys: Sequence[Any]) -> KeyedWheels:
        """Wheels of a few keys, read from disk; those of single keys are kept until the store changes."""

        def read() -> KeyedWheels:
            return self._reading(lambda: TileStore(self._store.path, self._aggs).wheels(name, keys=keys))

        if len(keys) != 1:
            return read()
        place = (name, keys[0])
        found = self._single.get(place)
        if found is None:
            found = self._single[place] = read()
            while len(self._single) > _CACHED:
                self._single.popitem(last=False)
        self._single.move_to_end(place)
        return found

    # --- as the stream goes on

    @contextlib.contextmanager
    def _locked(self, deadline: Deadline) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            deadline.may_wait()
            if not self._lock.acquire(timeout=deadline.left):
                raise Refused(503, f"the store {self.name!r} is busy. Ask again in a moment.", again=1)
        try:
            yield
        finally:
            self._lock.release()

    def _freshen(self, deadline: Deadline) -> None:
        """Take in what was written since; wheels that can't follow are let go, to be opened anew."""
        now = time.monotonic()
        if now - self._looked < self._limits.fresh:
            return
        deadline.may_wait()
        before, made = self._store.watermark, self._identity(self._store)
        try:
            changed = self._store.refresh()
        except Exception as error:
            self._reset()
            raise self._gone(error) from error
        if self._identity(self._store) != made or (
            before is not None and (self._store.watermark is None or self._store.watermark < before)
        ):
            self._reset()  # another store is in its place
            self._store = TileStore(self._store.path, self._aggs)
        elif changed:
            self._single.clear()
            self._keys = None
        for name, whole in list(self._whole.items()):
            if not self._follows(whole):
                del self._whole[name]
        self._looked = now

    def _follows(self, whole: _Whole) -> bool:
        """Bring wheels up to date; False where they must be opened anew: half of what they hold has expired, or reading failed."""
        try:
            whole.store.refresh()
        except Exception:
            return False
        kept, wheels = whole.store.kept_from, whole.wheels
        return kept is None or kept - wheels.start <= (wheels.watermark - wheels.start) // 2

    @staticmethod
    def _identity(store: TileStore) -> tuple[Any, ...]:
        return store.aggs, store.grain, store.key

    def _reset(self) -> None:
        self._whole.clear()
        self._opening.clear()
        self._single.clear()
        self._open_wheels.clear()
        self._keys = None
        self._looked = 0.0

    def _need_slices(self) -> tuple[int, int]:
        """From where to where there are slices; a store that has none yet is refused."""
        if self._store.watermark is None or (span := self._store.span) is None:
            raise Refused(409, f"the store {self.name!r} has no complete slice yet. Ask again when its stream's watermark has passed one.")
        return span

    def _reading(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except (TileStoreError, OSError) as error:
            raise self._gone(error) from error

    def _gone(self, error: BaseException) -> Refused:
        """What to say of a store that can't be read."""
        path = str(self._store.path)
        if "://" not in path and not os.path.isdir(path):
            return Refused(404, f"the store {self.name!r} is no longer there. Ask again when it is back.")
        return Refused(503, f"the store {self.name!r} can't be read: {self.said(error)}", again=5)


def _first(store: TileStore) -> int:
    """From where on there is anything to be asked."""
    span = store.span or store.provisional
    return store.kept_from if store.kept_from is not None else 0 if span is None else span[0]
