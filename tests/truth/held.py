"""The same items and times in every container that callers have, by name; None where a container does not hold them."""

from __future__ import annotations

import array
import datetime as dt
import decimal
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

BIG = 2**53 + 1
EPOCH = dt.datetime(1970, 1, 1)


class Kind(NamedTuple):
    """A type of items: what it is called elsewhere, and values that it holds."""

    sort: str  # number, moment, decimal or text
    values: list[Any]
    numpy: str | None
    nullable: str | None  # of pandas
    arrow: pa.DataType
    polars: Any


def _integers(bits: int, signed: bool) -> Kind:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, min(2**bits, 2**63) - 1)
    values = [0, 1, 1, 2, 3, 7, low, high, high - 1]
    if bits == 64:
        values += [BIG, BIG + 1, 2**62] + ([-BIG] if signed else [])
    name = f"{'' if signed else 'u'}int{bits}"
    nullable = ("I" if signed else "UI") + f"nt{bits}"
    return Kind("number", values, name, nullable, getattr(pa, name)(), getattr(pl, nullable))


_FLOATS = [0.0, -0.0, 0.5, -1.25, 3.0, 2.0, 2.0, 100.0, float("nan")]
_STAMPS = [EPOCH + dt.timedelta(seconds=s, microseconds=u) for s, u in ((0, 0), (1, 5), (-7, 1), (86_400, 0), (1_600_000_000, 999_999))]
_DECIMALS = [decimal.Decimal(text) for text in ("0.10", "0.20", "-1.05", "7.00", "7.00")]

KINDS: dict[str, Kind] = {
    **{f"{'' if signed else 'u'}int{bits}": _integers(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)},
    "float16": Kind("number", _FLOATS, "float16", None, pa.float16(), None),
    "float32": Kind("number", _FLOATS, "float32", "Float32", pa.float32(), pl.Float32),
    "float64": Kind("number", [*_FLOATS, 0.1, -1e15, 1e-5], "float64", "Float64", pa.float64(), pl.Float64),
    "bool": Kind("number", [True, False, True], "bool", "boolean", pa.bool_(), pl.Boolean),
    "date": Kind("moment", [stamp.date() for stamp in _STAMPS], "M8[D]", None, pa.date32(), pl.Date),
    "datetime us": Kind("moment", _STAMPS, "M8[us]", None, pa.timestamp("us"), pl.Datetime("us")),
    "datetime ns": Kind("moment", _STAMPS, "M8[ns]", None, pa.timestamp("ns"), pl.Datetime("ns")),
    "duration": Kind("moment", [stamp - EPOCH for stamp in _STAMPS], "m8[us]", None, pa.duration("us"), pl.Duration("us")),
    "decimal": Kind("decimal", _DECIMALS, None, None, pa.decimal128(12, 2), pl.Decimal(12, 2)),
    "text": Kind("text", ["a", "b", "", "ab", "ä"], None, "string", pa.string(), pl.String),
}


class OnlyArray:
    """What can be had as an Arrow array and in no other way."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._held.__arrow_c_array__(requested_schema)


class OnlyStream:
    """What can be had as a stream of Arrow arrays and in no other way."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._held.__arrow_c_stream__(requested_schema)


def _zero(kind: Kind) -> Any:
    return next(value for value in kind.values if value == value)


def _numpy(values: list[Any], kind: Kind) -> Any:
    if kind.numpy is None:
        return None
    if kind.numpy[0] in "Mm":
        return np.array([None if v is None else v for v in values], kind.numpy)  # NaT
    return None if None in values else np.array(values, kind.numpy)


def _masked(values: list[Any], kind: Kind) -> Any:
    if kind.numpy is None:
        return None
    filled = [_zero(kind) if v is None else v for v in values]
    return np.ma.MaskedArray(np.array(filled, kind.numpy), [v is None for v in values])


def _objects(values: list[Any], kind: Kind) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _scalars(values: list[Any], kind: Kind) -> Any:
    if kind.numpy is None:
        return None
    return [pd.NA if v is None else np.array([v], kind.numpy)[0] for v in values]


def _pandas(values: list[Any], kind: Kind) -> Any:
    held = _numpy(values, kind)
    if held is None or kind.numpy == "M8[D]":
        return None
    return pd.Series(held)


def _nullable(values: list[Any], kind: Kind) -> Any:
    if kind.nullable is None or any(v != v for v in values if v is not None):
        return None  # pandas takes NaN for a null there
    return pd.Series(values, dtype=kind.nullable)


