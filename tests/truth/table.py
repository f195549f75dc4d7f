"""Containers x types x entry points x aggregations x kinds of time, each case drawn from a seed and held against the plain model.

``soak(seed, seconds)`` draws until the time is over and gives the number of cases; a wrong one raises, naming its seed.
"""

from __future__ import annotations

import datetime as dt
import math
import pickle
import random
import sys
import time
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import sash
from sash import agg, slide, swag
from sash.containers import objects
from sash.swag.columns import results
from sash.wheel import KeyedWheels, Wheel
from tests.truth import held, model

FOR_ALL = ["count", "min", "max", "argmin", "argmax", "first", "last", "collect", "distinct", "first_k", "last_k", "ith_youngest", "m4"]
FOR_NUMBERS = ["sum", "mean", "var", "std", "median", "top_k", "bottom_k", "ith_smallest", "maxcount", "linreg"]
WITH_K = {"top_k": 2, "bottom_k": 2, "first_k": 2, "last_k": 2, "ith_smallest": 2, "ith_youngest": 2}
IN_ORDER = ["Recalc", "TwoStacks", "TwoStacksLite", "Daba", "DabaLite", "FlatFit", "FlatFat", "BInt", "Amta"]
TREES = ["Fiba", "BlockFiba", "BTree"]
RANGES = ["Recalc", "FlatFat", "BInt", *TREES]


class Part(NamedTuple):
    """One aggregation of a case: of which column, and where."""

    name: str
    column: str | None
    where: str | None

    def aggregation(self, **options: Any) -> Any:
        options |= {"where": self.where} if self.where else {}
        make = getattr(agg, self.name)
        return make(self.column, WITH_K[self.name], **options) if self.name in WITH_K else make(self.column, **options)


class Case(NamedTuple):
    """What an entry point is given, and what it means."""

    values: Any
    times: Any
    aggregation: Any
    parts: dict[str, Part]  # one under "" where it is no struct
    rows: list[dict[str, Any]]  # what a part looks at, by name
    at: list[Any]  # the times as windows know them
    told: str
    kinds: dict[str, held.Kind]

    def sort(self, part: Part) -> str:
        return self.kinds[part.column or "v"].sort

    def items(self, part: Part) -> list[model.Item]:
        """(time, value) of each row, as a part sees it."""
        out = []
        for t, row in zip(self.at, self.rows, strict=True):
            refused = part.where is not None and not row[part.where]
            whole = part.column is None and len(row) > 1  # records themselves are counted
            out.append((t, None if refused else True if whole else row[part.column or "v"]))
        return out

    def result(self, chosen: list[int], times: list[Any] | None = None) -> Any:
        """What the rows of these numbers give; their times may be others, where they were rounded."""
        found = {}
        for name, part in self.parts.items():
            items = self.items(part)
            found[name] = model.result(part.name, [((times or self.at)[i], items[i][1]) for i in chosen])
        return found.get("", found)


def lowered(case: Case, got: Any) -> Any:
    """A result in the model's form."""

    def one(part: Part, result: Any) -> Any:
        if part.name == "linreg" and result is not None:
            return result.slope
        return [(corner.time, corner.value) for corner in result] if part.name == "m4" and result is not None else result

    if "" in case.parts:
        return one(case.parts[""], got)
    return {name: one(part, got[name]) for name, part in case.parts.items()}


def check(case: Case, what: str, got: Any, want: Any) -> None:
    if not model.same(lowered(case, got), want):
        raise AssertionError(f"{what}: {got!r}, want {want!r}\n{case.told}")


def as_array(got: Any, parts: bool) -> Any:
    """Results of any kind of container as slide() gives them for plain ones: a record that is no struct's stands for a named tuple."""

    def named(x: Any) -> Any:
        if isinstance(x, list):
            return [*map(named, x)]
        return namedtuple("Record", x)(*map(named, x.values())) if isinstance(x, dict) else x

    def plain(x: Any) -> Any:
        return {name: named(part) for name, part in x.items()} if parts and x is not None else named(x)

    return got if isinstance(got, np.ndarray) else results([plain(x) for x in objects(got)])


def check_array(case: Case, what: str, got: Any, wants: list[Any]) -> None:
    """A column of results: float64 holds NaN for None, and integers as floats, if it holds them."""
    if len(got) != len(wants):
        raise AssertionError(f"{what}: {len(got)} results, want {len(wants)}\n{case.told}")
    for i, want in enumerate(wants):
        one = got[i] if got.dtype == object else got[i].item()
        if got.dtype == np.float64:
            one = None if want is None and math.isnan(one) else int(one) if isinstance(want, int) and one == math.floor(one) else one
        check(case, f"{what} {i}", one, want)


