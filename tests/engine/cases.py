"""Random queries and rows for the keyed engine: every kind of key, value, window and disorder, from a seed."""

import datetime as dt
import decimal
import math
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash import agg
from sash.engine import Query, Rolling, Rows, Windows

UTC = pa.timestamp("us", "UTC")
EPOCH = dt.datetime(2013, 7, 1, tzinfo=dt.UTC)

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [1, -5, 2**62]),
    "byte": (pa.int8(), [1, -128, 7]),
    "text": (pa.string(), ["", "a", "JFK", "a longer key than eight bytes", "é"]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [dt.date(1969, 12, 31), dt.date(2013, 7, 1)]),
    "moment": (UTC, [EPOCH, EPOCH + dt.timedelta(microseconds=1)]),
    "price": (pa.decimal128(20, 2), [decimal.Decimal("1.10"), decimal.Decimal("-7.00")]),
    "blob": (pa.binary(), [b"", b"\x00", b"\x00\x00"]),
    "real": (pa.float64(), [0.0, -0.0, math.nan, -math.nan, 1.5]),
    "float": (pa.float32(), [0.5, math.nan, -0.0]),
}

LONGEST = agg.define(lift=lambda x: str(x), combine=lambda a, b: a + b, lower=lambda p: p[:7], identity="", name="joined", column="v")
LEAST = agg.define(lift=lambda r: r["v"] or 0, combine=min, identity=99, commutative=True, name="least")

AGGS = {
    "n": agg.count(),
    "nv": agg.count("v"),
    "nw": agg.count(where="ok"),
    "s": agg.sum("v"),
    "sx": agg.sum("x"),
    "sw": agg.sum("v", where="ok"),
    "m": agg.mean("v"),
    "mx": agg.mean("x", where=lambda r: r["v"] is not None and r["v"] > 0),
    "lo": agg.min("x"),
    "hi": agg.max("v"),
    "f": agg.first("v"),
    "l": agg.last("x"),
    "c": agg.collect("v"),
    "cs": agg.collect("w", where="ok"),
    "sd": agg.std("v"),
    "mm": agg.minmax("v"),
    "am": agg.argmax("v"),
    "ew": agg.ewma("v", half_life="1m"),
    "ex": agg.ewma("x", half_life=90),
    "ao": agg.argmin("v", of="w"),
    "ws": agg.max("w"),
    "wf": agg.first("w"),
    "some": agg.any("ok"),
    "u": LONGEST,
    "z": LEAST,
    "st": agg.struct(total=agg.sum("v"), list=agg.collect("v"), last=agg.last("v")),
    "newest_day": agg.max("d"),
    "when": agg.min("at"),
}


# Those that have a kernel, whatever the tie.
NATIVE = ("n", "nv", "nw", "s", "sx", "sw", "m", "mx", "lo", "hi", "sd", "mm", "am", "ew", "ex", "some", "newest_day", "when")


@dataclass
class Case:
    """A query, and its rows in order of arrival."""

    query: Query
    batch: pa.RecordBatch
    random: random.Random

    def batches(self, most: int = 6) -> list[pa.RecordBatch]:
        """The rows cut into micro-batches, some of them empty."""
        n = self.batch.num_rows
        cuts = sorted(self.random.randint(0, n) for _ in range(self.random.randint(0, most)))
        return [self.batch.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]

    def sorted(self) -> pa.RecordBatch:
        """The rows that have a time, by key and time: what a batch job sees."""
        rows = self.batch.filter(self.batch.column(self.query.time).is_valid())
        order: dict[Any, int] = {}
        keys = [tuple(row[name] if row[name] == row[name] else "NaN" for name in self.query.keys) for row in rows.to_pylist()]
        ranks = [order.setdefault(key, len(order)) for key in keys]
        times = rows.column(self.query.time).cast(pa.int64()).to_pylist()
        return rows.take(pa.array(sorted(range(len(ranks)), key=lambda i: (ranks[i], times[i])), pa.int64()))


