"""Events in disturbed order, cut into micro-batches."""

import random
from typing import Any

import pyarrow as pa

from tests.spark.conftest import at, seconds

EVENTS = pa.schema([("key", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("value", pa.int64())])


def arrival(rng: random.Random, count: int, keys: list[Any], spread: float, late_share: float = 0, late_by: float = 0) -> list[Any]:
    """Events of `count` seconds, each disturbed by up to `spread` seconds, a share of them later still."""
    events = [(rng.choice(keys), float(rng.randrange(count)), rng.choice([None, *range(-50, 50)])) for _ in range(count)]
    lag = [t + rng.uniform(0, spread) + (late_by if rng.random() < late_share else 0) for _, t, _ in events]
    return [event for _, event in sorted(zip(lag, events, strict=True), key=lambda pair: pair[0])]


def cut(rng: random.Random, events: list[Any], batches: int) -> list[list[Any]]:
    """Cut into micro-batches at random places; some may be empty."""
    places = sorted(rng.randrange(len(events) + 1) for _ in range(batches - 1))
    return [events[i:j] for i, j in zip([0, *places], [*places, len(events)], strict=True)]


def rows(batches: list[list[Any]]) -> list[list[Any]]:
    """The events as rows of EVENTS."""
    return [[(key, None if t is None else at(t), value) for key, t, value in batch] for batch in batches]


def found_windows(batches: list[list[Any]]) -> list[dict[Any, Any]]:
    """windows()' rows per micro-batch as {(key, window end): values}, without the empty ones at the end."""
    return trimmed([{(key, seconds(end)): tuple(values) for key, _, end, *values in batch} for batch in batches])


def found_rows(batches: list[list[Any]]) -> list[list[Any]]:
    """rolling()'s rows per micro-batch, sorted, without the empty ones at the end."""
    return trimmed([sorted(((key, seconds(t), *rest) for key, t, *rest in batch), key=repr) for batch in batches])


def trimmed(batches: list[Any]) -> list[Any]:
    """Leave out the empty micro-batches at the end: Spark runs one without data only if the watermark moved."""
    while batches and not batches[-1]:
        batches = batches[:-1]
    return batches


def totals(values: list[Any]) -> tuple[Any, ...]:
    """count of rows, sum and max as Spark has them."""
    known = [v for v in values if v is not None]
    return len(values), sum(known) if known else None, max(known, default=None)
