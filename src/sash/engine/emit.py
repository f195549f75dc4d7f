"""Buckets that tell more than final results: updates of open windows, rows at once, changes as time passes, sessions.

All of them hold what Bucket holds, in either of its forms; they differ in what they ask of it, and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core
from sash.engine.bucket import Bucket
from sash.engine.closings import Closings, without
from sash.engine.layout import RowView
from sash.engine.live import Live
from sash.engine.pending import concat
from sash.engine.query import FAR, FOREVER, Hops, Query, Rows, Sessions, Windows
from sash.engine.run import BEFORE_ALL, Run, key_columns
from sash.engine.stretches import window_bounds, window_results, window_rows
from sash.engine.types import from_integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["bucket_of"]

Array = np.ndarray[Any, Any]


def bucket_of(query: Query) -> type[Bucket]:
    """The class of the buckets of a query."""
    if isinstance(query.windows, Sessions):
        return SessionBucket
    return {"final": Bucket, "update": UpdateBucket, "event": EventBucket, "changed": ChangeBucket}[query.emit]


class UpdateBucket(Bucket):
    """Windows as they stand, whenever rows came for them, until the watermark has passed their end."""

    def _advance_windows(self, new: int) -> pa.RecordBatch | None:
        windows = self.query.windows
        assert isinstance(windows, Windows)
        first = windows.last_pane_end(self.watermark) + 1
        self._choose(self._work(0))
        fresh = self._came()
        out = None if fresh is None else self._touched(fresh, first)
        self.watermark = new
        self._let_go()
        return out

    def _touched(self, fresh: Run, first: int) -> pa.RecordBatch | None:
        """Add new slices to those held, and give the windows that contain one of them and end from `first` on (in panes)."""
        import pyarrow as pa

        windows = self.query.windows
        assert isinstance(windows, Windows)
        range_, slide = windows.in_panes
        begin, _, key, end = _core.window_stretches(fresh.starts, fresh.times, range_, slide, first, FAR)
        if self._live is not None:
            ids, _ = self._live.insert(fresh)
            keys, results = fresh.key_columns, self._live.between(ids[key], end)
        else:
            self._run, places = self._run.merge(fresh, self._combines)
            run, key = self._run, _owner(self._run, places[begin])
            stretches = (_find(run, key, end - range_), _find(run, key, end)) if len(end) else (key, key)
            keys, results = run.key_columns, window_results(run, stretches, end)
        if not len(end):
            return None
        return window_rows(self.query, [column.take(pa.array(key)) for column in keys], *window_bounds(windows, end), results)


class EventBucket(Bucket):
    """Give every row at once, late ones too, with look-backs of what has arrived.

    Rows that no later row on time can look back to are dropped.
    """

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self._rows: list[pa.RecordBatch] = []

    def _add_rows(self, batch: pa.RecordBatch) -> None:
        if self.watermark is not None:
            self.late += int((RowView(self.query, batch).times <= self.watermark).sum())
        self._rows.append(batch)

    def _advance_rolling(self, new: int) -> pa.RecordBatch | None:
        import pyarrow as pa

        batches, self._rows = self._rows, []
        out = None
        self._choose(sum(int(batch.num_rows) for batch in batches))  # which lets go of what the last watermark did not reach
        before, self.watermark = self.watermark, new
        if batches:
            rows = concat(batches)
            columns = [*rows.columns, *self._look_back(rows)]
            if self.query.late == "flag":
                late = np.zeros(rows.num_rows, bool) if before is None else RowView(self.query, rows).times <= before
                columns.append(pa.array(late))
            out = pa.record_batch(columns, schema=self.query.output_schema())
        self._let_go(always=True)
        return out


class ChangeBucket(Bucket):
    """The look-backs of every key as of the watermark, where they differ from those of the watermark before.

    The values told last are not stored: they are computed again from what is held, as of the last watermark. In the live form only
    those keys are asked for which rows came, or for which a row enters or leaves a look-back.
    """

    def _asked_from(self) -> int | None:
        # One unit more than for rows to come: the look-backs of the watermark itself are asked for again.
        return self.watermark if self.watermark in (None, FOREVER) else self.watermark - 1

    def _begin(self, live: Live, run: Run) -> None:
        ids, _ = live.insert(run)
        self._settle_keys(live, ids)

    def _follow(self, run: Run) -> None:
        if self._live is None:
            return super()._follow(run)
        ids, _ = self._live.insert(run)
        self._settle_keys(self._live, ids)
        return None

    def _followed(self) -> None:
        if self._live is None:
            self._run = self._kept(self._run)
        elif self.watermark is not None:
            self._settle_keys(self._live, self._live.core.due(self.watermark))

    def _settle_keys(self, live: Live, ids: Array) -> None:
        assert self.query.rolling is not None
        at = -FAR if self.watermark is None else self.watermark
        live.core.settle(ids, at, self._oldest(), self._exact(), self._kept_rows, self.query.rolling.whole_past)

    def _advance_rolling(self, new: int) -> pa.RecordBatch | None:
        final = self._take_final(new)
        runs = [run for run in (self._came(),) if run is not None]
        if final is not None:
            runs.append(self._entries(final)[0])
            self._store.added(runs[-1])
        out = self._changes(runs, new) if self._live is None else self._live_changes(self._live, runs, new)
        self._store.trim(self._oldest(), new, len(self._run) if self._live is None else len(self._live))
        return out

    def _live_changes(self, live: Live, runs: list[Run], new: int) -> pa.RecordBatch | None:
        ids = np.unique(np.concatenate([live.core.due(new), *(live.core.number(run.keys) for run in runs)]))
        told = live.as_of(ids, new if self.watermark is None else self.watermark)
        for run in runs:
            live.insert(run)
        now = live.as_of(ids, new)
        self.watermark = new
        same = np.ones(len(ids), bool)
        for before, after in zip(told, now, strict=True):
            same &= _equal(before, after)
        changed = np.flatnonzero(~same)
        out = self._told(key_columns(self._layout, live.core.table(ids[changed])), changed, now, new)
        self._settle_keys(live, ids)
        return out

    def _changes(self, runs: list[Run], new: int) -> pa.RecordBatch | None:
        import pyarrow as pa

        old_run, before = self._run, self.watermark
        place = np.arange(len(old_run), dtype=np.int64)  # of the old entries in the new run
        for run in runs:
            self._run, right = self._run.merge(run, combine=False)
            place = _complement(right, len(self._run))[place] if len(place) else place
        self.watermark = new
        out = None
        if len(self._run):
            now = self._values(self._run, new)
            told = self._values(old_run, before) if before is not None and len(old_run) else None
            changed = self._changed(now, told, old_run, place)
            keys = [column.take(pa.array(changed)) for column in self._run.key_columns]
            out = self._told(keys, changed, now, new)
        self._run = self._kept(self._run)
        return out

    def _told(self, keys: list[pa.Array], changed: Array, values: list[pa.Array], new: int) -> pa.RecordBatch | None:
        """The rows of the keys that changed, by their place in the values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(changed):
            return None
        time = from_integers(pa.array(np.full(len(changed), new)), self.query.schema.field(self.query.time).type)
        columns = [*keys, time, *(pc.take(column, pa.array(changed)) for column in values)]
        return pa.record_batch(columns, schema=self.query.output_schema())

    def _values(self, run: Run, at: int) -> list[pa.Array]:
        """The results of all look-backs of every key at a time, aggregation by aggregation."""
        rolling = self.query.rolling
        assert rolling is not None
        groups = run.groups()
        begin, stop = run.starts[:-1], run.starts[1:]
        at -= rolling.delay
        end = begin + _count(run, run.times <= at if rolling.takes_right else run.times < at)
        folded = run.times[np.minimum(begin, len(run) - 1)] == BEFORE_ALL
        by_lookback = []
        for _, period in rolling.lookbacks:
            if isinstance(period, Rows):
                start = np.maximum(begin + folded, stop - period.n)
                stretches = start, stop
            elif period is None:
                stretches = begin, end
            elif isinstance(period, Hops):
                stretches = begin + _count(run, run.times < period.begin(at)), end
            else:
                old = run.times < at - period if rolling.takes_left else run.times <= at - period
                stretches = begin + _count(run, old), end
            stretches = stretches[0], np.maximum(*stretches)
            by_lookback.append(list(run.layout.results(run.columns, stretches, groups, isinstance(period, Rows))))
        return [results[i] for i in range(len(self.query.aggs)) for results in by_lookback]

    def _changed(self, now: list[pa.Array], told: list[pa.Array] | None, old_run: Run, place: Array) -> Array:
        """The numbers of the keys whose values differ from those told last. A new key is compared with the values of an empty look-back."""
        nobody, rolling = np.zeros(1, np.int64), self.query.rolling
        assert rolling is not None
        empty = [column for column in self._run.layout.results(self._run.columns, (nobody, nobody)) for _ in rolling.lookbacks]
        first = np.zeros(len(self._run.keys), np.int64)
        differs = ~np.logical_and.reduce([_equal(column, nothing.take(_arrow(first))) for column, nothing in zip(now, empty, strict=True)])
        if told is not None:
            filled = np.flatnonzero(old_run.starts[1:] > old_run.starts[:-1])
            key = _owner(self._run, place[old_run.starts[filled]])
            same = np.ones(len(filled), bool)
            for new_column, old_column in zip(now, told, strict=True):
                same &= _equal(new_column.take(_arrow(key)), old_column.take(_arrow(filled)))
            differs[key] = ~same
        return np.flatnonzero(differs)


