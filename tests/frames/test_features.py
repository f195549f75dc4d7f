"""Look-backs at the times of labels and in hops, several ranges, windows that fall empty, calendars: on frames, by brute force."""

import datetime as dt
import random

import pyarrow as pa
import pytest

import sash
from sash import agg
from sash.errors import DefinitionError
from tests.frames.kinds import KINDS, to_arrow

SECOND = 1_000_000
AGGS = {"n": agg.count(), "s": agg.sum("v"), "c": agg.collect("v")}


def times(seconds):
    return pa.array([None if s is None else s * SECOND for s in seconds], pa.int64()).cast(pa.timestamp("us"))


class Case:
    """Events and labels of few keys and times, so that ties are many; keys and times of either side may be null."""

    def __init__(self, seed):
        r = self.random = random.Random(seed)
        keys = ["a", "b", None]
        self.events = [(r.choice(keys), r.choice([None, *range(60)]), r.choice([None, *range(9)]), i) for i in range(60)]
        self.labels = [(r.choice([*keys, "c"]), r.choice([None, *range(70)]), i) for i in range(40)]

    def tables(self):
        key, at, v, seq = zip(*self.events, strict=True)
        events = pa.table({"key": pa.array(key, pa.string()), "at": times(at), "v": pa.array(v, pa.int64()), "seq": seq})
        key, at, i = zip(*self.labels, strict=True)
        return events, pa.table({"key": pa.array(key, pa.string()), "when": times(at), "label": i})


def results(chosen):
    """What AGGS give for these events, in order of time and seq."""
    values = [v for _, _, v, _ in sorted(chosen, key=lambda event: (event[1], event[3])) if v is not None]
    return len(chosen), sum(values) if values else None, values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_labels_get_what_was_before_them_once_and_in_their_order(seed, kind):
    case = Case(seed)
    events, labels = case.tables()
    back = {"7s": 7, "20s": 20}
    asked = {"time": "at", "at_time": "when", "key": "key", "tie": "seq", "aggs": AGGS, "lookbacks": [*back, "21s/5s", None]}
    out = to_arrow(kind, sash.rolling(KINDS[kind](events), at=KINDS[kind](labels), **asked)).to_pylist()
    expected = []
    for key, t, label in case.labels:
        if t is None:
            continue
        starts = {**{name: t - p for name, p in back.items()}, "21s": (t - 21) // 5 * 5, "all": -(10**6)}
        row = {"key": key, "when": dt.datetime(1970, 1, 1) + dt.timedelta(seconds=t), "label": label}
        found = {
            name: results([e for e in case.events if e[0] == key and e[1] is not None and start <= e[1] < t])
            for name, start in starts.items()
        }
        row |= {f"{a}_{name}": values[i] for i, a in enumerate(AGGS) for name, values in found.items()}
        expected.append(row)
    assert [{name: list(v) if name.startswith("c_") else v for name, v in row.items()} for row in out] == expected


def test_labels_that_do_not_fit_are_refused():
    events, labels = Case(0).tables()
    asked = {"time": "at", "key": "key", "aggs": AGGS, "lookbacks": ["7s"]}
    with pytest.raises(DefinitionError, match=r"at_time='at' is not a column\. The columns are key, when, label"):
        sash.rolling(events, at=labels, **asked)
    with pytest.raises(DefinitionError, match="at_time='when' names the time column of at=, which is missing"):
        sash.rolling(events, at_time="when", **asked)
    with pytest.raises(DefinitionError, match="both tables have a column 'v'"):
        sash.rolling(events, at=labels.append_column("v", labels.column("label")), at_time="when", **asked)


@pytest.mark.parametrize("kind", ["pandas", "polars", "table", "duckdb"])
@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_look_backs_in_hops_begin_at_a_whole_hop(closed, kind):
    case = Case(9)
    events, _ = case.tables()
    out = to_arrow(kind, sash.rolling(KINDS[kind](events), time="at", key="key", tie="seq", aggs=AGGS, lookbacks=["21s/5s"], closed=closed))
    found = {row["seq"]: (row["n_21s"], row["s_21s"], list(row["c_21s"])) for row in out.to_pylist()}
    expected = {}
    for key, t, _, seq in case.events:
        if t is not None:
            end = t if closed in ("right", "both") else t - 1
            expected[seq] = results([e for e in case.events if e[0] == key and e[1] is not None and (t - 21) // 5 * 5 <= e[1] <= end])
    assert found == expected


@pytest.mark.parametrize("kind", ["pandas", "polars lazy", "table", "duckdb"])
def test_several_ranges_equal_as_many_single_ones(kind):
    events, _ = Case(3).tables()
    asked = {"time": "at", "key": "key", "slide": "5s", "tie": "seq", "aggs": AGGS}
    out = to_arrow(kind, sash.windows(KINDS[kind](events), range=["5s", "30s"], **asked))
    assert out.column_names == ["key", "window_end", "n_5s", "n_30s", "s_5s", "s_30s", "c_5s", "c_30s"]
    for label in ("5s", "30s"):
        alone = sash.windows(events, range=label, **asked).to_pylist()
        together = [row for row in out.to_pylist() if row[f"n_{label}"]]
        assert [(r["key"], r["window_end"], *(r[f"{a}_{label}"] for a in AGGS)) for r in together] == [
            (r["key"], r["window_end"], *(r[a] for a in AGGS)) for r in alone
        ]


def test_a_key_that_falls_silent_is_told_once():
    #       0    10   20   30   40   50       range 20, slide 10: a's last window with a row ends at 20, b's at 60
    # a     x
    # b     x              x
    rows = pa.table({"at": times([0, 0, 40]), "key": ["a", "b", "b"], "v": [1, 2, 3]})
    out = sash.windows(rows, time="at", key="key", range="20s", slide="10s", empty="once", aggs={"n": agg.count(), "s": agg.sum("v")})
    told = [(r["key"], (r["window_end"] - dt.datetime(1970, 1, 1)).seconds, r["n"], r["s"]) for r in out.to_pylist()]
    assert [row for row in told if row[0] == "a"] == [("a", 10, 1, 1), ("a", 20, 1, 1), ("a", 30, 0, None)]
    assert [row[1:3] for row in told if row[0] == "b"] == [(10, 1), (20, 1), (30, 0), (50, 1), (60, 1), (70, 0)]


@pytest.mark.parametrize("kind", ["pandas", "polars", "table", "duckdb"])
def test_days_of_a_zone_have_23_and_25_hours(kind):
    hours = [dt.datetime(2024, 3, 29, tzinfo=dt.UTC) + dt.timedelta(hours=h) for h in range(24 * 4)]
    rows = KINDS[kind](pa.table({"at": pa.array(hours, pa.timestamp("us", "UTC"))}))
    out = to_arrow(kind, sash.windows(rows, time="at", range="1 day", tz="Europe/Berlin", aggs={"n": agg.count()}))
    assert out.column("n").to_pylist() == [23, 24, 23, 24, 2]
