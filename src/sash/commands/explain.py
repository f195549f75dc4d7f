"""`sash explain`: what would be chosen and why, for a window, a slide, a wheel, a pipeline; the same shape for all of them."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from sash.errors import DefinitionError
from sash.time import duration, timestamp

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be explained, and the options of each."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="what")
    window = kinds.add_parser("window", help="which algorithm runs a window", description="Say which algorithm runs a window.")
    _agg(window)
    window.add_argument("--any-order", action="store_true", help="items come out of order")
    window.add_argument("--worst-case", action="store_true", help="no single call may be slow")
    window.add_argument("--ranges", action="store_true", help="query(start, end) is asked")
    window.add_argument("--bulk", action="store_true", help="many items come and go at once")
    window.add_argument("--max-delay", metavar="LENGTH", help="items come out of order, at most this late")
    slide = kinds.add_parser("slide", help="how slide() runs over an array", description="Say how slide() runs over an array.")
    _agg(slide)
    slide.add_argument("--size", type=int, metavar="N", help="windows by count")
    slide.add_argument("--period", metavar="LENGTH", help="windows by time")
    slide.add_argument("--order", choices=["time", "arrival"], default="time", help="items in order of time, or as they arrive")
    slide.add_argument("--items", choices=["int64", "float64", "object"], default="float64", help="what the items are (default: float64)")
    wheel = kinds.add_parser("wheel", help="what a wheel reads for a range", description="Say what a wheel reads for a range of time.")
    _agg(wheel)
    wheel.add_argument("--from", dest="start", required=True, metavar="TIME")
    wheel.add_argument("--to", dest="end", required=True, metavar="TIME")
    wheel.add_argument("--grain", default="1m", metavar="LENGTH", help="of the wheel (default: 1m)")
    wheel.add_argument("--levels", default="1h,1d,1w", metavar="L,L", help="of the wheel (default: 1h,1d,1w)")
    wheel.add_argument("--prefix", action="store_true", help="levels store prefixes")
    wheel.add_argument("--since", metavar="TIME", help="when the wheel began (default: a week before --from)")
    wheel.add_argument("--until", metavar="TIME", help="its watermark (default: a week after --to)")
    pipeline = kinds.add_parser("pipeline", help="how Spark runs a pipeline file", description="Say how Spark runs a pipeline file.")
    pipeline.add_argument("file", type=Path, metavar="PIPELINE.toml")


def _agg(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agg", required=True, metavar="NAME", help='e.g. max, or "quantile(q=0.9)"')


def run(args: argparse.Namespace) -> int:
    """Explain one thing."""
    print({"window": _window, "slide": _slide, "wheel": _wheel, "pipeline": _pipeline}[args.kind](args))
    return 0


def _asked(make: Any) -> Any:
    """What the room that is asked refuses is the user's to mend."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        raise DefinitionError(str(error)) from error


def _aggregation(text: str) -> Any:
    from sash.pipeline.expressions import aggregation

    return _asked(lambda: aggregation(text))


def _window(args: argparse.Namespace) -> str:
    from sash.planner import window

    made = _asked(
        lambda: window(
            _aggregation(args.agg),
            in_order=not args.any_order,
            worst_case=args.worst_case,
            ranges=args.ranges,
            bulk=args.bulk,
            max_delay=args.max_delay,
        )
    )
    return str(made.explain())


def _slide(args: argparse.Namespace) -> str:
    from sash.arrays import explain_slide

    aggregation = _aggregation(args.agg)
    return str(_asked(lambda: explain_slide(aggregation, size=args.size, period=args.period, order=args.order, dtype=args.items)))


def _wheel(args: argparse.Namespace) -> str:
    from sash.wheel import Wheel

    aggregation = _aggregation(args.agg)

    def plan() -> str:
        grain, week = duration(args.grain), duration("1w")
        start, end = timestamp(args.start), timestamp(args.end)
        since = timestamp(args.since) if args.since else (start - week) // grain * grain
        until = timestamp(args.until) if args.until else end + week
        if (until - since) // grain > 50_000_000:
            raise ValueError(f"a wheel of {(until - since) // grain:,} grains of {args.grain} is too large to try. Use a coarser --grain.")
        levels = tuple(level for level in args.levels.split(",") if level)
        wheel = Wheel(aggregation, start=since, grain=grain, levels=levels, layout="prefix" if args.prefix else "plain", dtype="float64")
        wheel.advance_to(until)
        return str(wheel.explain(start, end))

    return str(_asked(plan))


def _pipeline(args: argparse.Namespace) -> str:
    from sash.commands.run import start_spark
    from sash.pipeline import document

    pipeline = document.read(args.file)
    from sash.pipeline.job import Job

    with tempfile.NamedTemporaryFile(prefix="sash-explain-", suffix=".log") as log:
        spark = start_spark(pipeline, Path(log.name))
        try:
            return Job(spark, pipeline, dry=True).explain()
        finally:
            spark.stop()
