"""Answers from open stores: look-backs, ranges by steps, the largest keys, plans. They know nothing of HTTP."""

from __future__ import annotations

import functools
import time
from typing import Any, Final, NamedTuple

from sash.errors import DefinitionError
from sash.serve.limits import Deadline, Limits, Refused
from sash.serve.opened import OpenStore, View
from sash.serve.parameters import Values, shown
from sash.time import MICROS, duration, duration_text, timestamp_text
from sash.wheel import KeyedWheels, TileStore
from sash.wheel.questions import bounds, key_cells, key_of, key_text, moment, names_of, series, show_times, step_of
from sash.wheel.shape import LEVELS

__all__ = ["Answer", "facts", "keys", "lookback", "plan", "range_", "top"]

_STEPS: Final = ("1s", "5s", "15s", "1m", "5m", "15m", "1h", "3h", "6h", "12h", "1d", "1w")  # of step=auto: levels, and parts of them


class Answer(NamedTuple):
    """Rows under named columns, up to when they are complete, and what else there is to say."""

    columns: list[str]
    rows: list[list[Any]]
    watermark: int
    complete: int
    facts: dict[str, Any]
    notes: list[str]
    took: float  # seconds, from open wheels to rows


def facts(store: OpenStore, values: Values, limits: Limits, deadline: Deadline) -> dict[str, Any]:
    """What a store is, and how far it is."""
    with store.facts(deadline) as now:
        span = now.span
        return {
            "store": store.name,
            "key": list(now.key),
            "grain": duration_text(now.grain),
            "grain_us": now.grain,
            "levels": [duration_text(now.grain), *(level for level in LEVELS if duration(level) > now.grain)],
            "aggs": {name: {"agg": a.name, "column": a.column, "type": now.columns.get(name)} for name, a in now.aggs.items()},
            "slices": len(now),
            "first": None if span is None else stamp(now.kept_from if now.kept_from is not None else span[0]),
            "watermark": None if now.watermark is None else stamp(now.watermark),
            "complete_to": None if now.watermark is None or span is None else stamp(now.watermark // now.grain * now.grain),
            "provisional": None if now.provisional is None else {"to": stamp(now.provisional[1]), "batch": now.batch},
        }


def keys(store: OpenStore, values: Values, limits: Limits, deadline: Deadline) -> dict[str, Any]:
    """The keys of a store, in the order of their text; as many as wanted."""
    found = [(key_text(key), key) for key in store.keys(deadline)]
    prefix = values.get("prefix", "")
    found = sorted((text, i) for i, (text, _) in enumerate(found) if text.startswith(prefix))
    offset, n = values.get("offset", 0), values.get("n", 100)
    return {"store": store.name, "keys": [text for text, _ in found[offset : offset + n]], "all": len(found)}


def lookback(store: OpenStore, values: Values, limits: Limits, deadline: Deadline) -> Answer:
    """Each look-back up to a time, of every key asked about: a row per key, a column per aggregation and look-back."""
    with _asked(store, values, deadline) as (names, asked, view):
        now = view.store
        at, notes = _end(now, values.get("at", "watermark"), view)
        periods = [(text, _period(now, text, limits)) for text in dict.fromkeys(values.get("back") or ())]
        if not periods:
            raise Refused(400, "there is no look-back. Say how far back, e.g. back=1h.")
        _cells(len(asked or [None]) * len(names) * len(periods), limits)
        begun, end = time.perf_counter(), min(at, view.upto)
        for text, period in periods:
            if now.kept_from is not None and at - period < view.first:
                notes.append(
                    f"back={text} begins before {timestamp_text(view.first)}, from where on slices are kept: the answer begins there"
                )
        columns = [*([] if asked is None else now.key), *(f"{name}_{text}" for name in names for text, _ in periods)]
        end = max(end, view.first)
        spans = [(min(max(at - period, view.first), end), end) for _, period in periods]
        rows = []
        for key in asked if asked is not None else [None]:
            deadline.check()
            row: list[Any] = []
            for name in names:
                row += show_times(now, name, [_one(view.wheels[name], key, asked is None, span) for span in spans])
            rows.append([*([] if asked is None else key_cells(now, key)), *row])
        took = time.perf_counter() - begun
        return _answer(view, columns, rows, {"at": stamp(at), **_combines(view, values, names, asked, spans, deadline)}, notes, took)


def range_(store: OpenStore, values: Values, limits: Limits, deadline: Deadline) -> Answer:
    """A range of time, whole or by steps: a row per key and step, a column per aggregation."""
    with _asked(store, values, deadline) as (names, asked, view):
        start, end, notes = _bounds(view, values, limits)
        every = _step(view.store, values, start, end, limits)
        steps = 1 if every is None else -(-end // every) - start // every
        if steps > limits.steps:
            raise Refused(422, f"step={values['step']} cuts the range into {steps:,} steps. One answer has up to {limits.steps:,}.")
        _cells(len(asked or [None]) * len(names) * steps, limits)
        columns = [*([] if asked is None else view.store.key), "time", *names]
        begun, rows, spans = time.perf_counter(), [], []
        for key in asked if asked is not None else [None]:
            deadline.check()
            cells = [] if asked is None else key_cells(view.store, key)
            found = [series(view.wheels[name], key, asked is None, start, end, every) for name in names]
            told = [show_times(view.store, name, [value for _, value in one]) for name, one in zip(names, found, strict=True)]
            rows += [[*cells, stamp(at), *row] for (at, _), *row in zip(found[0], *told, strict=True)]
            spans = [(at, last) for (at, _), last in zip(found[0], [*(at for at, _ in found[0][1:]), end], strict=True)]
        took = time.perf_counter() - begun
        more: dict[str, Any] = {"from": stamp(start), "to": stamp(end), "step": None if every is None else duration_text(every)}
        return _answer(view, columns, rows, {**more, **_combines(view, values, names, asked, spans, deadline)}, notes, took)


def top(store: OpenStore, values: Values, limits: Limits, deadline: Deadline) -> Answer:
    """The keys of the largest values of one aggregation in a range."""
    with _asked(store, values, deadline) as (names, _, view):
        if len(names) != 1:
            raise Refused(400, f"the largest by which aggregation? Say agg=, one of {', '.join(view.store.aggs)}.")
        start, end, notes = _bounds(view, values, limits)
        begun, wheels = time.perf_counter(), view.wheels[names[0]]
        try:
            found = wheels.top(values.get("n", 10), start, end)
        except TypeError:
            raise Refused(400, f"values of agg={names[0]} have no order. Choose another of {', '.join(view.store.aggs)}.") from None
        told = show_times(view.store, names[0], [value for _, value in found])
        rows = [[*key_cells(view.store, key), value] for (key, _), value in zip(found, told, strict=True)]
        more = {"from": stamp(start), "to": stamp(end), "keys": len(wheels)}
        return _answer(view, [*(view.store.key or ("key",)), names[0]], rows, more, notes, time.perf_counter() - begun)


def plan(store: OpenStore, values: Values, limits: Limits, deadline: Deadline) -> dict[str, Any]:
    """How a range would be answered: the plan of each aggregation, for each key or for all together."""
    with _asked(store, values, deadline) as (names, asked, view):
        start, end, notes = _bounds(view, values, limits)
        _cells(len(asked or [None]) * len(names), limits)
        plans = []
        for name in names:
            for key in asked if asked is not None else [None]:
                deadline.check()
                one: dict[str, Any] = {"agg": name, **({} if asked is None else {"key": key_text(key)})}
                wheels = view.wheels[name]
                one["combines"] = _cost(wheels, key, asked is None, (start, end))
                one["text"] = wheels.explain(start, end, None if asked is None else key)
                plans.append(one)
        said = {"store": store.name, "from": stamp(start), "to": stamp(end), **_watermark(view), "notes": notes}
        return {**said, "plans": plans}


# --- what is asked


class _asked:
    """Read names and keys of a question, and hold the view that answers it."""

    def __init__(self, store: OpenStore, values: Values, deadline: Deadline) -> None:
        self._store, self._values, self._deadline = store, values, deadline

    def __enter__(self) -> tuple[list[str], list[Any] | None, View]:
        values, provisional = self._values, self._values.get("provisional")
        with self._store.facts(self._deadline) as now:
            names = names_of(now, values.get("agg"))
            keys = None if values.get("key") is None else [_key(now, key) for key in values["key"]]
            provisional = provisional and now.provisional is not None
            since = _since(now, values) if provisional else None
        if provisional:
            self._view = self._store.open_view(names, keys, since, self._deadline)
        else:
            self._view = self._store.view(names, keys, self._deadline)
        return names, keys, self._view.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._view.__exit__(*raised)


def _since(store: TileStore, values: Values) -> int | None:
    """From where on a question needs slices; None for all of them."""
    if values.get("from") is not None:
        return moment(store, values["from"], "from", provisional=True)
    if values.get("back"):
        assert store.provisional is not None
        text = values.get("at", "watermark")
        at = store.provisional[1] if text in ("watermark", "now") else moment(store, text, "at", cut=True, provisional=True)
        return at - max(_multiple(store, back, "back") for back in values["back"])
    return None


def _multiple(store: TileStore, text: str, option: str) -> int:
    """A length of time that is a multiple of the grain."""
    length = step_of(store, text, option)
    assert isinstance(length, int)  # text is for days of a time zone, which are not asked here
    return length


def _key(store: TileStore, given: Any) -> Any:
    """A key of the store's columns: a text as in a URL, or JSON values of their types."""
    if isinstance(given, str):
        return key_of(store, given, "key")
    values = given if isinstance(given, tuple) else (given,)
    if not store.key:
        raise DefinitionError(f"{store.path} has no key. Leave key out.")
    if len(values) != len(store.key):
        raise Refused(400, f"key {shown(list(values))} has {len(values)} values; the key is {', '.join(store.key)}. Give one for each.")
    return values[0] if len(store.key) == 1 else values


def _period(store: TileStore, text: str, limits: Limits) -> int:
    period = _multiple(store, text, "back")
    if period > limits.range:
        raise Refused(422, f"back={text} is longer than the {duration_text(limits.range)} that one request may span. Use less.")
    return period


def _end(store: TileStore, text: str, view: View) -> tuple[int, list[str]]:
    """Where look-backs end, on the grain; what is not complete of it is said."""
    if text == "watermark":
        return view.upto, []
    now = int(time.time() * MICROS["s"]) // store.grain * store.grain
    at = now if text == "now" else moment(store, text, "at", cut=True, provisional=view.provisional)
    if at <= view.upto:
        return at, []
    rest = "there is nothing yet" if view.provisional else "is not complete"
    return at, [
        f"at={text} is after {'all slices' if view.provisional else 'the watermark'}: what came after {timestamp_text(view.upto)} {rest}"
    ]


def _bounds(view: View, values: Values, limits: Limits) -> tuple[int, int, list[str]]:
    now = view.store
    opened = view.provisional
    times = [None if values.get(name) is None else moment(now, values[name], name, provisional=opened) for name in ("from", "to")]
    start, end, notes = bounds(now, times[0], times[1], ("from", "to"), list(view.wheels), provisional=opened)
    end = min(end, view.upto)
    start = min(max(start, view.first), end)
    if end - start > limits.range:
        raise Refused(
            422,
            f"the range is {duration_text(end - start)} long. One request spans up to {duration_text(limits.range)}: give from= and to=.",
        )
    return start, end, notes


def _step(store: TileStore, values: Values, start: int, end: int, limits: Limits) -> int | None:
    """The length of a step; auto is the shortest usual one that gives no more steps than wanted."""
    text = values.get("step")
    if text is None:
        return None
    if text != "auto":
        return _multiple(store, text, "step")
    points = values.get("points", 300)
    usual = [duration(one) for one in _STEPS if duration(one) > store.grain and duration(one) % store.grain == 0]
    week = MICROS["w"]
    return next((one for one in [store.grain, *usual] if (end - start) // one <= points), -(-(end - start) // (points * week)) * week)


def _cells(count: int, limits: Limits) -> None:
    if count > limits.cells:
        raise Refused(422, f"the answer has {count:,} values. One answer has up to {limits.cells:,}: fewer keys, aggregations or steps.")


# --- what comes out


def _one(wheels: KeyedWheels, key: Any, together: bool, span: tuple[int, int]) -> Any:
    return wheels.query_all(*span) if together else wheels.query(key, *span)


def _cost(wheels: KeyedWheels, key: Any, together: bool, span: tuple[int, int]) -> int:
    return wheels.combines(*span) if together else wheels.combines(*span, key=key)


def _combines(
    view: View, values: Values, names: list[str], asked: list[Any] | None, spans: list[tuple[int, int]], deadline: Deadline
) -> dict[str, int]:
    """How many combines the answer took, where that is asked: counted from the plans, after the answer."""
    if not values.get("explain"):
        return {}
    total = 0
    for key in asked if asked is not None else [None]:
        deadline.check()
        total += sum(_cost(view.wheels[name], key, asked is None, span) for name in names for span in spans)
    return {"combines": total}


def _answer(view: View, columns: list[str], rows: list[list[Any]], more: dict[str, Any], notes: list[str], took: float) -> Answer:
    rows = [[_fields(value) for value in row] for row in rows]
    for i, name in enumerate(columns):  # a key column may have the name of an aggregation
        columns[i] = name + "_" * columns[:i].count(name)
    if view.provisional and view.upto > view.complete:
        more = {**more, "provisional": {"from": stamp(view.complete), "to": stamp(view.upto), "batch": view.store.batch}}
    return Answer(columns, rows, view.watermark, view.complete, more, notes, took)


def _fields(value: Any) -> Any:
    """A result with fields, of minmax or a struct, as a dict; others as they are."""
    if isinstance(value, dict):
        return {name: _fields(part) for name, part in value.items()}
    return value._asdict() if hasattr(value, "_asdict") else value


def _watermark(view: View) -> dict[str, Any]:
    return {"watermark": stamp(view.watermark), "complete_to": stamp(view.complete)}


@functools.lru_cache(maxsize=4096)  # a watermark is written again and again
def stamp(micros: int) -> str:
    """A time as answers write it: ISO 8601 in UTC.

    >>> stamp(90_000_000), stamp(1)
    ('1970-01-01T00:01:30Z', '1970-01-01T00:00:00.000001Z')
    """
    text = timestamp_text(micros).replace(" ", "T")
    return text + (":00Z" if len(text) == 16 else "Z")
