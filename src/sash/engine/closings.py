"""Which sessions are over: for each key, the last time that is gone. So a commit tells what left, and does not write what stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core, codec
from sash.engine.query import FAR
from sash.engine.run import BEFORE_ALL, Run

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Closings", "without"]

Array = np.ndarray[Any, Any]


@dataclass
class Closings:
    """Keys, and the last time of each that is gone. A row that comes later is younger: it was not late when its session was over."""

    keys: Any
    times: Array

    @classmethod
    def of(cls, key_columns: list[pa.Array], times: Array) -> Closings:
        """The last times of sessions that are over; a key may have several."""
        keys, ids = _core.encode_keys(key_columns, len(times))
        last = np.full(len(keys), -FAR)
        np.maximum.at(last, ids, times)
        return cls(keys, last)

    def merge(self, other: Closings) -> Closings:
        """Both as one: of each key the later time."""
        keys, starts, times, _, _ = _core.merge_runs(*self._entries(), *other._entries(), False, BEFORE_ALL)
        return Closings(keys, times[starts[1:] - 1])

    def apply(self, run: Run) -> Run:
        """What is left of a run."""
        if not len(run) or not len(self.keys):
            return run
        # The run first: its entries of a closing's very time lie before it.
        _, starts, times, theirs, mine = _core.merge_runs(run.keys, run.starts, run.times, *self._entries(), False, BEFORE_ALL)
        begin = starts[np.searchsorted(starts, mine, side="right") - 1]
        edges = np.zeros(len(times) + 1, np.int64)
        edges[begin] = 1
        edges[mine + 1] -= 1  # which may be where another key begins
        gone = np.cumsum(edges)[:-1] > 0  # from the beginning of a key up to its closing
        return without(run, gone[theirs])

    def _entries(self) -> tuple[Any, Array, Array]:
        return self.keys, np.arange(len(self.keys) + 1), self.times

    def pack(self) -> bytes:
        """Write them."""
        return codec.encode((len(self.keys), self.keys.pack(0, len(self.keys)), _core.pack_words(self.times)))

    @classmethod
    def unpack(cls, data: bytes) -> Closings:
        """Read what ``pack`` wrote."""
        n, keys, times = codec.decode(data)
        return cls(_core.KeyTable.unpack(keys, n), _core.unpack_words(times, n))


def without(run: Run, gone: Array) -> Run:
    """A run without some entries, which are the beginning of their keys."""
    # They get a time before all others, and the run is cut there.
    times = np.where(gone, -FAR, run.times)
    keys, starts, kept, places = _core.keep_entries(run.keys, run.starts, times, -FAR + 1, 0, False, -1)
    left = [leaf.column.gather([column], [places], len(kept)) for leaf, column in zip(run.layout.leaves, run.columns, strict=True)]
    return Run(run.layout, keys, starts, kept, left)