class SessionBucket(Bucket):
    """Sessions: the rows of a key that follow each other within a gap, when the watermark has passed the gap after the last.

    A time within the gap of both neighbours joins them, so entries stay apart until their session is over. A commit writes what came,
    and of the keys whose sessions are over, until when.
    """

    def __init__(self, query: Query) -> None:
        super().__init__(query)
        self._store.by_age = False

    def begin(self, past: Run, watermark: int) -> None:
        """Begin with the sessions that are open at a watermark."""
        self._run = past
        self._store.added(past)
        self.advance(watermark)

    def _kept(self, run: Run) -> Run:
        # The state is cut where sessions end, not by age; rows that come in are judged by age alone.
        assert self.query.windows is not None
        return run if run is self._run else run.keep(self.query.windows.oldest_pane(self.watermark))

    def _oldest(self) -> int:
        return -FAR

    @property
    def slices(self) -> int:
        """How many entries are held."""
        self._settle()
        return len(self._run) if self._live is None else len(self._live)

    @property
    def keys(self) -> int:
        """How many keys are held."""
        self._settle()
        return int(np.count_nonzero(self._run.starts[1:] > self._run.starts[:-1])) if self._live is None else self._live.keys

    def _sessions(self) -> tuple[Array, Array]:
        """The first and the last entry of every session of the run."""
        assert isinstance(self.query.windows, Sessions)
        run = self._run
        if not len(run):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        begins = np.ones(len(run), bool)
        begins[1:] = np.diff(run.times) > self.query.windows.gap
        begins[run.starts[:-1][run.starts[:-1] < len(run)]] = True
        first = np.flatnonzero(begins)
        return first, np.append(first[1:], len(run)) - 1

    def _advance_windows(self, new: int) -> pa.RecordBatch | None:
        import pyarrow as pa

        sessions = self.query.windows
        assert isinstance(sessions, Sessions)
        self._choose(self._work(0))
        self._settle()
        run, self.watermark = self._run, new
        if self._live is not None:
            closed = self._live.close(new)
            if closed is None:
                return None
            keys, starts, ends, results = closed
            self._store.closed(Closings.of(keys, ends - sessions.gap))
            return window_rows(self.query, keys, starts, ends, results)
        first, last = self._sessions()
        over = run.times[last] <= new - sessions.gap if len(last) else np.zeros(0, bool)
        if not over.any():
            return None
        key = pa.array(_owner(run, first[over]))
        results = run.layout.results(run.columns, (first[over], last[over] + 1))
        ends = run.times[last[over]] + sessions.gap
        out = window_rows(self.query, [column.take(key) for column in run.key_columns], run.times[first[over]], ends, results)
        self._store.closed(Closings.of([column.take(key) for column in run.key_columns], run.times[last[over]]))
        self._run = without(run, np.repeat(over, last - first + 1))
        return out


