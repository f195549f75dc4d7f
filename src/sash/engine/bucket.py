"""The reduce side: the state of one bucket of keys, from blobs to final results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core, codec
from sash.engine.layout import Each, RowView, sortable
from sash.engine.query import FAR, FOREVER, Commit, Query, Rows, Windows
from sash.engine.run import BEFORE_ALL, Run
from sash.engine.slicer import unpack_rows
from sash.engine.store import Store
from sash.engine.types import from_integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Bucket", "lookback_columns", "window_batch", "window_batches"]

Array = np.ndarray[Any, Any]
NO_KEY = (-1, 0)
BATCH = 250_000  # rows, about, of one batch of output


def window_batch(
    run: Run,
    first_end: int,
    last_end: int,
    resumed: tuple[int, int] = NO_KEY,
    held: tuple[int, int] = NO_KEY,
    keys: tuple[int, int] | None = None,
) -> pa.RecordBatch | None:
    """The windows of a run, or of some of its keys, that end from first_end to last_end (in panes); None if there are none."""
    import pyarrow as pa

    query = run.layout.query
    windows = query.windows
    assert isinstance(windows, Windows)
    range_, slide = windows.range // windows.grain, windows.slide // windows.grain
    starts, ends, key, end = _core.window_stretches(run.starts, run.times, range_, slide, first_end, last_end, resumed, held, keys)
    if not len(key):
        return None
    schema = query.output_schema()
    chosen = pa.array(key)
    columns = [column.take(chosen) for column in run.key_columns]
    end = end * windows.grain + windows.offset
    type_ = schema.field("window_end").type
    columns += [from_integers(pa.array(end - windows.range), type_), from_integers(pa.array(end), type_)]
    columns += run.layout.results(run.columns, (starts, ends))
    if query.late == "flag":
        columns.append(pa.array(np.zeros(len(key), bool)))
    return pa.record_batch(columns, schema=schema)


def missed_batch(run: Run, last_end: int) -> pa.RecordBatch | None:
    """The windows that end up to last_end (in panes) and hold a slice of the run, without values: closed ones that missed rows."""
    import pyarrow as pa

    query = run.layout.query
    windows = query.windows
    assert isinstance(windows, Windows)
    range_, slide = windows.range // windows.grain, windows.slide // windows.grain
    _, _, key, end = _core.window_stretches(run.starts, run.times, range_, slide, -FAR, last_end, NO_KEY, NO_KEY)
    if not len(key):
        return None
    schema = query.output_schema()
    columns = [column.take(pa.array(key)) for column in run.key_columns]
    end = end * windows.grain + windows.offset
    type_ = schema.field("window_end").type
    columns += [from_integers(pa.array(end - windows.range), type_), from_integers(pa.array(end), type_)]
    columns += [pa.nulls(len(key), schema.field(name).type) for name, _ in query.aggs]
    return pa.record_batch([*columns, pa.array(np.ones(len(key), bool))], schema=schema)


def window_batches(
    run: Run, first_end: int, last_end: int, resumed: tuple[int, int] = NO_KEY, held: tuple[int, int] = NO_KEY
) -> Iterator[pa.RecordBatch]:
    """The same in batches of bounded size: some keys at a time, or a part of a long key."""
    windows = run.layout.query.windows
    assert isinstance(windows, Windows)
    range_, slide = windows.range // windows.grain, windows.slide // windows.grain
    filled = run.starts[1:] > run.starts[:-1]
    oldest, newest = np.zeros(len(filled), np.int64), np.full(len(filled), -1)
    oldest[filled], newest[filled] = run.times[run.starts[:-1][filled]], run.times[run.starts[1:][filled] - 1]
    # No more windows of a key than from its first slice to its last, nor than its slices are in.
    span = np.minimum(newest + range_, last_end) - np.maximum(oldest, first_end)
    most = np.minimum(np.maximum(span // slide + 2, 0), np.diff(run.starts) * (range_ // slide + 1))
    total = np.concatenate([[0], np.cumsum(most)])
    first = 0
    while first < len(filled):
        last = max(first + 1, int(np.searchsorted(total, total[first] + BATCH, side="right")) - 1)
        stretches = [(first_end, last_end)]
        if total[last] - total[first] > 4 * BATCH and resumed == NO_KEY == held:
            # Every part starts anew with a whole range of slices, so it must be longer than one.
            step = max(BATCH, 4 * (range_ // slide)) * slide
            low, high = max(first_end, int(oldest[first])), min(last_end, int(newest[first]) + range_)
            stretches = [(end, min(end + step - 1, high)) for end in range(low, high + 1, step)]
        for low, high in stretches:
            batch = window_batch(run, low, high, resumed, held, (first, last))
            if batch is not None:
                yield batch
        first = last


def lookback_columns(run: Run, entries: Array, places: Array, each: Each | None = None) -> list[pa.Array]:
    """The results of all look-backs of these entries of a run, row by row (row i is entry places[i]), aggregation by aggregation.

    With ``each``, the map of a pool of threads, all of its cores work on one run.
    """

    query = run.layout.query
    rolling = query.rolling
    assert rolling is not None
    groups = run.groups()
    rows = np.empty(len(places), np.int32)
    rows[places] = np.arange(len(places), dtype=np.int32)
    periods = [period for _, period in rolling.lookbacks]
    by_lookback = []
    for period, stretches in zip(periods, (each or map)(lambda period: _lookback_stretches(run, entries, period), periods), strict=True):
        by_rows = isinstance(period, Rows)
        by_lookback.append(list(run.layout.results(run.columns, stretches, groups, by_rows, rows, each)))
    return [results[i] for i in range(len(query.aggs)) for results in by_lookback]


def _lookback_stretches(run: Run, entries: Array, period: int | Rows | None) -> tuple[Array, Array]:
    rolling = run.layout.query.rolling
    assert rolling is not None
    unit = "rows" if isinstance(period, Rows) else "all" if period is None else "time"
    length = period.n if isinstance(period, Rows) else period or 0
    starts, ends = _core.lookback_stretches(
        run.starts, run.times, entries, unit, length + rolling.delay, rolling.takes_left, rolling.takes_right
    )
    if rolling.delay:  # up to where a look-back as long as the delay would begin
        ends = _core.lookback_stretches(run.starts, run.times, entries, "time", rolling.delay, not rolling.takes_right, True)[0]
        ends = np.maximum(starts, ends)
    return starts, ends


def row_ties(query: Query, batch: pa.RecordBatch) -> list[Array]:
    """What orders rows of equal time where look-backs count rows: the tie column, the aggregated ones, then all others."""
    assert query.rolling is not None
    if not query.rolling.kept_rows:
        return []
    names = [*([query.tie] if query.tie else []), *query.value_columns, *query.schema.names]
    return [sortable(batch.column(name)) for name in dict.fromkeys(names) if name not in (query.time, *query.keys)]


class Bucket:
    """The state of one bucket: ``add`` what was packed, ``advance`` the watermark, ``commit`` what changed.

    Windows: a run of slices per key and pane. Look-backs: the rows that are not final, as they came, and a run of
    those that are, for as long as some look-back reaches them.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.late = 0
        self.watermark: int | None = None
        self._layout = query.layout
        self._run = Run.empty(self._layout)
        self._fresh: list[Run] = []  # not yet merged into the run
        self._pending: list[pa.RecordBatch] = []
        self._flagged: list[pa.RecordBatch] = []
        self._missed: list[Run] = []  # with late="flag", slices of the last additions: some may be for closed windows
        self._store = Store(query)

    @classmethod
    def load(cls, query: Query, meta: bytes, blobs: Mapping[int, bytes]) -> Bucket:
        """Read a stored state; ValueError naming what changed if it is another definition's."""
        stored = codec.decode(codec.unseal("bucket", None, meta))
        query.check_definition(stored["definition"])
        bucket = cls(query)
        bucket.watermark, bucket.late = stored["watermark"], stored["late"]
        runs, bucket._pending, bucket._flagged = bucket._store.load(stored, blobs, bucket._oldest(), bucket.watermark)
        oldest = BEFORE_ALL if query.windows is None else bucket._oldest()
        for run in sorted(runs, key=len):  # small ones first: the largest is copied once
            bucket._run, _ = bucket._run.merge(run, bucket._combines, oldest)
        bucket._run = bucket._kept(bucket._run)
        return bucket

    # --- what is held

    @property
    def keys(self) -> int:
        """How many keys are held."""
        self._settle()
        rolling, run = self.query.rolling, self._run
        if rolling is not None and (rolling.kept_rows or rolling.whole_past):
            held = len(run.keys)
        else:
            filled = run.starts[1:] > run.starts[:-1]
            held = int(np.count_nonzero(run.times[run.starts[1:][filled] - 1] >= self._oldest()))
        if not self._pending:
            return held
        tables = [RowView(self.query, batch).keys()[0] for batch in self._pending]
        return len(reduce(_union, [self._kept(run).keys, *tables]))

    @property
    def slices(self) -> int:
        """How many slices, and rows that are not final, are held."""
        self._settle()
        pending = sum(int(batch.num_rows) for batch in self._pending)
        if self.query.rolling is not None and self.query.rolling.kept_rows:
            return len(self._run) + pending
        return int(np.count_nonzero((self._run.times >= self._oldest()) | (self._run.times == BEFORE_ALL))) + pending

    @property
    def _combines(self) -> bool:
        return self.query.windows is not None

    def _oldest(self) -> int:
        """The oldest pane or time that can still matter."""
        if self.query.windows is not None:
            return self.query.windows.oldest_pane(self.watermark)
        assert self.query.rolling is not None
        return self.query.rolling.oldest_time(self.watermark)

    def _kept(self, run: Run) -> Run:
        rolling = self.query.rolling
        if rolling is None:
            return run.keep(self._oldest())
        return run.keep(self._oldest(), 0 if self.watermark == FOREVER else rolling.kept_rows, rolling.whole_past)

    def _settle(self) -> None:
        """Merge what was added into the run, and into what the next commit stores."""
        if not self._fresh:
            return
        fresh, self._fresh = sorted(self._fresh, key=len), []
        merged = fresh[0]
        for run in fresh[1:]:
            merged, _ = merged.merge(run, self._combines)
        self._store.added(merged)
        self._run, _ = self._run.merge(merged, self._combines)

    # --- rows in

    def add(self, blob: bytes) -> None:
        """Add what a Slicer packed; rows are late against the watermark of the last advance."""
        if not blob:
            return
        if (windows := self.query.windows) is not None:
            run, rows = Run.unpack(self._layout, codec.unseal("slices", self.query.fingerprint(), blob))
            if self.watermark is not None and rows is not None:
                self.late += int(rows[run.times < windows.closed_end(self.watermark)].sum())
                if self.query.late == "flag" and len(run):
                    self._missed.append(run)
                run = self._kept(run)
            self._fresh.append(run)
        else:
            self._add_rows(unpack_rows(self.query, blob))

    def _add_rows(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        if self.watermark is not None:
            late = RowView(self.query, batch).times <= self.watermark
            if late.any():
                self.late += int(late.sum())
                rows = batch.filter(pa.array(late))
                batch = batch.filter(pa.array(~late))
                if self.query.late == "accept":
                    self._fresh.append(self._entries(rows)[0])
                elif self.query.late == "flag":
                    self._flagged.append(rows)
        if batch.num_rows:
            self._pending.append(batch)
            self._store.pending(batch)

    def _entries(self, batch: pa.RecordBatch) -> tuple[Run, Array]:
        rows = RowView(self.query, batch)
        keys, ids = rows.keys()
        return Run.of_rows(self._layout, rows, keys, ids, row_ties(self.query, batch))

    # --- time

    def advance(self, watermark: int | None) -> list[pa.RecordBatch]:
        """Give everything that is final at this watermark, and drop what can't matter any more; None: all of it.

        Cost: O(slices held) for windows, O(1) combines per slice whatever range/slide is.
        """
        new = FOREVER if watermark is None else watermark
        if self.watermark is not None:
            new = max(new, self.watermark)
        missed = self._take_missed()
        out = self._advance_windows(new) if self.query.windows is not None else self._advance_rolling(new)
        return [batch for batch in (missed, out) if batch is not None]

    def _take_missed(self) -> pa.RecordBatch | None:
        """With late="flag": the closed windows that rows came too late for."""
        if not self._missed:
            return None
        assert isinstance(self.query.windows, Windows)
        merged, *more = self._missed
        self._missed = []
        for run in more:
            merged, _ = merged.merge(run, combine=True)
        return missed_batch(merged, self.query.windows.last_pane_end(self.watermark))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Give everything, as ``advance(None)`` does, but a batch at a time: the output of a batch job may be large."""
        windows = self.query.windows
        if type(self) is not Bucket or not isinstance(windows, Windows):
            yield from self.advance(None)
            self._run = Run.empty(self._layout)
            return
        self._settle()
        yield from window_batches(self._run, windows.last_pane_end(self.watermark) + 1, windows.last_pane_end(FOREVER))
        self.watermark, self._run = FOREVER, Run.empty(self._layout)

    def _advance_windows(self, new: int) -> pa.RecordBatch | None:
        windows = self.query.windows
        assert isinstance(windows, Windows)
        self._settle()
        last, first = windows.last_pane_end(new), windows.last_pane_end(self.watermark) + 1
        out = window_batch(self._run, first, last) if last >= first else None
        self.watermark = new
        # A pass over all slices, worth it where it frees something.
        if np.count_nonzero(self._run.times < self._oldest()) * 8 >= len(self._run):
            self._run = self._kept(self._run)
            self._store.trim(self._oldest(), new, len(self._run))
        return out

    def _advance_rolling(self, new: int) -> pa.RecordBatch | None:
        import pyarrow as pa

        if self._fresh:  # late rows that were accepted: in place before anything looks back on them
            self._settle()
            self._run = self._kept(self._run)
        final = self._take_final(new)
        flagged, self._flagged = self._flagged, []
        batches = []
        schema = self.query.output_schema()
        if final is not None:
            run, places = self._entries(final)
            self._run, entries = self._run.merge(run, combine=False)
            columns = [*final.columns, *lookback_columns(self._run, entries, places)]
            if self.query.late == "flag":
                columns.append(pa.array(np.zeros(len(places), bool)))
            batches.append(pa.record_batch(columns, schema=schema))
            self._store.added(run)
        self.watermark = new
        if final is not None or np.count_nonzero(self._run.times < self._oldest()) * 8 >= len(self._run) > 0:
            self._run = self._kept(self._run)
            self._store.trim(self._oldest(), new, len(self._run))
        for rows in flagged:
            missing = [pa.nulls(rows.num_rows, schema.field(name).type) for name in self.query.feature_names]
            batches.append(pa.record_batch([*rows.columns, *missing, pa.array(np.ones(rows.num_rows, bool))], schema=schema))
        return _one(batches)

    def _take_final(self, new: int) -> pa.RecordBatch | None:
        import pyarrow as pa

        final, pending = [], []
        for batch in self._pending:
            done = RowView(self.query, batch).times <= new
            if done.all():
                final.append(batch)
            elif not done.any():
                pending.append(batch)
            else:
                final.append(batch.filter(pa.array(done)))
                pending.append(batch.filter(pa.array(~done)))
        self._pending = pending
        return _one(final)

    def next_time(self) -> int | None:
        """Give the next watermark at which something becomes final."""
        if (windows := self.query.windows) is None:
            return min((int(RowView(self.query, batch).times.min()) for batch in self._pending), default=None)
        assert isinstance(windows, Windows)
        self._settle()
        live = self._run.times[self._run.times >= self._oldest()]
        if not len(live):
            return None
        first = windows.end_after(int(live.min()) * windows.grain + windows.offset)
        return first if self.watermark is None else max(first, windows.end_after(self.watermark))

    # --- bytes

    def commit(self) -> Commit:
        """Give what changed in the stored state since the last commit."""
        self.query.check_names()
        self._settle()
        counters = {"definition": self.query.definition, "watermark": self.watermark, "late": self.late}
        return self._store.commit(counters, lambda: self._kept(self._run), self._pending, self._flagged, self._oldest(), self.watermark)


def _union(a: Any, b: Any) -> Any:
    once = [(table, np.arange(len(table) + 1), np.zeros(len(table), np.int64)) for table in (a, b)]
    return _core.merge_runs(*once[0], *once[1], True, 0)[0]


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    import pyarrow as pa

    if len(batches) <= 1:
        return batches[0] if batches else None
    return pa.concat_batches(batches)