def _pandas_arrow(values: list[Any], kind: Kind) -> Any:
    if pa.types.is_float16(kind.arrow):
        return None
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, kind.arrow)))


def _polars(values: list[Any], kind: Kind) -> Any:
    return None if kind.polars is None else pl.Series(values, dtype=kind.polars)


def _arrow(values: list[Any], kind: Kind) -> Any:
    if pa.types.is_float16(kind.arrow):
        values = [None if v is None else np.float16(v) for v in values]
    return pa.array(values, kind.arrow)


def _chunked(values: list[Any], kind: Kind) -> Any:
    cut = len(values) // 3
    return pa.chunked_array([_arrow(values[:cut], kind), _arrow([], kind), _arrow(values[cut:], kind)], kind.arrow)


def _buffer(values: list[Any], kind: Kind) -> Any:
    if kind.numpy != "float64" or None in values:
        return None
    return array.array("d", values)


Make = Callable[[list[Any], Kind], Any]
COLUMNS: dict[str, Make] = {
    "list": lambda values, kind: values,
    "tuple": lambda values, kind: tuple(values),
    "generator": lambda values, kind: (v for v in values),
    "list of scalars": _scalars,
    "numpy": _numpy,
    "numpy reversed": lambda values, kind: None if (held := _numpy(values[::-1], kind)) is None else held[::-1],
    "numpy big-endian": lambda values, kind: None if (held := _numpy(values, kind)) is None else held.astype(held.dtype.newbyteorder(">")),
    "numpy objects": _objects,
    "numpy masked": _masked,
    "buffer": _buffer,
    "pandas": _pandas,
    "pandas index": lambda values, kind: None if (held := _pandas(values, kind)) is None or kind.numpy == "float16" else pd.Index(held),
    "pandas nullable": _nullable,
    "pandas of arrow": _pandas_arrow,
    "pandas objects": lambda values, kind: pd.Series(_objects(values, kind), dtype=object),
    "polars": _polars,
    "arrow": _arrow,
    "arrow chunked": _chunked,
    "arrow c array": lambda values, kind: OnlyArray(_arrow(values, kind)),
    "arrow c stream": lambda values, kind: OnlyStream(_chunked(values, kind)),
}


# --- tables of several columns

Columns = dict[str, tuple[list[Any], Kind]]


def _mapping(columns: Columns, rng: random.Random) -> Any:
    """Columns each in a container of its own."""
    out = {}
    for name, (values, kind) in columns.items():
        held = None
        while held is None:
            held = COLUMNS[rng.choice(sorted(COLUMNS))](values, kind)
        out[name] = held
    return out


def _rows(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*(values for values, _ in columns.values()), strict=True)]


def _frame(columns: Columns, rng: random.Random) -> Any:
    held = {}
    for name, (values, kind) in columns.items():
        choices = [make(values, kind) for make in (_pandas, _nullable, _pandas_arrow, COLUMNS["pandas objects"])]
        held[name] = rng.choice([choice for choice in choices if choice is not None])
    return pd.DataFrame(held)


def _polars_frame(columns: Columns, rng: random.Random) -> Any:
    held = {name: _polars(values, kind) for name, (values, kind) in columns.items()}
    return None if any(column is None for column in held.values()) else pl.DataFrame(held)


def _structured(columns: Columns, rng: random.Random) -> Any:
    if any(kind.numpy is None or (None in values and kind.numpy[0] not in "Mm") for values, kind in columns.values()):
        return None
    out = np.empty(len(next(iter(columns.values()))[0]), [(name, kind.numpy) for name, (_, kind) in columns.items()])
    for name, (values, kind) in columns.items():
        out[name] = _numpy(values, kind)
    return out


def _masked_structured(columns: Columns, rng: random.Random) -> Any:
    if any(kind.numpy is None for _, kind in columns.values()):
        return None
    filled = {name: ([_zero(kind) if v is None else v for v in values], kind) for name, (values, kind) in columns.items()}
    out = np.ma.MaskedArray(_structured(filled, rng))
    for name, (values, _) in columns.items():
        out[name].mask = [v is None for v in values]
        out.mask[name] = [v is None for v in values]
    return out


def _arrow_table(columns: Columns, rng: random.Random) -> Any:
    return pa.table({name: _chunked(values, kind) for name, (values, kind) in columns.items()})


