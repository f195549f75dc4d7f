"""What a result costs, in combines: the same at any ratio of range to slide, and of look-back to distance between rows."""

import numpy as np
import pyarrow as pa
import pytest

from sash import agg
from sash.engine import Bucket, Query, Rolling, Slicer, Windows

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])


def counted(calls):
    def combine(a, b):
        calls[0] += 1
        return a + b

    return agg.define(lift=lambda x: x, combine=combine, identity=0, commutative=True, name="counted", column="v")


def run(n, **how):
    calls = [0]
    query = Query(SCHEMA, "t", ("k",), (("u", counted(calls)),), **how)
    bucket = Bucket(query)
    times = np.arange(n)
    for packed in Slicer(query, 1).pack(pa.record_batch([pa.array(times % 2), pa.array(times), pa.array(times)], schema=SCHEMA)):
        bucket.add(packed.blob)
    out = sum(batch.num_rows for batch in bucket.advance(None))
    return calls[0], out


@pytest.mark.parametrize("ratio", [1, 6, 60, 600])
def test_a_window_costs_at_most_three_combines_whatever_range_over_slide_is(ratio):
    combines, windows = run(6000, windows=Windows(2 * ratio, 2))
    assert windows >= 6000
    assert combines <= 3 * windows


@pytest.mark.parametrize("period", [2, 20, 200, 2000])
def test_a_row_costs_at_most_three_combines_per_look_back(period):
    combines, rows = run(6000, rolling=Rolling((("p", period),)))
    assert rows == 6000
    assert combines <= 3 * rows


def test_range_and_slide_without_a_common_measure_cost_a_pane_each():
    # range 7, slide 3: panes of 1, three enter and three leave with every slide
    combines, windows = run(3000, windows=Windows(7, 3))
    assert combines <= 3 * 3000 + windows