# --- drawing a case


def draw_values(rng: random.Random, kind: held.Kind, n: int, nulls: bool) -> list[Any]:
    return [None if nulls and rng.random() < 0.3 else rng.choice(kind.values) for _ in range(n)]


def draw_times(rng: random.Random, n: int, span: str) -> tuple[Any, list[Any], str]:
    """A column of times, in order, and what they are; ``span``: 'any', 'wheel' (none near the ends, no floats)."""
    choice = rng.random()
    if span == "any" and choice < 0.25:
        name = rng.choice(sorted(held.FLOAT_TIMES))
        at = sorted(rng.choice([rng.randrange(-40, 40) / 4, rng.uniform(-8, 8) if name != "float32" else 0.5]) for _ in range(n))
        return held.FLOAT_TIMES[name](at), at, f"float times: {name}"
    if span == "any" and choice < 0.45:
        end = rng.choice([-(2**63), 2**63 - 60, -(2**53) - 20, 2**53 - 20])
        name = rng.choice(["ints", "numpy", "int scalars", "polars ints", "pandas Int64", "arrow ints"])
        at = sorted(end + rng.randrange(60) for _ in range(n))
        return held.TIMES[name][1](at), at, f"times at an end: {name}"
    name = rng.choice(sorted(held.TIMES))
    per, make = held.TIMES[name]
    low = 0 if span == "wheel" or name == "numpy uint64" else rng.choice([0, -20])
    at = sorted((low + rng.randrange(40)) * per for _ in range(n))
    return make(at), at, f"times: {name}"


def draw(
    rng: random.Random, n: int, span: str, container: str | None = None, kind_name: str | None = None, only: str | None = None
) -> Case | None:
    """A case in this container, of this type; None where the container does not hold it. ``only``: of this aggregation, where it can be."""
    columns: held.Columns = {}
    names: list[str | None] = [container] if container in held.COLUMNS else ["v", "x", "k"]
    table = container not in held.COLUMNS
    for name in names:
        chosen = kind_name if name in (container, "v") and kind_name else rng.choice(sorted(held.KINDS))
        if name == "k":
            chosen = rng.choice(["bool", "int32", "uint8"])
        columns[name if table else "v"] = (draw_values(rng, held.KINDS[chosen], n, rng.random() < 0.5), held.KINDS[chosen])
    values = held.TABLES[container](columns, rng) if table else held.COLUMNS[container](*columns["v"])
    if values is None:
        return None
    times, at, told = draw_times(rng, n, span)
    many = table and rng.random() < 0.4
    far = any(abs(t) > 2**50 for t in at)
    parts = {("ab"[i] if many else ""): draw_part(rng, columns, table, "vx"[i], far, only) for i in range(2 if many else 1)}
    aggregation = agg.struct(**{k: p.aggregation() for k, p in parts.items()}) if many else parts[""].aggregation()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(c[0] for c in columns.values()), strict=True)] if n else []
    told = f"{container}, {[k for k in held.KINDS if held.KINDS[k] is columns['v'][1]]}, {aggregation!r}, {told}\n{rows}\n{at}"
    return Case(values, times, aggregation, parts, rows, at, told, {name: kind for name, (_, kind) in columns.items()})


def draw_part(rng: random.Random, columns: held.Columns, table: bool, column: str, far: bool, only: str | None = None) -> Part:
    values, kind = columns[column]
    names = [*FOR_ALL]
    if kind.sort == "number":
        names += FOR_NUMBERS
        if any(v != v for v in values if v is not None):
            names = [n for n in names if n not in ("linreg", "var", "std", "mean")]
        elif any(abs(v) > 2**40 for v in values if v is not None):
            names = [n for n in names if n not in ("linreg", "var", "std", "median")]  # floats inside
        elif any(abs(v) > 2**20 for v in values if v is not None):
            names = [n for n in names if n != "linreg"]  # a slope may be what is left of large values: test_bounds.py has its bound
    if far:
        names = [n for n in names if n != "linreg"]  # it reckons with times as floats
    if kind.sort == "text":
        names.append("concat")
    if kind.sort == "decimal":
        names.append("sum")
    name = only if only in names else rng.choice(names)
    if not table:
        return Part(name, None, None)
    if name == "count" and rng.random() < 0.5:
        return Part("count", None, rng.choice([None, "k"]))
    return Part(name, column, rng.choice([None, None, "k"]))


