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
from typing import TYPE_CHECKING, Any, NamedTuple

from sash.errors import DefinitionError
from sash.keys import write_key
from sash.time import timestamp_text
from sash.wheel.questions import (
    bounds,
    complete_to,
    flat,
    key_cells,
    key_of,
    key_text,
    local_step,
    moment,
    names_of,
    series,
    show_times,
    step_of,
    time_cell,
)

if TYPE_CHECKING:
    from sash.wheel import TileStore

__all__ = ["Answer", "Question", "add_arguments", "ask", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash query`."""
    parser.add_argument("store", metavar="STORE", help="the folder of a tile store: a path, or s3://, gs://, abfs://, hdfs://")
    parser.add_argument("--agg", action="append", metavar="NAME", help="which aggregation; several times for several (default: all)")
    parser.add_argument(
        "--key", action="append", metavar="KEY", help="which key, values of several columns as A,B; several times for several"
    )
    parser.add_argument(
        "--from", dest="start", metavar="TIME", help="2013-07-01 12:30, or 7d: so long before the watermark (default: the start)"
    )
    parser.add_argument("--to", dest="end", metavar="TIME", help="up to and without this time (default: the watermark)")
    parser.add_argument("--by", metavar="LENGTH", help="a row for every 1h, 1d, ... of that time")
    parser.add_argument(
        "--tz", metavar="ZONE", help="--by 1d, 1w or '1 month' from midnight to midnight in e.g. Europe/Berlin; --from and --to too"
    )
    parser.add_argument("--provisional", action="store_true", help="add what is not final yet, where the stream publishes it, and say so")
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
    tz: str | None = None
    provisional: bool = False


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
        for name in map(key_text, store.keys()):
            print(name)
        return 0
    answer = ask(store, Question(args.agg, args.key, args.start, args.end, args.by, args.top, args.explain, args.tz, args.provisional))
    if args.plot:
        from sash.commands.charts import chart

        chart(answer, args.plot, Path(str(args.store)).name, store.aggs, args.by)
    {"table": _print_table, "csv": _print_csv, "json": _print_json}[args.format](answer, store)
    return 0


def ask(store: TileStore, question: Question) -> Answer:
    """Answer a question from a store's tiles."""
    names = _names(store, question)
    keys = None if question.keys is None else [key_of(store, text, "--key") for text in question.keys]
    start, end, notes = bounds(
        store,
        None if question.start is None else moment(store, question.start, "--from", question.tz, provisional=question.provisional),
        None if question.end is None else moment(store, question.end, "--to", question.tz, provisional=question.provisional),
        ("--from", "--to"),
        names,
        provisional=question.provisional,
    )
    if question.provisional:
        notes.append(_provisional(store, end))
    every: int | str | None = None
    if question.by is not None:
        every = step_of(store, question.by, "--by") if question.tz is None else local_step(question.by, "--by", question.tz)
    opened = time.perf_counter()
    wheels = {name: store.wheels(name, keys=keys, start=start, end=end, provisional=question.provisional) for name in names}
    begun = time.perf_counter()
    if keys is not None:
        _known(store, next(iter(wheels.values())), keys)
    columns: list[str] = []
    if question.top is not None:
        found = wheels[names[0]].top(question.top, start, end)
        values = show_times(store, names[0], [value for _, value in found])
        rows = [[*key_cells(store, key), value] for (key, _), value in zip(found, values, strict=True)]
        columns = [*(store.key or ["key"]), names[0]]
    else:
        rows = []
        for key in keys if keys is not None else [None]:
            cells = [] if keys is None else key_cells(store, key)
            answers = [series(w, key, keys is None, start, end, every, question.tz) for w in wheels.values()]
            shown = [show_times(store, name, [value for _, value in one]) for name, one in zip(names, answers, strict=True)]
            rows += [
                [*cells, *([time_cell(at, question.tz)] if every else []), *row] for (at, _), *row in zip(answers[0], *shown, strict=True)
            ]
        columns = [*([] if keys is None else store.key), *(["time"] if every else []), *names]
    done = time.perf_counter()
    plan = ""
    if question.explain:
        one = None if keys is None else keys[0]
        plan = "\n".join(str(w.explain(start, end, one)) for w in wheels.values())
    columns, rows = flat(columns, rows)
    assert store.watermark is not None
    return Answer(columns, rows, start, end, store.watermark, notes, plan, begun - opened, done - begun)


# --- what is asked


def _names(store: TileStore, question: Question) -> list[str]:
    names = names_of(store, question.aggs)
    if question.top is not None:
        if question.top < 1:
            raise DefinitionError(f"--top {question.top} is no number of keys. Use 1 or more.")
        if len(names) > 1:
            raise DefinitionError(f"--top needs one aggregation to go by. Add --agg, one of {', '.join(store.aggs)}.")
        if question.keys is not None or question.by is not None:
            raise DefinitionError("--top is over all keys and one range of time. Leave --key and --by out.")
    return names


def _provisional(store: TileStore, end: int) -> str:
    """What is said of the part of an answer that is not final."""
    complete = complete_to(store, True)
    if store.provisional is None:
        return "the stream publishes nothing that is provisional now"
    if end <= complete:
        return "nothing of it is provisional"
    return f"provisional from {timestamp_text(complete)} to {timestamp_text(end)}: not final, it may still change"


def _known(store: TileStore, wheels: Any, keys: list[Any]) -> None:
    missing = [key for key in keys if key not in wheels]
    if not missing:
        return
    known = store.keys()
    names = set(map(write_key, known))
    for key in missing:
        if write_key(key) not in names:
            text = key_text(key)
            near = difflib.get_close_matches(text, map(key_text, known), 3)
            raise DefinitionError(f"{store.path} has no key {text}. " + (f"Did you mean {', '.join(near)}?" if near else "See --keys."))


# --- what comes out


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


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


def _print_table(answer: Answer, store: TileStore) -> None:
    print(table_text(answer.columns, answer.rows))
    if answer.plan:
        print("\n" + answer.plan)
    print("\n" + "\n".join(_said(answer)))


def _print_csv(answer: Answer, store: TileStore) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([answer.columns, *answer.rows])
    sys.stdout.write(out.getvalue())
    for line in [*filter(None, [answer.plan]), *_said(answer)]:
        print(line, file=sys.stderr)


def _print_json(answer: Answer, store: TileStore) -> None:
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