def random_case(seed: int, *, rows: int = 40, windows: bool | None = None, late: str | None = None, native: bool = False) -> Case:
    """Everything at random, the same for the same seed."""
    r = random.Random(seed)
    key_names = r.choice([[], ["long"], ["text"], r.sample(list(KEYS), 1), r.sample(list(KEYS), 2), r.sample(list(KEYS), 3)])
    span = r.choice([8, 30, 200])
    nulls = r.choice([0.0, 0.2])

    def maybe(value: Any) -> Any:
        return None if r.random() < nulls else value

    def row() -> dict[str, Any]:
        values = {name: maybe(r.choice(KEYS[name][1])) for name in key_names}
        values["t"] = maybe(r.randint(-span // 3, span))
        values["v"] = maybe(r.randint(-4, 9))
        values["x"] = maybe(r.choice([math.nan, 0.25, -3.5, 1e6, 7.0]))
        values["w"] = maybe(r.choice(["", "b", "aa", "zz"]))
        values["ok"] = maybe(r.random() < 0.6)
        values["d"] = maybe(dt.date(2020, 1, r.randint(1, 9)))
        values["at"] = maybe(EPOCH + dt.timedelta(seconds=r.randint(0, 9)))
        return values

    fields = [pa.field(name, KEYS[name][0]) for name in key_names]
    fields += [
        ("t", UTC),
        ("v", r.choice([pa.int64(), pa.int16()])),
        ("x", pa.float64()),
        ("w", pa.string()),
        ("ok", pa.bool_()),
        ("d", pa.date32()),
        ("at", UTC),
    ]
    schema = pa.schema(fields)
    batch = pa.RecordBatch.from_pylist([row() for _ in range(rows)], schema)
    if r.random() < 0.7:  # mostly in order, some disorder
        times = batch.column("t").cast(pa.int64()).to_pylist()
        batch = batch.take(pa.array(sorted(range(rows), key=lambda i: (times[i] or 0) + r.choice([0, 0, 0, 9])), pa.int64()))
    names = r.sample(NATIVE if native else list(AGGS), r.randint(1, 5))
    common: dict[str, Any] = {"tie": r.choice([None, None, "v", "w", "x"])}
    windows = r.random() < 0.5 if windows is None else windows
    if windows:
        slide = r.randint(1, 12)
        common["windows"] = Windows(slide + r.randint(0, 20), slide, r.randint(-9, 9))
        common["late"] = late or r.choice(["drop", "accept"])
    else:
        choices = [("3us", 3), ("1us", 1), ("20us", 20), ("2rows", Rows(2)), ("5rows", Rows(5)), ("all", None)]
        common["rolling"] = Rolling(tuple(r.sample(choices, r.randint(1, 4))), r.choice(["right", "left", "both", "neither"]))
        common["late"] = late or r.choice(["drop", "accept", "flag"])
        if common["late"] == "accept" and common["rolling"].kept_rows:
            # A late row comes after those of its time that were there before it; the plain form knows of no before.
            distinct = r.sample(range(-5, rows * 2), rows)
            batch = batch.set_column(
                batch.schema.get_field_index("t"),
                "t",
                pa.array(sorted(distinct, key=lambda t: t + r.choice([0, 0, 0, 9])), pa.int64()).cast(UTC),
            )
    query = Query(schema, "t", tuple(key_names), tuple((name, AGGS[name]) for name in names), **common)
    return Case(query, batch, r)


def normal(value: Any) -> Any:
    """Results as things that compare: NaN equals NaN, -0.0 is 0.0, floats to nine digits, fields in any order."""
    if isinstance(value, float):
        return "NaN" if value != value else float(f"{value:.9g}") + 0.0
    if isinstance(value, dt.datetime) and value.tzinfo is not None:  # an instant is one, whatever its zone is called
        return value.astimezone(dt.UTC)
    if isinstance(value, dict):
        return tuple((name, normal(inner)) for name, inner in sorted(value.items()))
    if isinstance(value, list):
        return tuple(normal(inner) for inner in value)
    return value


def rows_of(batches: list[pa.RecordBatch]) -> list[str]:
    """All rows of these batches, in an order that does not depend on theirs."""
    return sorted(repr(normal(row)) for batch in batches for row in batch.to_pylist())


__all__ = ["AGGS", "KEYS", "NATIVE", "UTC", "Case", "normal", "random_case", "rows_of"]
