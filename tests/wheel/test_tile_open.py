"""Slices that are not final yet: with the tiles they are all rows seen so far, and never are they taken for tiles."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash import agg
from sash.wheel import TileStore, TileStoreError, tile_files
from sash.wheel.tile_open import write_open

MINUTE = 60_000_000
T0 = 1_704_067_200_000_000
UTC = pa.timestamp("us", "UTC")
AGGS = {"n": agg.count(), "mean": agg.mean("v")}
DELAY = 5  # minutes


def create(path):
    return TileStore.create(path, aggs=AGGS, grain="1m", key="zone")


def told(cells):
    """Slices as tiles(emit="update") tells them: (zone, minute) -> values."""
    starts = pa.array([T0 + minute * MINUTE for _, minute in cells], pa.int64())
    return pa.table(
        {
            "zone": pa.array([zone for zone, _ in cells], pa.string()),
            "slice_start": starts.cast(UTC),
            "slice_end": pa.array([T0 + (minute + 1) * MINUTE for _, minute in cells], pa.int64()).cast(UTC),
            "n": pa.array([len(v) for v in cells.values()], pa.int64()),
            "mean": pa.array(
                [{"sum": sum(v), "count": len(v)} for v in cells.values()], pa.struct([("sum", pa.int64()), ("count", pa.int64())])
            ),
        }
    )


class Stream:
    """What the engine does of slices: rows come in any order, late ones count while their slice is open."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.rows, self.cells, self.largest, self.watermark = [], {}, -1, None

    def batch(self):
        """The rows of one micro-batch: the slices they touched, and the watermark that the batch has."""
        before = self.watermark
        self.watermark = None if self.largest < 0 else self.largest - DELAY  # of what earlier batches brought, in minutes
        touched = {}
        for _ in range(self.rng.randrange(0, 25)):
            minute = max(0, self.largest + self.rng.randrange(-2 * DELAY, 6))
            zone, value = self.rng.choice(["a", "b", "ü", None]), self.rng.randrange(100)
            if before is not None and minute + 1 <= before:
                continue  # its slice is closed: late
            self.rows.append((zone, minute, value))
            self.cells.setdefault((zone, minute), []).append(value)
            touched[zone, minute] = self.cells[zone, minute]
        self.largest = max([self.largest, *(minute for _, minute in touched)])
        mark = 0 if self.watermark is None else T0 + self.watermark * MINUTE
        return told(touched), max(mark, 0)


