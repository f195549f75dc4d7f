"""Keys of every type: grouped as Spark groups them, given back as they came, in the same bucket in every process."""

import math
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from sash import _core, agg
from sash.engine import Bucket, Query, Rolling, Slicer, Sweep, Windows
from sash.errors import DefinitionError
from tests.engine import cases


def count_by(array):
    """Group rows by a key column through the engine: what comes out, as a dict."""
    schema = pa.schema([("k", array.type), ("t", pa.int64())])
    query = Query(schema, "t", ("k",), (("n", agg.count()),), windows=Windows(1, 1))
    batch = pa.record_batch([array, pa.array(np.zeros(len(array), np.int64))], schema=schema)
    bucket = Bucket(query)
    for packed in Slicer(query, 1).pack(batch):
        bucket.add(packed.blob)
    [out] = bucket.advance(None)
    assert out.schema.field("k").type == array.type
    return {repr(row["k"]): row["n"] for row in out.to_pylist()}


@pytest.mark.parametrize("name", cases.KEYS)
def test_every_type_comes_back_as_it_came(name):
    type_, values = cases.KEYS[name]
    values = [v for v in values if v == v and not (v == 0 and isinstance(v, float))]
    found = count_by(pa.array([None, *values, *values, None, None], type_))
    assert found == {"None": 3} | {repr(pa.array([v], type_)[0].as_py()): 2 for v in values}


OTHERS = [pa.uint8(), pa.int32(), pa.uint64(), pa.float32(), pa.large_string(), pa.large_binary(), pa.decimal128(9, 3), pa.binary(3)]
OTHERS += [pa.timestamp("ms"), pa.date64(), pa.time64("us")]


@pytest.mark.parametrize("type_", OTHERS)
def test_types_that_are_not_spark_s_own(type_):
    plain = {"large_string": ["a", ""], "large_binary": [b"a", b""], "decimal128(9, 3)": [1, 2], "fixed_size_binary[3]": [b"abc", b"abd"]}
    values = pa.array(plain[str(type_)], type_) if str(type_) in plain else pa.array([1, 86_400_000], pa.int64()).cast(type_, safe=False)
    assert sum(count_by(pa.concat_arrays([values, values, pa.nulls(1, type_)])).values()) == 5


def test_nan_is_one_key_and_minus_zero_is_zero_as_in_spark():
    assert count_by(pa.array([math.nan, -math.nan, 0.0, -0.0, None])) == {"nan": 2, "0.0": 2, "None": 1}


def test_slices_of_longer_arrays_are_read_from_their_offset():
    text = pa.array(["x", "a", None, "b", "a", "y"]).slice(1, 4)
    assert count_by(text) == {"'a'": 2, "'b'": 1, "None": 1}
    assert count_by(pa.array([True, False, None, True]).slice(1, 3)) == {"False": 1, "None": 1, "True": 1}
    assert count_by(pa.array(["a", "b", "a"]).dictionary_encode()) == {"'a'": 2, "'b'": 1}


def test_long_texts_that_share_their_beginning_are_different_keys():
    base = "sixteen bytes...and more"
    texts = [base[:n] for n in range(len(base) + 1)] + [base + "x", base + "y", "sixteen bytes...AND more"]
    keys, ids = _core.encode_keys([pa.array(texts * 3)], len(texts) * 3)
    assert len(keys) == len(texts) == len(set(ids.tolist()))
    assert (ids[: len(texts)] == ids[len(texts) : 2 * len(texts)]).all()


def test_columns_do_not_run_into_each_other():
    left, right = pa.array(["a", "ab", "", None, "a"]), pa.array(["bc", "c", None, "", "bc"])
    keys, ids = _core.encode_keys([left, right], 5)
    assert len(keys) == 4
    assert ids[0] == ids[4]


def test_bucket_of_a_key_is_the_same_in_every_process():
    code = """
import pyarrow as pa
from sash import _core
keys, ids = _core.encode_keys([pa.array([f"key {i}" for i in range(500)]), pa.array(range(500))], 500)
starts = keys.bucket_starts(7)
print([int((starts <= i).sum()) for i in ids.tolist()])
"""
    out = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert out[0] == out[1]
    sizes = np.bincount(np.array(eval(out[0])) - 1, minlength=7)
    assert sizes.min() > 40  # 71 each if they were spread evenly


def test_bucket_of_a_key_never_changes():
    # Stored state is found by bucket: another hash would lose it.
    keys, ids = _core.encode_keys([pa.array(["JFK", "LGA", "EWR", None, "a key of more than 16 bytes"]), pa.array([1, 2, 3, None, 5])], 5)
    buckets = (np.searchsorted(keys.bucket_starts(64), ids, side="right") - 1).tolist()
    assert buckets == [47, 53, 16, 30, 61]


def test_a_nested_column_can_not_be_a_key():
    schema = pa.schema([("k", pa.list_(pa.int64())), ("t", pa.int64())])
    with pytest.raises(DefinitionError, match=r"'k' of type list.* can't be a key"):
        Query(schema, "t", ("k",), (("n", agg.count()),), windows=Windows(1, 1))


def test_unsorted_rows_are_refused_by_a_sweep():
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    query = Query(schema, "t", ("k",), (("n", agg.count()),), rolling=Rolling((("1us", 1),)))
    for keys, times in (([1, 2, 1], [0, 0, 1]), ([1, 1], [1, 0])):
        with pytest.raises(ValueError, match="not sorted by key and time"):
            list(Sweep(query).feed(pa.record_batch([pa.array(keys), pa.array(times)], schema=schema)))


def test_a_sweep_holds_one_key_only():
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.int64())])
    query = Query(schema, "t", ("k",), (("s", agg.sum("v")),), rolling=Rolling((("3us", 3),)))
    sweep = Sweep(query)
    for k in range(100):
        times = np.arange(1000)
        list(sweep.feed(pa.record_batch([pa.array(np.full(1000, k)), pa.array(times), pa.array(times)], schema=schema)))
        assert len(sweep._run.keys) == 1
        assert len(sweep._run) <= 3