def length_as(rng: random.Random, micros: Any) -> Any:
    """A length of time in one of the forms that callers have for it; a float stays one."""
    if isinstance(micros, float) or micros > 2**40:
        return micros
    forms = [micros, np.int32(micros) if micros < 2**31 else micros, dt.timedelta(microseconds=micros), np.timedelta64(micros, "us")]
    forms += [np.timedelta64(micros * 1000, "ns"), f"{micros}us", f"{micros // 1000}.{micros % 1000:03d}ms", f"{micros} microseconds"]
    forms += [np.timedelta64(micros // per, unit) for unit, per in (("ms", 10**3), ("s", 10**6), ("m", 60 * 10**6)) if micros % per == 0]
    return rng.choice(forms)


# --- the entry points


def enter_window(rng: random.Random, case: Case) -> None:
    n = len(case.at)
    name = rng.choice([*IN_ORDER, *TREES])
    options = {"ties": "keep"} if name in TREES else {}
    window = getattr(swag, name)(case.aggregation, **options)
    window.bulk_insert(case.values, times=case.times)
    ask_window(rng, case, window, name, list(range(n)))


def enter_sorted(rng: random.Random, case: Case) -> None:
    """In any order, sorted by the window."""
    n = len(case.at)
    order = list(range(n))
    name = rng.choice(TREES)
    window = getattr(swag, name)(case.aggregation, ties="keep")
    window.bulk_insert(case.values, times=case.times, sort=True)
    ask_window(rng, case, window, name, order)


def enter_singly(rng: random.Random, case: Case) -> None:
    values = list(case.values) if isinstance(case.values, list | tuple | np.ndarray) else case.rows if len(case.rows[0]) > 1 else None
    if values is None:
        values = [row["v"] for row in case.rows]
    name = rng.choice([*IN_ORDER, *TREES])
    aggregation = case.aggregation
    if "" not in case.parts:  # item by item, what is no number must be told before the first row, which may lack it
        told = {k: {} if p.name == "count" or case.sort(p) == "number" else {"dtype": "object"} for k, p in case.parts.items()}
        told = {k: {} if case.parts[k].name in ("collect", "concat") else told[k] for k in told}
        aggregation = agg.struct(**{k: p.aggregation(**told[k]) for k, p in case.parts.items()})
    window = getattr(swag, name)(aggregation, **({"ties": "keep"} if name in TREES else {}))
    times = list(case.times) if isinstance(case.times, list | np.ndarray) else case.at
    masked = isinstance(case.values, np.ma.MaskedArray)
    for value, t in zip(case.rows if masked and len(case.rows[0]) > 1 else values, times, strict=True):
        window.insert(value, t)
    ask_window(rng, case, window, name, list(range(len(case.at))))


def ask_window(rng: random.Random, case: Case, window: Any, name: str, there: list[int]) -> None:
    at = case.at
    if rng.random() < 0.2:
        window = pickle.loads(pickle.dumps(window))
    for _ in range(3):
        _asks(case, name, window, there)
        if name in RANGES and at:
            start, end = sorted(rng.choice([*at, *(t + 1 for t in at)]) for _ in range(2))
            inside = [i for i in there if start <= at[i] <= end]
            _one(case, f"{name}.query(range)", lambda s=start, e=end: window.query(s, e), inside)
            if start >= -(2**63) and end < 2**63:
                _many(case, f"{name}.query_many", window, [(start, end)], there)
        step = rng.random()
        if step < 0.4 and there:
            window.evict()
            there = there[1:]
        elif step < 0.8 and at:
            t = rng.choice([*at, at[0] - 1])
            window.bulk_evict(t)
            there = [i for i in there if at[i] > t]
        if len(window) != len(there) or (window.oldest, window.youngest) != ((at[there[0]], at[there[-1]]) if there else (None, None)):
            raise AssertionError(f"{name} holds {len(window)} from {window.oldest} to {window.youngest}\n{case.told}")


def _asks(case: Case, name: str, window: Any, there: list[int]) -> None:
    _one(case, f"{name}.query", window.query, there)


def _one(case: Case, what: str, ask: Any, chosen: list[int], times: list[Any] | None = None) -> None:
    try:
        want = case.result(chosen, times)
    except OverflowError:
        try:
            got = ask()
        except OverflowError:
            return
        raise AssertionError(f"{what}: {got!r}, want OverflowError\n{case.told}") from None
    check(case, what, ask(), want)


def _many(case: Case, what: str, window: Any, ranges: list[tuple[Any, Any]], there: list[int]) -> None:
    try:
        wants = [case.result([i for i in there if start <= case.at[i] <= end]) for start, end in ranges]
    except OverflowError:
        return
    got = window.query_many([start for start, _ in ranges], [end for _, end in ranges])
    check_array(case, what, got, wants)


def enter_slide(rng: random.Random, case: Case) -> None:
    n = len(case.at)
    keys = [rng.choice("abc") for _ in range(n)] if rng.random() < 0.3 else None
    algorithm = rng.choice(["auto", "auto", "auto", "fiba", "b_tree", "daba_lite", "recalc", "block_fiba", "flat_fat"])
    groups = [[i for i in range(n) if keys[i] == k] for k in set(keys)] if keys else [list(range(n))]
    wants: list[Any] = [None] * n
    by = (
        held.COLUMNS[rng.choice(["list", "numpy objects", "pandas nullable", "polars", "arrow"])](keys, held.KINDS["text"])
        if keys
        else None
    )
    options: dict[str, Any]
    if rng.random() < 0.4:
        size = rng.randrange(1, n + 3)
        options = {"size": size}
        if rng.random() < 0.6:
            options["times"] = case.times
            at = case.at
        else:
            at = [0] * n
            for group in groups:
                for place, i in enumerate(group):
                    at[i] = place
        chosen = {group[i]: group[max(0, i + 1 - size) : i + 1] for group in groups for i in range(len(group))}
    else:
        at = case.at
        gap = (max(at) - min(at)) if n else 1
        period: Any = rng.choice([1, 3, gap, gap // 2 or 1, rng.randrange(1, 50)]) or 1
        period = min(max(period, 1e-3 if isinstance(period, float) else 1), 2**62)
        order = rng.choice(["time", "arrival"]) if algorithm in ("auto", "fiba", "b_tree", "block_fiba") else "time"
        closed = rng.choice(["right", "left", "both", "neither"])
        options = {"times": case.times, "period": length_as(rng, period), "order": order, "closed": closed}
        chosen = {}
        for group in groups:
            marked = [(at[i], i) for i in group]
            windows = (model.slide_by_arrival if order == "arrival" else model.slide_by_time)(marked, period, closed)
            chosen |= {i: [k for _, k in window] for i, window in zip(group, windows, strict=True)}
    overflows = False
    for i in range(n):
        try:
            wants[i] = case.result(chosen[i], at)
        except OverflowError:
            overflows = True
    ask = lambda: slide(case.values, agg=case.aggregation, by=by, algorithm=algorithm, **options)  # noqa: E731
    if overflows:
        try:
            got = ask()
        except OverflowError:
            return
        raise AssertionError(f"slide({options}): {got!r}, want OverflowError\n{case.told}")
    check_array(case, f"slide({options}, by={keys}, algorithm={algorithm})", as_array(ask(), bool(case.aggregation.parts)), wants)


def enter_keyed(rng: random.Random, case: Case) -> None:
    n = len(case.at)
    keys = [rng.choice(["a", "b", None, 3]) for _ in range(n)]
    name = rng.choice([*IN_ORDER, *TREES])
    window = swag.Keyed(lambda: getattr(swag, name)(case.aggregation, **({"ties": "keep"} if name in TREES else {})))
    window.insert_many(keys, case.values, case.times)
    for key in ("a", "b", None, 3, "nobody"):
        _one(case, f"Keyed({name}).query({key!r})", lambda key=key: window.query(key), [i for i in range(n) if keys[i] == key])


def enter_coarse(rng: random.Random, case: Case) -> None:
    n = len(case.at)
    grain = rng.choice([1, 2, 7, 60, 1_000_000])
    name = rng.choice([*IN_ORDER, *TREES])
    times = [t // grain * grain for t in case.at]
    if any(t < -(2**63) for t in times):
        return
    window = swag.Coarse(getattr(swag, name)(case.aggregation, **({"ties": "keep"} if name in TREES else {})), length_as(rng, grain))
    window.bulk_insert(case.values, case.times)
    _one(case, f"Coarse({name}, {grain}).query", window.query, list(range(n)), times)


def enter_reordered(rng: random.Random, case: Case) -> None:
    """One bulk; the order of arrival within the delay is the business of the tests of the buffer."""
    delay = rng.choice([0, 1, 5, 10**6])
    window = swag.Reordered(case.aggregation, max_delay=length_as(rng, delay))
    window.bulk_insert(case.values, case.times)
    _one(case, f"Reordered({delay}).query", window.query, list(range(len(case.at))))


def enter_planned(rng: random.Random, case: Case) -> None:
    """The window that Sash chooses, with the type of the items promised; what was chosen for integers takes nothing else."""
    part = case.parts.get("")
    if part and part.name in ("median", "distinct", "ith_smallest") and case.sort(part) != "number":
        return  # chosen for numbers, as its refusal says
    kinds = {type(row[part.column or "v"]) for row in case.rows if row[part.column or "v"] is not None} if part else set()
    promise = "int64" if part and kinds and kinds <= {int, bool} and part.name in ("sum", "mean", "count", "max") else None
    aggregation = part.aggregation(dtype=promise) if part and promise else case.aggregation
    window = sash.window(aggregation, worst_case=rng.random() < 0.3, in_order=rng.random() < 0.7)
    window.bulk_insert(case.values, times=case.times)
    there = list(range(len(case.at)))
    name = type(window).__name__
    if name in IN_ORDER or name == "SubtractOnEvict":
        ask_window(rng, case, window, name, there)
    else:
        _one(case, f"window() -> {name}.query", window.query, there)
    if promise and part and part.name == "sum" and not part.where and name == "SubtractOnEvict":
        window.clear()
        try:
            window.bulk_insert([{"v": 1e16, "x": 1e16, "k": True}, {"v": 1.0, "x": 1.0, "k": True}] if part.column else [1e16, 1.0])
        except TypeError:
            return
        window.evict()
        check(case, "a sum of floats after 1e16 left", window.query(), 1.0)


def enter_wheel(rng: random.Random, case: Case) -> None:
    wheel = Wheel(case.aggregation, unit="us", grain=1, levels=rng.choice([(), (10,), (4, 40)]))
    wheel.insert_many(case.values, case.times)
    _ask_wheel(rng, case, wheel, wheel.query, list(range(len(case.at))))


def enter_keyed_wheels(rng: random.Random, case: Case) -> None:
    n = len(case.at)
    keys = [rng.choice("ab") for _ in range(n)]
    wheels = KeyedWheels(case.aggregation, unit="us", grain=1, levels=rng.choice([(), (10,)]))
    column = held.COLUMNS[rng.choice(["list", "numpy objects", "pandas nullable", "pandas objects", "polars", "arrow", "arrow chunked"])]
    wheels.insert_many(column(keys, held.KINDS["text"]), case.values, case.times)
    for key in "abc":
        chosen = [i for i in range(n) if keys[i] == key]
        _ask_wheel(rng, case, wheels, lambda start, end, key=key: wheels.query(key, start, end), chosen)


def _ask_wheel(rng: random.Random, case: Case, wheel: Any, query: Any, chosen: list[int]) -> None:
    top = max(case.at, default=0) + 1
    # An advance of many empty grains costs each of them; datetimes days apart are asked for as they are.
    if top > 2_000_000:
        return
    wheel.advance_to(top)
    start, end = sorted(rng.randrange(top + 1) for _ in range(2))
    _one(case, f"{type(wheel).__name__}.query({start}, {end})", lambda: query(start, end), [i for i in chosen if start <= case.at[i] < end])
    _one(case, f"{type(wheel).__name__}.query(all)", lambda: query(0, top), chosen)


ENTRIES = {
    "bulk_insert": (enter_window, "any"),
    "bulk_insert sorted": (enter_sorted, "any"),
    "insert": (enter_singly, "any"),
    "window": (enter_planned, "any"),
    "slide": (enter_slide, "any"),
    "Keyed": (enter_keyed, "any"),
    "Coarse": (enter_coarse, "any"),
    "Reordered": (enter_reordered, "any"),
    "Wheel": (enter_wheel, "wheel"),
    "KeyedWheels": (enter_keyed_wheels, "wheel"),
}
CONTAINERS = [*held.COLUMNS, *held.TABLES]


def run(seed: str, entry: str | None = None, container: str | None = None, kind: str | None = None, only: str | None = None) -> bool:
    """Draw one case from a seed and check it; False where the container does not hold the type. ``only``: of this aggregation."""
    rng = random.Random(seed)
    entry = entry or rng.choice(sorted(ENTRIES))
    enter, span = ENTRIES[entry]
    container = container or rng.choice(CONTAINERS)
    case = draw(rng, rng.choice([1, 2, 3, 5, 8, 13]), span, container, kind or rng.choice(sorted(held.KINDS)), only)
    if case is None:
        return False
    try:
        enter(rng, case)
    except Exception as error:
        raise AssertionError(f"seed {seed!r}, {entry}, {container}: {type(error).__name__}: {error}\n{case.told}") from error
    return True


# --- what must be refused

TOO_FAR = {
    "list": [0, 2**63],
    "list of both": [-1, 2**63],
    "before all": [-(2**63) - 1, 0],
    "uint64": np.array([0, 2**63], np.uint64),
    "polars": pl.Series([0, 2**64 - 1], dtype=pl.UInt64),
    "years": np.array([0, 300_000], "M8[Y]"),
    "seconds": np.array([0, 2**60], "M8[s]"),
}


def bulk_calls(aggregation: Any, values: Any, times: Any, n: int) -> dict[str, Any]:
    """The entry points, each as a call that has not been made."""
    keys = ["a"] * n
    return {
        "bulk_insert": lambda: swag.DabaLite(aggregation).bulk_insert(values, times=times),
        "bulk_insert, any order": lambda: swag.Fiba(aggregation).bulk_insert(values, times=times),
        "slide by count": lambda: slide(values, agg=aggregation, size=2),
        "slide by time": lambda: slide(values, agg=aggregation, times=times, period=5),
        "Keyed": lambda: swag.Keyed(lambda: swag.DabaLite(aggregation)).insert_many(keys, values, times),
        "Wheel": lambda: Wheel(aggregation, unit="us", grain=1).insert_many(values, times),
        "KeyedWheels": lambda: KeyedWheels(aggregation, unit="us", grain=1).insert_many(keys, values, times),
    }


def refusals(seed: str) -> int:
    """Tables with a column that is too short, and times that int64 does not hold: every entry point refuses them by name."""
    rng = random.Random(seed)
    done = 0
    n = rng.choice([3, 6, 1000])
    kinds = {name: held.KINDS[rng.choice(["int64", "float32", "bool", "uint8"])] for name in "vxk"}
    columns = {name: (draw_values(rng, kind, n, False), kind) for name, kind in kinds.items()}
    short = rng.choice("vxk")
    columns[short] = (columns[short][0][: rng.randrange(n)], kinds[short])
    values = {name: held.COLUMNS[rng.choice(["list", "numpy", "polars", "arrow", "pandas"])](*column) for name, column in columns.items()}
    part = Part(rng.choice(["sum", "max", "median", "collect"]), "v", rng.choice([None, "k"]))
    for name, call in bulk_calls(part.aggregation(), values, list(range(n)), n).items():
        done += must_raise(f"{seed}: {name} of unequal columns", call, ValueError, "Pass columns of one length", f"'{short}'")
    for kind, times in TOO_FAR.items():
        for name, call in bulk_calls(agg.sum(), [1, 2], times, 2).items():
            if name != "slide by count":
                done += must_raise(f"{seed}: {name} at times beyond int64 ({kind})", call, OverflowError, "does not fit int64")
    for kind, large in (
        ("list", [1, 2**63]),
        ("uint64", np.array([1, 2**63], np.uint64)),
        ("polars", pl.Series([1, 2**63], dtype=pl.UInt64)),
    ):
        for name, call in bulk_calls(agg.max(), large, [0, 1], 2).items():
            done += must_raise(f"{seed}: {name} of {kind} beyond int64", call, OverflowError, "9223372036854775808 does not fit int64")
    return done


def must_raise(what: str, call: Any, error: type[Exception], *words: str) -> int:
    try:
        got = call()
    except error as raised:
        if any(word not in str(raised) for word in words):
            raise AssertionError(f"{what}: {raised} does not say {words}") from raised
        return 1
    raise AssertionError(f"{what}: gives {got!r}, want {error.__name__}")


def soak(seed: int, seconds: float) -> int:
    """Check cases of every kind for a time, and count them."""
    end, steps, i = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        steps += run(f"{seed}/{i}") if i % 50 else refusals(f"{seed}/{i}")
        i += 1
    return steps


if __name__ == "__main__":
    first, length = (int(sys.argv[1]), float(sys.argv[2])) if len(sys.argv) > 2 else (0, 30.0)
    print(f"truth table: seed {first}, {soak(first, length):,} cases, 0 wrong")