def compare(path, rows):
    """All that was seen so far, key by key and minute by minute, from tiles and open slices together."""
    store = TileStore(path)
    if not rows:
        assert store.provisional is None
        return
    first, last = min(m for _, m, _ in rows), max(m for _, m, _ in rows) + 1
    n, mean = (store.wheels(name, start=T0 + first * MINUTE, provisional=True) for name in ("n", "mean"))
    assert n.watermark == max(T0 + last * MINUTE, store.watermark // MINUTE * MINUTE)
    for zone in {z for z, _, _ in rows}:
        for a, b in ((first, last), (first, (first + last) // 2), ((first + last) // 2, last)):
            found = [v for z, m, v in rows if z == zone and a <= m < b]
            span = T0 + a * MINUTE, T0 + b * MINUTE
            assert n.query(zone, *span) == len(found), (zone, a, b)
            assert mean.query(zone, *span) == (sum(found) / len(found) if found else None)


@pytest.mark.parametrize("seed", range(8))
def test_tiles_and_open_slices_are_all_rows_seen_so_far_after_every_batch(tmp_path, seed):
    stream, store = Stream(seed), create(tmp_path / "s")
    for batch in range(25):
        rows, mark = stream.batch()
        assert write_open(store, rows, query="q", batch=batch, watermark=mark)
        assert not write_open(store, rows, query="q", batch=batch, watermark=mark)  # Spark runs a batch again
        compare(tmp_path / "s", stream.rows)
        if batch % 6 == 5:
            store.compact()
            compare(tmp_path / "s", stream.rows)
        # What is final is what the cells say, and nothing else is in a file that other engines read.
        tiles = [row for file in store.files() for row in pq.read_table(file).to_pylist()]
        closed = {(z, m): len(v) for (z, m), v in stream.cells.items() if T0 + (m + 1) * MINUTE <= mark}
        assert {(t["zone"], (int(t["slice_start"].timestamp()) * 10**6 - T0) // MINUTE): t["n"] for t in tiles} == closed
        assert {p.name for p in (tmp_path / "s").glob("*.parquet")} == {p.name for p in store.files()}
        assert len(list((tmp_path / "s" / "_sash").glob("tiles-*.parquet"))) == 1  # the old ones are gone


def test_a_batch_without_open_slices_takes_the_old_ones_away(tmp_path):
    store = create(tmp_path / "s")
    store.write(told({}), query="q", batch=0, watermark=T0, open=told({("a", 3): [1, 2]}))
    assert store.provisional == (T0 + 3 * MINUTE, T0 + 4 * MINUTE)
    store.write(told({}), query="q", batch=1, watermark=T0)
    assert store.provisional is None
    assert not list((tmp_path / "s" / "_sash").glob("tiles-*"))


def test_wheels_without_provisional_hold_only_what_is_final(tmp_path):
    store = create(tmp_path / "s")
    store.write(told({("a", 0): [5]}), query="q", batch=0, watermark=T0 + MINUTE, open=told({("a", 1): [1, 2], ("b", 3): [9]}))
    assert store.wheels("n").watermark == T0 + MINUTE
    assert store.wheels("n").query("a", T0, T0 + MINUTE) == 1
    both = store.wheels("n", provisional=True)
    assert (both.watermark, both.query("a", T0, T0 + 4 * MINUTE), both.query_all(T0, T0 + 4 * MINUTE)) == (T0 + 4 * MINUTE, 3, 4)
    assert store.wheels("n", keys=["b"], provisional=True).query("b", T0, T0 + 4 * MINUTE) == 1


def test_rows_dated_far_ahead_do_not_move_what_is_provisional(tmp_path):
    store = create(tmp_path / "s")
    week = 7 * 1440
    store.write(told({}), query="q", batch=0, watermark=T0, open=told({("a", 0): [1], ("a", 50 * week): [2]}))
    assert store.provisional == (T0, T0 + week * MINUTE)
    assert store.wheels("n", provisional=True).query("a", T0, T0 + week * MINUTE) == 1


def test_open_slices_that_are_final_or_told_twice_are_refused(tmp_path):
    store = create(tmp_path / "s")
    with pytest.raises(TileStoreError, match="it is final"):
        store.write(told({}), query="q", batch=0, watermark=T0 + 5 * MINUTE, open=told({("a", 3): [1]}))
    twice = pa.concat_tables([told({("a", 9): [1]}), told({("a", 9): [2]})])
    with pytest.raises(TileStoreError, match="is there twice"):
        store.write(told({}), query="q", batch=0, watermark=T0, open=twice)
    assert (store.batch, TileStore(tmp_path / "s").watermark) == (-1, None)


def test_provisional_tiles_do_not_go_on_from_a_store_that_does_not_know_what_is_open(tmp_path):
    store = create(tmp_path / "s")
    store.write(told({("a", 0): [1]}), query="q", batch=0, watermark=T0 + MINUTE)
    with pytest.raises(TileStoreError, match="Start provisional tiles with a new store"):
        write_open(store, told({("a", 5): [1]}), query="q", batch=1, watermark=T0 + 2 * MINUTE)


class Killed(BaseException):
    """The end of a process, between two steps on the disk."""


def run(path, seed, steps=None):
    """Write eight batches, from the first that is not there on; end after so many steps on the disk."""
    left = [10**9 if steps is None else steps]

    def counted(step):
        def taken(*given):
            left[0] -= 1
            if left[0] < 0:  # nor does anything happen after it
                raise Killed()
            return step(*given)

        return taken

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_write", "_rename", "_unlink"):
            patch.setattr(tile_files.Here, name, counted(getattr(tile_files.Here, name)))
        stream, store = Stream(seed), create(path)
        for batch in range(8):
            rows, mark = stream.batch()
            if batch > store.batch:
                write_open(store, rows, query="q", batch=batch, watermark=mark)


def rows_after(seed, batches):
    stream = Stream(seed)
    for _ in range(batches):
        stream.batch()
    return stream.rows


@pytest.mark.parametrize("seed", range(6))
def test_killed_anywhere_the_next_run_leads_to_the_same(tmp_path, seed):
    rng, kills = random.Random(seed), 0
    while True:
        try:
            run(tmp_path / "s", seed, rng.randrange(1, 25))
            break
        except Killed:
            kills += 1
        if (tmp_path / "s" / "_sash" / "manifest.json").exists():  # what is there is the state after some whole batch
            done = TileStore(tmp_path / "s").batch
            if done >= 0:
                compare(tmp_path / "s", rows_after(seed, done + 1))
    assert kills
    compare(tmp_path / "s", rows_after(seed, 8))


def test_killed_by_the_system_the_next_run_leads_to_the_same(tmp_path):
    code = "import sys; sys.path[:0] = sys.argv[3:]; from wheel.test_tile_open import run; run(sys.argv[1], 1, int(sys.argv[2]))"
    dies = "import os\nfrom wheel import test_tile_open as t\nt.Killed = lambda: os.kill(os.getpid(), 9)\n"
    given = [str(tmp_path / "s"), "30", str(Path(__file__).parents[1])]
    code = code.replace("from wheel", f"exec({dies!r}); from wheel", 1)
    assert subprocess.run([sys.executable, "-c", code, *given], capture_output=True).returncode == -signal.SIGKILL
    done = TileStore(tmp_path / "s").batch
    assert 0 <= done < 7
    compare(tmp_path / "s", rows_after(1, done + 1))
    run(tmp_path / "s", 1)
    compare(tmp_path / "s", rows_after(1, 8))