def _batch(columns: Columns, rng: random.Random) -> Any:
    return pa.record_batch({name: _arrow(values, kind) for name, (values, kind) in columns.items()})


MakeTable = Callable[[Columns, random.Random], Any]
TABLES: dict[str, MakeTable] = {
    "mapping": _mapping,
    "records": lambda columns, rng: _rows(columns),
    "records of numpy": lambda columns, rng: None if (held := _structured(columns, rng)) is None else list(held),
    "structured": _structured,
    "structured masked": _masked_structured,
    "pandas frame": _frame,
    "polars frame": _polars_frame,
    "polars struct": lambda columns, rng: None if (held := _polars_frame(columns, rng)) is None else held.to_struct("s"),
    "arrow table": _arrow_table,
    "arrow batch": _batch,
    "arrow struct": lambda columns, rng: _batch(columns, rng).to_struct_array(),
    "batches once": lambda columns, rng: _arrow_table(columns, rng).to_reader(),
    "table c stream": lambda columns, rng: OnlyStream(_arrow_table(columns, rng)),
    "batch c array": lambda columns, rng: OnlyArray(_batch(columns, rng)),
}


# --- times

# By name: what a time must be a multiple of, in microseconds, and what holds a list of microseconds.
TIMES: dict[str, tuple[int, Callable[[list[int]], Any]]] = {
    "ints": (1, list),
    "numpy": (1, np.array),
    "numpy uint64": (1, lambda ts: np.array(ts, np.uint64)),
    "int scalars": (1, lambda ts: [np.int64(t) for t in ts]),
    "polars ints": (1, pl.Series),
    "pandas Int64": (1, lambda ts: pd.Series(ts, dtype="Int64")),
    "arrow ints": (1, pa.array),
    "datetimes": (1, lambda ts: [EPOCH + dt.timedelta(microseconds=t) for t in ts]),
    "datetimes in a zone": (
        1,
        lambda ts: [
            (EPOCH + dt.timedelta(microseconds=t)).replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=5))) for t in ts
        ],
    ),
    "dates": (86_400_000_000, lambda ts: [(EPOCH + dt.timedelta(microseconds=t)).date() for t in ts]),
    "iso text": (1, lambda ts: [(EPOCH + dt.timedelta(microseconds=t)).isoformat() for t in ts]),
    **{
        f"M8[{unit}]": (per, lambda ts, unit=unit: np.array(ts, "M8[us]").astype(f"M8[{unit}]"))
        for unit, per in {
            "W": 7 * 86_400_000_000,
            "D": 86_400_000_000,
            "h": 3_600_000_000,
            "m": 60_000_000,
            "s": 1_000_000,
            "ms": 1_000,
            "us": 1,
            "ns": 1,
        }.items()
    },
    "pandas": (1, lambda ts: pd.Series(np.array(ts, "M8[us]"))),
    "pandas index": (1, lambda ts: pd.DatetimeIndex(np.array(ts, "M8[us]"))),
    "pandas in a zone": (1, lambda ts: pd.Series(np.array(ts, "M8[us]")).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
    "pandas Timestamps": (1, lambda ts: [pd.Timestamp(t, unit="us") for t in ts]),
    "pandas of arrow": (1_000, lambda ts: pd.Series(np.array(ts, "M8[us]")).astype("timestamp[ms][pyarrow]")),
    "polars": (1, lambda ts: pl.Series(np.array(ts, "M8[us]"))),
    "polars in a zone": (1, lambda ts: pl.Series(np.array(ts, "M8[us]")).dt.replace_time_zone("UTC").dt.convert_time_zone("America/Lima")),
    "arrow": (1_000_000, lambda ts: pa.array(np.array(ts, "M8[us]").astype("M8[s]"))),
    "arrow in a zone": (1, lambda ts: pa.array(ts, pa.timestamp("us", "Europe/Oslo"))),
    "arrow dates": (86_400_000_000, lambda ts: pa.array(np.array(ts, "M8[us]").astype("M8[D]"))),
}
FLOAT_TIMES: dict[str, Callable[[list[float]], Any]] = {
    "floats": list,
    "numpy": np.array,
    "float32": lambda ts: np.array(ts, np.float32),
    "float scalars": lambda ts: [np.float64(t) for t in ts],
    "polars": pl.Series,
    "pandas": pd.Series,
    "pandas Float64": lambda ts: pd.Series(ts, dtype="Float64"),
    "arrow": pa.array,
}
