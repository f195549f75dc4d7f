"""The live form of a bucket: keys numbered once, a window per key that goes on, so that a micro-batch costs what changed.

The structure is in the core (``live.hpp``, where the picture is); here are its bounds and its columns.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.chains import Chains
from sash.engine.layout import RowView
from sash.engine.query import Query, Rows, Sessions, Windows
from sash.engine.run import BEFORE_ALL, Run, key_columns
from sash.engine.shapes import Hops, Lookback
from sash.engine.types import value_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Live", "forced_form", "live_of"]

Array = np.ndarray[Any, Any]
FORMS = ("auto", "column", "array", "tree")
_FORCED = "SASH_ENGINE_FORM"  # for tests: the one form that every bucket takes

# The live form is built where LIVE times as much is held as there is to do. It is given up where COLUMN times as much is to do as is held.
LIVE = COLUMN = 2


def forced_form() -> str:
    """Give the form that the environment asks for: "column", "array", "tree", else "auto"."""
    form = os.environ.get(_FORCED, "auto")
    if form not in FORMS:
        raise ValueError(f"{_FORCED}={form!r} is not one of {', '.join(FORMS)}.")
    return form


def live_of(query: Query, form: str = "auto") -> Live | None:
    """Make an empty live form for a query, None where it has none: partials that are longer than 144 words together, or
    that can't be combined before they are asked for, since the aggregation is not associative.
    """
    if not all(leaf.aggregation.associative for leaf in query.layout.leaves):
        return None
    try:
        return Live(query, form)
    except ValueError:  # rows too long
        return None


def _plan(query: Query) -> Any:
    windows, rolling = query.windows, query.rolling
    if isinstance(windows, Sessions):
        return _core.LivePlan.sessions(windows.gap)
    if isinstance(windows, Windows):
        if query.emit == "update":
            return _core.LivePlan.oldest(False, [], 0, 0)
        return _core.LivePlan.windows(*windows.in_panes, windows.each_range)
    assert rolling is not None
    apart = rolling.kept_rows > 0
    hops = [(p.period, p.hop) for _, p in rolling.lookbacks if isinstance(p, Hops)]
    if query.emit != "changed":
        return _core.LivePlan.oldest(apart, hops, rolling.hop, rolling.exact_from(rolling.delay - 1) if hops else 0)
    periods = [p for _, p in rolling.lookbacks if isinstance(p, int)]
    return _core.LivePlan.changes(apart, periods, rolling.delay, rolling.takes_left, rolling.takes_right, hops, rolling.hop)


class Live:
    """The entries of many keys, one window each."""

    def __init__(self, query: Query, form: str = "auto") -> None:
        self.query = query
        self._layout = query.layout
        leaves = self._layout.leaves
        # Where each leaf's partials are: among the words, or among the objects.
        self._words = [i for i, leaf in enumerate(leaves) if leaf.is_native]
        self._objects = [i for i, leaf in enumerate(leaves) if not leaf.is_native]
        self._chains = Chains([leaves[i].column for i in self._objects])
        python = (self._chains.combine, self._chains.move) if self._objects else ()
        self.core = _core.Live([leaves[i].column for i in self._words], _plan(query), form, *python)

    @property
    def keys(self) -> int:
        """How many keys hold an entry, or have rows that wait."""
        return int(self.core.keys)

    def __len__(self) -> int:
        return int(self.core.entries)

    def begin(self, closed: int) -> None:
        """Say that windows which end up to this pane are closed."""
        self.core.close_windows(closed)

    def insert(self, run: Run) -> tuple[Array, int]:
        """Insert the entries of a run; give the number of each of its keys, and that of its first row."""
        objects = None
        if self._objects:
            objects = self._chains.rows([run.columns[i] for i in self._objects], run.times.tolist())
        return self.core.insert(  # type: ignore[no-any-return]
            run.keys, run.starts, run.times, [run.columns[i] for i in self._words], objects
        )

    def wait(self, keys: Any, rows: Array) -> None:
        """Count rows that wait for their time, by key; a negative number takes back rows that wait no longer."""
        self.core.wait(self.core.number(keys), rows)

    def run(self) -> Run:
        """Give everything as a run. Cost: O(entries held)."""
        keys, starts, times, words = self.core.export()
        columns: list[Any] = [None] * len(self._layout.leaves)
        for i, column in zip(self._words, words, strict=True):
            columns[i] = column
        if self._objects:
            for i, objects in zip(self._objects, self._chains.columns_of(self.core.objects()), strict=True):
                columns[i] = objects
        return Run(self._layout, keys, starts, times, columns)

    def expire(self, oldest: int, exact: int | None = None, keep: int = 0, fold: bool = False) -> None:
        """Let go of what is before ``oldest``, but for the last ``keep`` rows of each key; what is before ``exact`` becomes hops."""
        self.core.expire(oldest, oldest if exact is None else exact, keep, fold)

    # --- answers

    def results(self, answers: Any, which: int = 0) -> list[pa.Array]:
        """Lower the answers of the last call, of several those with this number: one Arrow column per aggregation."""
        leaves = self._layout.leaves
        parts: list[Any] = [None] * len(leaves)
        for place, i in enumerate(self._words):
            parts[i] = leaves[i].arrow(self.core.lower(answers, place, leaves[i].how))
        if self._objects:
            for i, values in zip(self._objects, self._chains.results(self.core.objects(which)), strict=True):
                parts[i] = value_of(leaves[i].type, values)
        return self._layout.assemble(parts)

    def close(self, upto: int) -> tuple[list[pa.Array], Array, Array, list[pa.Array]] | None:
        """Close windows that end up to a pane, or sessions that are over: key columns, starts, ends, results.

        Of several ranges, results come aggregation by aggregation.
        """
        import pyarrow as pa

        close = self.core.close_sessions if isinstance(self.query.windows, Sessions) else self.core.close_windows
        keys, key, starts, ends, answers = close(upto)
        if not len(key):
            return None
        columns = key_columns(self._layout, keys)
        if len(keys) < len(key):
            columns = [column.take(pa.array(key)) for column in columns]
        return columns, starts, ends, self._by_aggregation([self.results(each, i) for i, each in enumerate(answers)])

    def between(self, ids: Array, ends: Array) -> list[pa.Array]:
        """Give the results of the windows of these keys that end there (in panes)."""
        windows = self.query.windows
        assert isinstance(windows, Windows)
        return self._by_aggregation([self.results(self.core.query(ids, None, ends - r, ends - 1, False)) for r in windows.each_range])

    def _by_aggregation(self, each: list[list[pa.Array]]) -> list[pa.Array]:
        return [results[i] for i in range(len(self.query.aggs)) for results in each]

    def lookbacks(self, run: Run, ids: Array, first: int, places: Array) -> list[pa.Array]:
        """Give all look-backs of rows just inserted (row i is entry places[i] of the run), aggregation by aggregation."""
        rolling = self.query.rolling
        assert rolling is not None
        rows = np.empty(len(places), np.int32)
        rows[places] = np.arange(len(places), dtype=np.int32)
        key = np.repeat(ids, np.diff(run.starts))
        by_lookback = []
        for _, period in rolling.lookbacks:
            if isinstance(period, Rows):
                # Closed right, n rows with the row itself; left, n rows before it.
                length = period.n - 1 + rolling.takes_left + rolling.takes_right
                answers = self.core.query_rows(key, rows, run.times, first, length, rolling.takes_right)
            else:
                answers = self.core.query(key, rows, *self._bounds(period, run.times), period is None)
            by_lookback.append(self.results(answers))
        return self._by_aggregation(by_lookback)

    def as_of(self, ids: Array, time: int) -> list[pa.Array]:
        """Give all look-backs of these keys at a time where no row needs to be, aggregation by aggregation."""
        rolling = self.query.rolling
        assert rolling is not None
        times = np.full(len(ids), time)
        by_lookback = []
        for _, period in rolling.lookbacks:
            if isinstance(period, Rows):
                answers = self.core.query_last(ids, period.n)
            else:
                answers = self.core.query(ids, None, *self._bounds(period, times), period is None)
            by_lookback.append(self.results(answers))
        return self._by_aggregation(by_lookback)

    def at_labels(self, labels: pa.RecordBatch) -> list[pa.Array]:
        """Give all look-backs at the times of labels, label by label; a key that is not held gets the results of an empty look-back."""
        view = RowView(self.query, labels)
        keys, ids = view.keys()
        rolling = self.query.rolling
        assert rolling is not None
        numbers = self.core.find(keys)[ids] if len(keys) else np.zeros(0, np.int32)
        by_lookback = []
        for _, period in rolling.lookbacks:
            if isinstance(period, Rows):
                ends = self._bounds(None, view.times)[1]
                answers = self.core.query_rows_upto(numbers, ends, period.n)
            else:
                answers = self.core.query(numbers, None, *self._bounds(period, view.times), period is None)
            by_lookback.append(self.results(answers))
        return self._by_aggregation(by_lookback)

    def _bounds(self, period: Lookback, times: Array) -> tuple[Array, Array]:
        rolling = self.query.rolling
        assert rolling is not None
        at = times - rolling.delay
        ends = at if rolling.takes_right else at - 1
        if period is None:
            return np.full(len(at), BEFORE_ALL), ends
        if isinstance(period, Hops):
            return (at - period.period) // period.hop * period.hop, ends
        assert isinstance(period, int)
        return at - period + (not rolling.takes_left), ends
