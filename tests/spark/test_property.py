"""Stream = batch = brute force, for columns of every type, on random arrivals, cuts, windows and look-backs.

`collect` is among the aggregations of every column: an item that is lost, doubled or out of order shows. The engine's own
tests do the same thousands of times without Spark; here a few seeds cross the whole pipeline.
"""

import datetime as dt
import decimal
import itertools
import random

import pyarrow as pa
import pytest

from sash import agg
from sash.spark import rolling, windows
from tests.spark import oracle
from tests.spark.conftest import at, seconds

pytestmark = pytest.mark.spark

COLUMNS = {  # of every type: how to make a value from a number
    "byte": (pa.int8(), lambda n: n % 100),
    "short": (pa.int16(), lambda n: n * 7 % 30_000),
    "whole": (pa.int32(), lambda n: n - 50),
    "long": (pa.int64(), lambda n: n * 2**40),
    "flag": (pa.bool_(), lambda n: n % 3 == 0),
    "single": (pa.float32(), lambda n: n / 4),
    "real": (pa.float64(), lambda n: n / 10 - 3),
    "day": (pa.date32(), lambda n: dt.date(2024, 1, 1) + dt.timedelta(days=n)),
    "moment": (pa.timestamp("us", "UTC"), lambda n: at(n * 1.5)),
    "local": (pa.timestamp("us"), lambda n: at(n * 1.5).replace(tzinfo=None)),
    "money": (pa.decimal128(12, 2), lambda n: decimal.Decimal(n) / 4),
    "name": (pa.string(), lambda n: f"n{n:03d}"),
    "bytes": (pa.binary(), lambda n: bytes([n % 256, 7])),
    "list": (pa.list_(pa.int64()), lambda n: [n, None]),
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.string())]), lambda n: {"a": n, "b": None}),
}
NESTED = ("list", "struct")
SCHEMA = pa.schema(
    [("key", pa.string()), ("part", pa.int16()), ("at", pa.timestamp("us", "UTC")), ("seq", pa.int64())]
    + [(name, type_) for name, (type_, _) in COLUMNS.items()]
)
AGGS = {"n": agg.count()}
AGGS |= {f"all_{name}": agg.collect(name) for name in COLUMNS}
AGGS |= {f"high_{name}": agg.max(name) for name in COLUMNS if name not in NESTED}


def plain(value):
    """A value as Python has it, whichever way it came from Spark."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if hasattr(value, "asDict"):
        return {name: plain(part) for name, part in value.asDict().items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


class Case:
    """Events in random order, with nulls in keys, times and values, equal times, and micro-batches of which some are empty."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.spread = 15
        events = []
        for seq in range(120):
            values = [None if rng.random() < 0.15 else make(rng.randrange(120)) for _, make in COLUMNS.values()]
            key = (rng.choice(["a", "b", None]), rng.choice([1, 2, None]))
            events.append((key, None if rng.random() < 0.05 else rng.randrange(0, 240, 2) / 2, (seq, *values)))
        events.sort(key=lambda event: (event[1] or 0) + rng.uniform(0, self.spread))
        places = sorted(rng.randrange(len(events)) for _ in range(3))
        cuts = [0, *places, places[-1], len(events)]
        self.batches = [events[i:j] for i, j in itertools.pairwise(cuts)]
        self.batches.append([(("last", None), 2000.0, (len(events), *([None] * len(COLUMNS))))])  # the watermark passes all others

    def rows(self):
        return [[(*key, None if t is None else at(t), *values) for key, t, values in batch] for batch in self.batches]


def results(pairs):
    """What AGGS give for these items, each a time and (seq, the columns' values): in order of time, equal times by seq."""
    items = [item for _, item in sorted(pairs, key=lambda pair: (pair[0], pair[1][0]))]
    columns = list(zip(*items, strict=True))[1:] if items else [()] * len(COLUMNS)
    known = [[plain(v) for v in column if v is not None] for column in columns]
    highest = [max(values, default=None) for name, values in zip(COLUMNS, known, strict=True) if name not in NESTED]
    return (len(items), *known, *highest)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(2, 8))])
def test_windows_stream_equals_batch_equals_brute_force_for_every_type(stream, cache, seed):
    case = Case(seed)
    rng = case.rng
    length, slide = rng.choice([(30, 10), (25, 10), (20, 20), (60, 5)])
    offset = rng.choice([0, 3])
    source = stream(SCHEMA, case.rows())
    asked = {
        "time": "at",
        "range": f"{length}s",
        "slide": f"{slide}s",
        "offset": f"{offset}s",
        "key": ["key", "part"],
        "aggs": AGGS,
        "tie": "seq",
    }
    timed = [[(key, t, (t, item)) for key, t, item in batch if t is not None] for batch in case.batches]
    expected = {
        (*key, end): values
        for batch in oracle.windows(timed, length, slide, case.spread, results, offset)
        for (key, end), values in batch.items()
    }

    def found(rows):
        return {(key, part, seconds(end)): tuple(map(plain, values)) for key, part, _, end, *values in rows}

    out = [row for batch in source.run(lambda df: windows(df, watermark=f"{case.spread}s", **asked)) for row in batch]
    assert len(out) == len(expected) > 40
    assert found(out) == expected
    batch = found(windows(source.batch(), **asked).collect())
    assert {window: values for window, values in batch.items() if window[0] != "last"} == expected


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(2, 8))])
def test_rolling_stream_equals_batch_equals_brute_force_for_every_type(stream, cache, seed):
    case = Case(100 + seed)
    closed = case.rng.choice(["right", "left", "both", "neither"])
    source = stream(SCHEMA, case.rows())
    names = ["n", "all_long", "all_struct", "all_money", "high_name", "high_local"]
    asked = {"time": "at", "lookbacks": ["9s", "1m", None], "key": ["key", "part"], "tie": "seq", "closed": closed}
    asked["aggs"] = {name: AGGS[name] for name in names}
    timed = [[(key, t, (t, item)) for key, t, item in batch if t is not None] for batch in case.batches]
    picked = [["n", *(f"all_{c}" for c in COLUMNS), *(f"high_{c}" for c in COLUMNS if c not in NESTED)].index(name) for name in names]
    expected = {}
    for row in (row for batch in oracle.rolling(timed, [9, 60, 10**6], case.spread, results, closed) for row in batch):
        _, _, (_, item), *frames = row
        expected[item[0]] = [frame[i] for i in picked for frame in frames]

    def found(rows):
        return {row[3]: [plain(value) for value in row[len(SCHEMA) :]] for row in rows}

    out = [row for batch in source.run(lambda df: rolling(df, watermark=f"{case.spread}s", **asked)) for row in batch]
    assert len(out) == len(expected) > 100
    assert found(out) == expected
    batch = found(rolling(source.batch(), **asked).collect())
    assert {seq: values for seq, values in batch.items() if seq in expected} == expected
    assert len(batch) == len(expected) + 1