def _count(run: Run, true: Array) -> Array:
    """How many entries of each key a mask holds."""
    sums = np.zeros(len(run) + 1, np.int64)
    np.cumsum(true, out=sums[1:])
    return sums[run.starts[1:]] - sums[run.starts[:-1]]


def _find(run: Run, key: Array, pane: Array) -> Array:
    """The first entry of a key at or after a pane, for many of them: one search in (key, pane) pairs as single numbers."""
    low = int(min(run.times.min(), pane.min()))
    width = int(max(run.times.max(), pane.max())) - low + 2
    if width * (len(run.keys) + 1) >= 2**63:
        at = zip(key.tolist(), pane.tolist(), strict=True)
        bounds = run.starts.tolist()
        return np.array([bounds[k] + np.searchsorted(run.times[bounds[k] : bounds[k + 1]], p) for k, p in at], np.int64)
    pairs = np.repeat(np.arange(len(run.keys)), np.diff(run.starts)) * width + (run.times - low)
    return np.asarray(np.searchsorted(pairs, key.astype(np.int64) * width + (pane - low)))


def _owner(run: Run, places: Array) -> Array:
    """The key of each of these entries of a run, by number."""
    return np.asarray(np.searchsorted(run.starts, places, side="right") - 1)


def _complement(right: Array, size: int) -> Array:
    """The places that were not taken by what was merged in."""
    mine = np.ones(size, bool)
    mine[right] = False
    return np.flatnonzero(mine)


def _arrow(numbers: Array) -> pa.Array:
    import pyarrow as pa

    return pa.array(numbers)


def _equal(a: pa.Array, b: pa.Array) -> Array:
    """Where two columns hold the same, two nulls and two NaNs included."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(a.type):
        return np.fromiter((x == y for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)), bool, len(a))
    same = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
    missing = pc.and_(a.is_null(nan_is_null=True), b.is_null(nan_is_null=True)).to_numpy(zero_copy_only=False)
    kind = (a.is_null().to_numpy(zero_copy_only=False)) == (b.is_null().to_numpy(zero_copy_only=False))
    return np.asarray(same | (missing & kind))
