"""The reduce side: the state of one bucket of keys, from blobs to final results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from sash import _core, codec
from sash.engine.changes import translated
from sash.engine.layout import RowView
from sash.engine.live import COLUMN, LIVE, Live, forced_form, live_of
from sash.engine.lookbacks import kept_rows, label_columns, lookback_columns, row_ties, shown_labels, split_labels
from sash.engine.pending import Pending, concat
from sash.engine.query import FOREVER, Commit, Query, Windows
from sash.engine.run import BEFORE_ALL, Run
from sash.engine.slicer import unpack_rows
from sash.engine.store import Store
from sash.engine.stretches import missed_batch, window_batch, window_batches, window_bounds, window_rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Bucket", "commits_of"]

Array = np.ndarray[Any, Any]


class Bucket:
    """The state of one bucket: ``add`` what was packed, ``advance`` the watermark, ``commit`` what changed.

    Windows: slices per key and pane. Look-backs: the rows that are not final, as they came, and those that are, for as long as
    some look-back reaches them.

    The slices or rows have one of two forms. Live (``live.py``): a window per key that goes on; a micro-batch costs what came and
    what comes out, O(log d) for a row d places late, whatever is held. Columns (``run.py``): one sorted run, merged and swept as
    a whole, which is faster where more comes than is held: in batch, and in a catch-up.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.late = 0
        self.watermark: int | None = None
        self._layout = query.layout
        self._form = forced_form()
        self._run = Run.empty(self._layout)  # what is held, in columns
        self._live: Live | None = None  # or live
        self._fresh: list[Run] = []  # came, and is in neither yet
        self._pending = Pending(query)
        self._flagged: list[pa.RecordBatch] = []
        self._missed: list[Run] = []  # with late="flag", slices of the last additions: some may be for closed windows
        self._store = Store(query)

    @classmethod
    def load(cls, query: Query, meta: bytes, blobs: Mapping[int, bytes]) -> Bucket:
        """Read a stored state, also another definition's if it holds what this one needs; else ValueError naming what is missing."""
        payload = codec.unseal("bucket", None, meta)
        bucket = cls(query)
        with codec.refusing():
            stored = codec.decode(payload)
            if stored["definition"] != query.definition:
                blobs = translated(query, stored, blobs)
                bucket._store.rewrite = True
            bucket.watermark, bucket.late = stored["watermark"], stored["late"]
            if not isinstance(bucket.late, int) or not isinstance(bucket.watermark, int | None):
                raise TypeError(f"{bucket.watermark!r} and {bucket.late!r} are not a watermark and a count")
            runs, pending, bucket._flagged = bucket._store.load(stored, blobs, bucket._oldest(), bucket.watermark)
        for batch in pending:
            bucket._pending.add(batch)
        oldest = BEFORE_ALL if query.windows is None else bucket._oldest()
        for run in sorted(runs, key=len):  # small ones first: the largest is copied once
            bucket._run, _ = bucket._run.merge(run, bucket._combines, oldest)
        bucket._run = bucket._kept(bucket._run)
        return bucket

    def begin(self, past: Run, watermark: int) -> None:
        """Begin at a watermark, with a past behind it that has been told."""
        self.watermark = watermark
        self._run = self._kept(past)
        self._store.added(self._run)

    def catch_up(self, meta: bytes, blob: Callable[[int], bytes]) -> bool:
        """Go on to a later commit of the same state, reading only what was written since; False, and nothing changed, if that can't be.

        For who holds the state of a commit while another goes on with it. ``blob`` reads a stored blob.
        """
        stored = codec.decode(codec.unseal("bucket", self.query.fingerprint(), meta))
        before, self.watermark = self.watermark, stored["watermark"]
        since = self._store.since(stored, blob, self._oldest(), self.watermark) if self._store.by_age else None
        if since is None:
            self.watermark = before
            return False
        runs, pending, self._flagged = since
        self.late = stored["late"]
        gone = None if self.watermark is None else self._pending.take(self.watermark)
        if gone is not None:
            self._wait(gone, -1)
        for batch in pending:
            self._pending.add(batch)
            self._wait(batch)
        for run in runs:
            self._follow(run)
        self._followed()
        return True

    def _follow(self, run: Run) -> None:
        if self._live is not None:
            self._live.insert(run)
        else:
            self._run, _ = self._run.merge(run, self._combines)

    def _followed(self) -> None:
        """Let go of what another has told."""
        if self._live is not None and isinstance(self.query.windows, Windows) and self.query.emit == "final":
            self._live.core.close_windows(self.query.windows.last_pane_end(self.watermark))
        else:
            self._let_go(always=True)

    # --- what is held

    @property
    def form(self) -> str:
        """How the state is held: "live" or "columns"."""
        return "columns" if self._live is None else "live"

    @property
    def keys(self) -> int:
        """How many keys are held. Cost: O(1) in the live form."""
        self._settle()
        if self._live is not None:
            return self._live.keys
        rolling, run = self.query.rolling, self._run
        if rolling is not None and (rolling.kept_rows or rolling.whole_past):
            held = len(run.keys)
        else:
            filled = run.starts[1:] > run.starts[:-1]
            held = int(np.count_nonzero(run.times[run.starts[1:][filled] - 1] >= self._oldest()))
        if not self._pending:
            return held
        tables = [RowView(self.query, batch).keys()[0] for batch in self._pending.batches]
        return len(reduce(_union, [self._kept(run).keys, *tables]))

    @property
    def slices(self) -> int:
        """How many slices, and rows that are not final, are held. Cost: O(1) in the live form."""
        self._settle()
        if self._live is not None:
            return len(self._live) + self._pending.rows
        if self.query.rolling is not None and self.query.rolling.kept_rows:
            return len(self._run) + self._pending.rows
        return int(np.count_nonzero((self._run.times >= self._oldest()) | (self._run.times == BEFORE_ALL))) + self._pending.rows

    @property
    def _combines(self) -> bool:
        return self.query.windows is not None

    def _oldest(self) -> int:
        """The oldest pane or time that can still matter."""
        if self.query.windows is not None:
            return self.query.windows.oldest_pane(self.watermark)
        assert self.query.rolling is not None
        return self.query.rolling.oldest_time(self._asked_from())

    def _kept(self, run: Run) -> Run:
        return run.keep(self._oldest()) if self.query.rolling is None else kept_rows(self.query, run, self.watermark)

    def _exact(self) -> int:
        """The first time whose rows are told apart; older ones become hops, where there are any."""
        assert self.query.rolling is not None
        mark = self._asked_from()
        return self._oldest() if mark is None or mark >= FOREVER else self.query.rolling.exact_from(mark)

    def _asked_from(self) -> int | None:
        """The watermark whose look-backs may still be asked for."""
        return self.watermark

    @property
    def _kept_rows(self) -> int:
        assert self.query.rolling is not None
        return 0 if self.watermark == FOREVER else self.query.rolling.kept_rows

    def _whole(self) -> Run:
        """All that is held, in columns."""
        return self._kept(self._run) if self._live is None else self._live.run()

    def _came(self) -> Run | None:
        """What was added, as one run; the next commit stores it."""
        if not self._fresh:
            return None
        fresh, *more = sorted(self._fresh, key=len)
        self._fresh = []
        for run in more:
            fresh, _ = fresh.merge(run, self._combines)
        self._store.added(fresh)
        return fresh

    def _settle(self) -> None:
        """Bring what was added to what is held."""
        fresh = self._came()
        if fresh is None:
            return
        if self._live is not None:
            self._live.insert(fresh)
        else:
            self._run, _ = self._run.merge(fresh, self._combines)

    def _choose(self, work: int) -> None:
        """Choose the live form or columns, by how many rows and windows there are to do and how much is held."""
        if self._live is None:
            if self._form == "column" or (self._form == "auto" and work * LIVE > len(self._run)):
                return
            self._live = live_of(self.query, self._form)
            if self._live is None:
                self._form = "column"  # this query has no other
                return
            self._begin(self._live, self._kept(self._run))
            self._run = Run.empty(self._layout)
            for batch in self._pending.batches:
                self._wait(batch)
        elif self._form == "auto" and work > COLUMN * len(self._live):
            self._run, self._live = self._live.run(), None

    def _begin(self, live: Live, run: Run) -> None:
        """Fill the live form with what is held."""
        if isinstance(self.query.windows, Windows):
            live.begin(self.query.windows.last_pane_end(self.watermark))
        live.insert(run)

    def _wait(self, batch: pa.RecordBatch, step: int = 1) -> None:
        """Note that rows begin or cease to wait for their time: the live form counts their keys as held."""
        if self._live is not None:
            keys, ids = RowView(self.query, batch).keys()
            self._live.wait(keys, step * np.bincount(ids, minlength=len(keys)))

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
                run = run.keep(windows.open_pane(self.watermark))
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
                    self._fresh.append(self._entries(split_labels(self.query, rows)[0])[0])
                elif self.query.late == "flag":
                    self._flagged.append(rows)
        if batch.num_rows:
            self._pending.add(batch)
            self._wait(batch)
            self._store.pending(batch)

    def _entries(self, batch: pa.RecordBatch) -> tuple[Run, Array]:
        rows = RowView(self.query, batch)
        keys, ids = rows.keys()
        return Run.of_rows(self._layout, rows, keys, ids, row_ties(self.query, batch))

    # --- time

    def advance(self, watermark: int | None) -> list[pa.RecordBatch]:
        """Give everything that is final at this watermark, and drop what can't matter any more; None: all of it.

        Cost: in the live form O(rows that came + results), and O(log d) for a row d places late; in columns O(what is held).
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
        else:
            self._settle()
            yield from window_batches(self._whole(), windows.last_pane_end(self.watermark) + 1, windows.last_pane_end(FOREVER))
            self.watermark = FOREVER
        self._run, self._live = Run.empty(self._layout), None

    def _advance_windows(self, new: int) -> pa.RecordBatch | None:
        windows = self.query.windows
        assert isinstance(windows, Windows)
        last, first = windows.last_pane_end(new), windows.last_pane_end(self.watermark) + 1
        self._choose(self._work(max(0, last + 1 - first) // windows.in_panes[1]))
        self._settle()
        self.watermark = new
        if self._live is not None:
            return self._close(self._live, last) if last >= first else None
        out = window_batch(self._run, first, last) if last >= first else None
        self._let_go()
        return out

    def _work(self, ends: int) -> int:
        """How much there is to do: slices that came, and windows that end."""
        keys = self._live.keys if self._live is not None else len(self._run.keys)
        return sum(map(len, self._fresh)) + ends * keys

    def _close(self, live: Live, last: int) -> pa.RecordBatch | None:
        windows = self.query.windows
        assert isinstance(windows, Windows)
        closed = live.close(last)
        self._store.trim(self._oldest(), self.watermark, len(live))
        if closed is None:
            return None
        keys, _, ends, results = closed
        return window_rows(self.query, keys, *window_bounds(windows, ends), results)

    def _let_go(self, always: bool = False) -> None:
        """Drop what no window reaches any more."""
        oldest = self._oldest()
        if self._live is not None:
            rolling = self.query.rolling
            if rolling is None:
                self._live.expire(oldest)
            else:
                self._live.expire(oldest, self._exact(), self._kept_rows, rolling.whole_past)
            self._store.trim(oldest, self.watermark, len(self._live))
        elif always or np.count_nonzero(self._run.times < oldest) * 8 >= len(self._run) > 0:
            # This goes over all entries, so it is done only where it frees some.
            self._run = self._kept(self._run)
            self._store.trim(oldest, self.watermark, len(self._run))

    def _advance_rolling(self, new: int) -> pa.RecordBatch | None:
        import pyarrow as pa

        final = self._take_final(new)
        if self._fresh:  # late rows that were accepted: in place before anything looks back on them
            self._settle()
            if self._live is None:
                self._run = self._kept(self._run)
            else:
                self._let_go()
        flagged, self._flagged = self._flagged, []
        batches = []
        schema = self.query.output_schema()
        if final is not None:
            rows, labels = split_labels(self.query, final)
            results = self._look_back(rows, labels)
            shown = rows.columns if labels is None else shown_labels(self.query, labels)
            on_time = [pa.array(np.zeros(len(shown[0]), bool))] if self.query.late == "flag" else []
            batches.append(pa.record_batch([*shown, *results, *on_time], schema=schema))
        self.watermark = new
        self._let_go(always=final is not None)
        for late in flagged:
            rows, labels = split_labels(self.query, late)
            shown = rows.columns if labels is None else shown_labels(self.query, labels)
            missing = [pa.nulls(len(shown[0]), schema.field(name).type) for name in self.query.feature_names]
            batches.append(pa.record_batch([*shown, *missing, pa.array(np.ones(len(shown[0]), bool))], schema=schema))
        batches = [batch for batch in batches if batch.num_rows]
        return concat(batches) if batches else None

    def _take_final(self, new: int) -> pa.RecordBatch | None:
        """The rows that become final, with the form chosen for them."""
        final = self._pending.take(new)
        if final is not None:
            self._wait(final, -1)
        self._choose(sum(map(len, self._fresh)) + (0 if final is None else final.num_rows))
        return final

    def _look_back(self, rows: pa.RecordBatch, labels: pa.RecordBatch | None = None) -> list[pa.Array]:
        """Add rows to those held, and give their look-backs, or those of labels."""
        run, places = self._entries(rows)
        self._store.added(run)
        if self._live is not None:
            ids, first = self._live.insert(run)
            return self._live.lookbacks(run, ids, first, places) if labels is None else self._live.at_labels(labels)
        self._run, entries = self._run.merge(run, combine=False)
        return lookback_columns(self._run, entries, places) if labels is None else label_columns(self._run, labels)

    # --- bytes

    def commit(self) -> Commit:
        """Give what changed in the stored state since the last commit.

        Cost: O(what changed), and an amortised O(log n) for every slice that came; a state below 100 KB is written whole.
        """
        self.query.check_names()
        self._settle()
        counters = {"definition": self.query.definition, "watermark": self.watermark, "late": self.late}
        held = len(self._run) if self._live is None else len(self._live)
        return self._store.commit(counters, self._whole, self._pending.batches, self._flagged, self._oldest(), self.watermark, held)


def commits_of(meta: bytes) -> list[tuple[int, bytes]]:
    """Give the numbers and versions of a stored state's last commits, the last one last."""
    return [(number, version) for number, version in codec.decode(codec.unseal("bucket", None, meta)).get("line", [])]


def _union(a: Any, b: Any) -> Any:
    once = [(table, np.arange(len(table) + 1), np.zeros(len(table), np.int64)) for table in (a, b)]
    return _core.merge_runs(*once[0], *once[1], True, 0)[0]
