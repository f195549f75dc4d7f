"""windows() and rolling() on every kind of frame against the plain engine, on random definitions and rows of all types."""

import pyarrow as pa
import pytest

import sash
from sash.engine import Query, Rows, Windows
from tests.engine import cases, plain
from tests.frames.kinds import KINDS, seen_by, to_arrow


def asked_by(query: Query) -> dict:
    """The arguments of the public function that give this query."""
    asked = {"time": query.time, "key": list(query.keys), "aggs": dict(query.aggs), "late": query.late, "tie": query.tie}
    if isinstance(query.windows, Windows):
        w = query.windows
        return asked | {"range": f"{w.range}us", "slide": f"{w.slide}us", "offset": f"{w.offset}us"}
    lookbacks = [None if p is None else f"{p.n}rows" if isinstance(p, Rows) else label for label, p in query.rolling.lookbacks]
    return asked | {"lookbacks": lookbacks, "closed": query.rolling.closed}


def expected_of(query: Query, batch: pa.RecordBatch) -> list:
    bucket = plain.Bucket(query)
    bucket.add(plain.to_blob(batch))
    return [cases.normal(row) for out in bucket.advance(None) for row in out.to_pylist()]


def rows_of(table: pa.Table) -> list:
    return [cases.normal(row) for row in table.to_pylist()]


def in_order(query: Query, row: tuple) -> tuple:
    """Where a window belongs: by key, NaN after numbers and nulls last, then by end."""
    values = dict(row)
    keys = [(2,) if values[name] is None else (1,) if values[name] == "NaN" else (0, values[name]) for name in query.keys]
    return (*keys, values["window_end"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_windows_of_any_frame_equal_the_plain_engine_in_order_of_key_and_end(seed, kind):
    case = cases.random_case(seed, windows=True, late="drop")
    expected = sorted(expected_of(case.query, seen_by(kind, case.batch)), key=lambda row: in_order(case.query, row))
    out = sash.windows(KINDS[kind](pa.Table.from_batches([case.batch])), **asked_by(case.query))
    assert rows_of(to_arrow(kind, out)) == expected, (seed, case.query)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 116))
def test_rolling_of_any_frame_equals_the_plain_engine_in_the_order_of_its_rows(seed, kind):
    case = cases.random_case(seed, windows=False)
    expected = expected_of(case.query, seen_by(kind, case.batch))
    out = sash.rolling(KINDS[kind](pa.Table.from_batches([case.batch])), **asked_by(case.query))
    assert rows_of(to_arrow(kind, out)) == expected, (seed, case.query)
