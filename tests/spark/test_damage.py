"""A checkpoint whose state is damaged on disk is refused, and goes on without a loss once it is restored."""

import random
import shutil

import pytest

from sash import agg
from sash.spark import windows
from tests.spark import oracle
from tests.spark.arrivals import EVENTS, arrival, cut, found_windows, rows, totals

pytestmark = [pytest.mark.spark, pytest.mark.stress]
TOTALS = {"n": agg.count(), "total": agg.sum("value"), "high": agg.max("value")}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", ["flip", "cut", "gone"])
def test_a_damaged_delta_is_refused_and_nothing_is_lost_or_doubled(stream, how):
    rng = random.Random(how)
    batches = cut(rng, arrival(rng, 400, ["a", "b", None], spread=20), 4)
    source = stream(EVENTS, rows(batches[:2]))

    def define(df):
        return windows(df, time="at", range="60s", slide="10s", key="key", aggs=TOTALS, watermark="20s")

    out = source.run(define)
    checkpoint = source.folder / "checkpoint"
    shutil.copytree(checkpoint, source.folder / "aside")
    deltas = sorted(checkpoint.glob("state/0/[0-9]*/*.changelog"), key=lambda p: (p.stat().st_mtime_ns, p.name))
    for delta in deltas:  # each: which of them Spark reads again is its own affair
        data = bytearray(delta.read_bytes())
        if how == "flip":
            data[len(data) // 2] ^= 0x10
            delta.write_bytes(data)
        elif how == "cut":
            delta.write_bytes(data[: len(data) // 2])
        else:
            delta.unlink()
        (delta.parent / f".{delta.name}.crc").unlink(missing_ok=True)
    assert deltas
    # Workers and the JVM that still hold the state would not read it again.
    source.spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    for batch in rows(batches[2:]):
        source.append(batch)
    with pytest.raises(Exception, match=r"(?i)corrupt|checksum|changelog|state|delta|does not exist"):
        source.run(define)
    shutil.rmtree(checkpoint)
    shutil.copytree(source.folder / "aside", checkpoint)
    source.spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    out += source.run(define)
    expected = {window: values for batch in oracle.windows(batches, 60, 10, 20, totals) for window, values in batch.items()}
    assert {window: values for batch in found_windows(out) for window, values in batch.items()} == expected
    assert sum(map(len, out)) == len(expected) > 20
