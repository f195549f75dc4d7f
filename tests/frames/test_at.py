"""Look-backs at the times of labels: equal to a range join in DuckDB, and blind to everything from the label's time on."""

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash import agg

duckdb = pytest.importorskip("duckdb")

SECOND = 1_000_000
AGGS = {"n": agg.count(), "nv": agg.count("v"), "s": agg.sum("v"), "lo": agg.min("v"), "m": agg.mean("v")}
FUNCTIONS = {"n": "count(e.stamp)", "nv": "count(v)", "s": "sum(v)::bigint", "lo": "min(v)", "m": "avg(v)"}


def stamps(seconds):
    return pa.array([None if s is None else s * SECOND for s in seconds], pa.int64()).cast(pa.timestamp("us"))


def tables(rng, events=300, labels=120):
    """Few times and keys, so that ties are many; nulls in all columns, and keys that only one side has."""
    ours, theirs = ["a", "b", None, "events only"], ["a", "b", None, "labels only"]
    at = [rng.choice([None, *range(50)]) for _ in range(events)]
    known = pa.table(
        {
            "key": pa.array([rng.choice(ours) for _ in at], pa.string()),
            "stamp": stamps(at),
            "v": pa.array([rng.choice([None, *range(-9, 9)]) for _ in at], pa.int64()),
        }
    )
    asked = [rng.choice([rng.choice(at), rng.randrange(-5, 60)]) for _ in range(labels)]
    return known, pa.table({"id": range(labels), "key": pa.array([rng.choice(theirs) for _ in asked], pa.string()), "when": stamps(asked)})


@pytest.mark.parametrize("seed", range(6))
def test_labels_equal_a_range_join_in_duckdb(seed):
    rng = random.Random(seed)
    events, labels = tables(rng)
    seconds = rng.sample([1, 3, 7, 20, 100], 2)
    out = sash.rolling(events, at=labels, at_time="when", time="stamp", key="key", lookbacks=[f"{s}s" for s in seconds], aggs=AGGS)
    found = {row["id"]: row for row in out.to_pylist()}
    assert len(found) == out.num_rows == sum(when is not None for when in labels["when"].to_pylist())
    for s in seconds:
        joined = duckdb.sql(
            f"select id, {', '.join(FUNCTIONS.values())} from labels l left join events e on l.key is not distinct from e.key "
            f'and e.stamp >= l."when" - interval {s} second and e.stamp < l."when" where l."when" is not null group by id'
        ).fetchall()
        assert {i: pytest.approx(tuple(cells), nan_ok=True) for i, *cells in joined} == {
            i: tuple(row[f"{name}_{s}s"] for name in AGGS) for i, row in found.items()
        }


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30)), max_size=40), st.integers(0, 30), st.integers(1, 40), st.randoms())
def test_no_event_at_or_after_the_label_ever_counts(events, when, period, rng):
    """Whatever happens from t on, the label of t gets the same."""
    events.sort(key=lambda event: event[1])
    labels = pa.table({"key": ["a"], "stamp": stamps([when])})

    def answer(rows):
        keys = pa.array([k for k, _ in rows], pa.string())
        table = pa.table({"key": keys, "stamp": stamps([t for _, t in rows]), "t": pa.array([t for _, t in rows], pa.int64())})
        aggs = {"n": agg.count(), "newest": agg.max("t"), "all": agg.collect("t")}
        lookbacks = [f"{period}s", f"{period + 9}s/3s", "5rows", None]
        return sash.rolling(table, at=labels, time="stamp", key="key", lookbacks=lookbacks, aggs=aggs).to_pylist()

    told = answer(events)
    assert all(value is None or value < when for name, value in told[0].items() if name.startswith("newest"))
    before = [event for event in events if event[1] < when]
    after = [("a", rng.randrange(when, when + 50)) for _ in range(5)]
    assert answer(before) == told == answer(sorted([*before, *after], key=lambda event: event[1]))
