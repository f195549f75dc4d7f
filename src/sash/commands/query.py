"""`sash query`: ask a tile store about any range of time, also while a stream writes it. Spark is not started."""

from __future__ import annotations

import argparse
import csv
import difflib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from sash.errors import DefinitionError
from sash.time import duration, duration_text, timestamp, timestamp_text

__all__ = ["Answer", "Question", "add_arguments", "ask", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash query`."""
    parser.add_argument("store", type=Path, metavar="STORE", help="the folder of a tile store")
    parser.add_argument("--agg", action="append", metavar="NAME", help="which aggregation; several times for several (default: all)")
    parser.add_argument(
        "--key", action="append", metavar="KEY", help="which key, values of several columns as A,B; several times for several"
    )
    parser.add_argument(
        "--from", dest="start", metavar="TIME", help="2013-07-01 12:30, or 7d: so long before the watermark (default: the start)"
    )
    parser.add_argument("--to", dest="end", metavar="TIME", help="up to and without this time (default: the watermark)")
    parser.add_argument("--by", metavar="LENGTH", help="a row for every 1h, 1d, ... of that time")
    parser.add_argument("--top", type=int, metavar="N", help="the N keys of the largest values")
    parser.add_argument("--keys", action="store_true", help="list the keys that the store has")
    parser.add_argument("--explain", action="store_true", help="say how the answer is put together, and what was rejected")
    parser.add_argument("--format", choices=["table", "csv", "json"], default="table", help="of the answer (default: table)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the answer as PNG, SVG or PDF")


class Question(NamedTuple):
    """What is asked of a store: texts as on the command line."""

    aggs: list[str] | None = None
    keys: list[str] | None = None
    start: str | None = None
    end: str | None = None
    by: str | None = None
    top: int | None = None
    explain: bool = False


class Answer(NamedTuple):
    """Rows under named columns, and up to when they are complete."""

    columns: list[str]
    rows: list[list[Any]]
    start: int
    end: int
    complete: int
    notes: list[str]
    plan: str
    opened: float  # seconds
    asked: float


def run(args: argparse.Namespace) -> int:
    """Ask, and print the answer."""
    from sash.wheel import TileStore

    store = TileStore(args.store)
    if args.keys:
        for name in map(_key_text, store.keys()):
            print(name)
        return 0
    answer = ask(store, Question(args.agg, args.key, args.start, args.end, args.by, args.top, args.explain))
    if args.plot:
        from sash.commands.charts import chart

        chart(answer, args.plot, str(args.store), store.aggs)
    {"table": _print_table, "csv": _print_csv, "json": _print_json}[args.format](answer, store)
    return 0


def ask(store: Any, question: Question) -> Answer:
    """Answer a question from a store's tiles."""
    names = _names(store, question)
    keys = None if question.keys is None else [_key(store, text) for text in question.keys]
    start, end, notes = _range(store, question)
    every = None if question.by is None else _every(store, question.by)
    opened = time.perf_counter()
    wheels = {name: store.wheels(name, keys=keys, start=start, end=end) for name in names}
    begun = time.perf_counter()
    if keys is not None:
        _known(store, next(iter(wheels.values())), keys)
    columns: list[str] = []
    if question.top is not None:
        found = wheels[names[0]].top(question.top, start, end)
        rows = [[*_key_cells(store, key), value] for key, value in found]
        columns = [*(store.key or ["key"]), names[0]]
    else:
        rows = []
        for key in keys if keys is not None else [None]:
            cells = [] if keys is None else _key_cells(store, key)
            series = [_series(w, key, keys is None, start, end, every) for w in wheels.values()]
            rows += [[*cells, *([at] if every else []), *(value for _, value in values)] for at, values in _zipped(series)]
        columns = [*([] if keys is None else store.key), *(["time"] if every else []), *names]
    done = time.perf_counter()
    plan = ""
    if question.explain:
        one = None if keys is None else keys[0]
        plan = "\n".join(str(w.explain(start, end, one)) for w in wheels.values())
    _show_times(store, columns, rows)
    columns, rows = _flat(columns, rows)
    return Answer(columns, rows, start, end, store.watermark, notes, plan, begun - opened, done - begun)


# --- what is asked


def _names(store: Any, question: Question) -> list[str]:
    known = list(store.aggs)
    names = known if question.aggs is None else [name.strip() for text in question.aggs for name in text.split(",")]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise DefinitionError(
                f"{store.path} has no aggregation {name!r}. It has {', '.join(known)}." + (f" Did you mean {near[0]}?" if near else "")
            )
    if question.top is not None:
        if question.top < 1:
            raise DefinitionError(f"--top {question.top} is no number of keys. Use 1 or more.")
        if len(names) > 1:
            raise DefinitionError(f"--top needs one aggregation to go by. Add --agg, one of {', '.join(known)}.")
        if question.keys is not None or question.by is not None:
            raise DefinitionError("--top is over all keys and one range of time. Leave --key and --by out.")
    return names


def _key(store: Any, text: str) -> Any:
    """A key as text in the types of the store's key columns."""
    if not store.key:
        raise DefinitionError(f"{store.path} has no key. Leave --key out.")
    parts = next(csv.reader([text])) if len(store.key) > 1 else [text]
    if len(parts) != len(store.key):
        raise DefinitionError(
            f"--key {text!r} has {len(parts)} parts; the key is {', '.join(store.key)}. Write --key {','.join(store.key).upper()}."
        )
    values = []
    for part, column in zip(parts, store.key, strict=True):
        kind = store.columns.get(column, "string")
        try:
            values.append(_value(part, kind))
        except ValueError:
            raise DefinitionError(f"--key {text!r}: {part!r} is not a value of {column}, which is {kind}.") from None
    return values[0] if len(values) == 1 else tuple(values)


def _value(text: str, kind: str) -> Any:
    """Text as a value of an Arrow type."""
    if "int" in kind or kind in ("double", "float"):
        return int(text) if "int" in kind else float(text)
    if "string" in kind:
        return text
    import pyarrow as pa

    return pa.array([text]).cast(pa.type_for_alias(kind))[0].as_py()  # its errors are ValueErrors


def _known(store: Any, wheels: Any, keys: list[Any]) -> None:
    missing = [key for key in keys if key not in wheels]
    if not missing:
        return
    known = store.keys()
    for key in missing:
        if key not in known:
            text = _key_text(key)
            near = difflib.get_close_matches(text, map(_key_text, known), 3)
            raise DefinitionError(f"{store.path} has no key {text}. " + (f"Did you mean {', '.join(near)}?" if near else "See --keys."))


def _range(store: Any, question: Question) -> tuple[int, int, list[str]]:
    """The time that is asked about, inside what there is; what had to be left out is said."""
    from sash.wheel import TileStoreError

    if store.watermark is None or store.span is None:
        raise TileStoreError(f"{store.path} has no complete slice yet. Wait until the watermark of its stream has passed the first one.")
    complete = store.watermark // store.grain * store.grain
    first = store.kept_from if store.kept_from is not None else store.span[0]
    start = first if question.start is None else _moment(question.start, store.watermark, "--from", store.grain)
    end = complete if question.end is None else _moment(question.end, store.watermark, "--to", store.grain)
    notes = []
    if end > complete:
        notes.append(f"--to {timestamp_text(end)} is after the watermark: the answer ends at {timestamp_text(complete)}")
        end = complete
    if start < first:
        notes.append(f"--from {timestamp_text(start)} is before the first tile: the answer begins at {timestamp_text(first)}")
        start = first
    if start > end:
        raise DefinitionError(
            f"nothing is complete between {timestamp_text(start)} and {timestamp_text(end)}. --from must be before --to and the watermark."
        )
    return start, end, notes


def _moment(text: str, watermark: int, option: str, grain: int) -> int:
    """A time, or a length of time back from the watermark."""
    try:
        back = duration(text)
    except ValueError:
        try:
            moment = timestamp(text)
        except ValueError as error:
            raise DefinitionError(f"{option}: {error} Or a length of time back from the watermark, e.g. 7d.") from None
        if moment % grain:
            raise DefinitionError(
                f"{option} {text} is not on the store's grain of {duration_text(grain)}. Use {timestamp_text(moment - moment % grain)}."
            ) from None
        return moment
    return (watermark - back) // grain * grain


def _every(store: Any, text: str) -> int:
    try:
        every = duration(text)
    except ValueError as error:
        raise DefinitionError(f"--by: {error}") from None
    if every < 1 or every % store.grain:
        raise DefinitionError(f"--by {text} is not a multiple of the store's grain, {duration_text(store.grain)}.")
    return every


# --- what comes out


def _series(wheels: Any, key: Any, together: bool, start: int, end: int, every: int | None) -> list[tuple[int, Any]]:
    if every is None:
        return [(start, wheels.query_all(start, end) if together else wheels.query(key, start, end))]
    first = start - start % every  # buckets begin at multiples, as everywhere; the first may be cut
    whole = start if first == start else min(first + every, end)
    head = [] if first == start else [(start, wheels.query_all(start, whole) if together else wheels.query(key, start, whole))]
    if whole >= end:
        return head
    rest: list[tuple[int, Any]] = wheels.group_by_all(whole, end, every) if together else wheels.group_by(key, whole, end, every)
    return head + rest


def _zipped(series: list[list[tuple[int, Any]]]) -> list[tuple[str, tuple[tuple[int, Any], ...]]]:
    return [(timestamp_text(values[0][0]), values) for values in zip(*series, strict=True)]


def _key_cells(store: Any, key: Any) -> list[Any]:
    return list(key) if isinstance(key, tuple) and len(store.key) != 1 else [key]


def _show_times(store: Any, columns: list[str], rows: list[list[Any]]) -> None:
    """Values that are times, e.g. max of a timestamp, came out as numbers."""
    for i, name in enumerate(columns):
        if name in store.aggs and store.columns.get(name, "").startswith("timestamp"):
            for row in rows:
                row[i] = None if row[i] is None else timestamp_text(row[i])


def _flat(columns: list[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """Values with fields, of minmax or a struct, as a column per field."""
    for i in reversed(range(len(columns))):
        sample = next((row[i] for row in rows if row[i] is not None), None)
        fields = list(sample) if isinstance(sample, dict) else list(getattr(sample, "_fields", ()))
        if not fields:
            continue
        columns = [*columns[:i], *(f"{columns[i]}.{field}" for field in fields), *columns[i + 1 :]]
        rows = [[*row[:i], *(_field(row[i], field) for field in fields), *row[i + 1 :]] for row in rows]
    return columns, rows


def _field(value: Any, field: str) -> Any:
    return None if value is None else value[field] if isinstance(value, dict) else getattr(value, field)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _key_text(key: Any) -> str:
    """A key as --key takes it."""
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _said(answer: Answer) -> list[str]:
    """What goes with every answer: how far it is complete, and what it cost."""
    span = f"[{timestamp_text(answer.start)}, {timestamp_text(answer.end)})"
    cost = f"opened in {answer.opened * 1e3:,.0f} ms, answered in {answer.asked * 1e3:,.2f} ms"
    return [*answer.notes, f"{span}, complete up to the watermark {timestamp_text(answer.complete)}; {cost}"]


def table_text(columns: list[str], rows: list[list[Any]]) -> str:
    """Lay rows out under their columns, numbers to the right."""
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    right = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]

    def line(row: list[str]) -> str:
        return "  ".join(f"{cell:>{w}}" if r else f"{cell:<{w}}" for cell, w, r in zip(row, widths, right, strict=True)).rstrip()

    return "\n".join([line(columns), *map(line, cells)])


def _print_table(answer: Answer, store: Any) -> None:
    print(table_text(answer.columns, answer.rows))
    if answer.plan:
        print("\n" + answer.plan)
    print("\n" + "\n".join(_said(answer)))


def _print_csv(answer: Answer, store: Any) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([answer.columns, *answer.rows])
    sys.stdout.write(out.getvalue())
    for line in [*filter(None, [answer.plan]), *_said(answer)]:
        print(line, file=sys.stderr)


def _print_json(answer: Answer, store: Any) -> None:
    document = {
        "store": str(store.path),
        "from": timestamp_text(answer.start),
        "to": timestamp_text(answer.end),
        "complete_up_to": timestamp_text(answer.complete),
        "notes": answer.notes,
        **({"plan": answer.plan} if answer.plan else {}),
        "rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows],
    }
    print(json.dumps(document, indent=1, default=str))
