"""`sash index`: a tile store over a table that is there, kept up to date by running it again. Spark is not started."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from sash.errors import DefinitionError
from sash.time import duration, duration_text, timestamp, timestamp_text

if TYPE_CHECKING:
    from sash.agg import Aggregation
    from sash.wheel import TileStore

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash index`."""
    parser.add_argument(
        "table", metavar="TABLE", help="a Parquet file or folder, a Delta table, or an Iceberg table: a path, or s3://, gs://, ..."
    )
    parser.add_argument("--time", required=True, metavar="COLUMN", help="the time of a row")
    parser.add_argument("--key", action="append", metavar="COLUMN", help="an index per value of this column; several times for several")
    parser.add_argument(
        "--aggs", required=True, nargs="+", metavar="NAME=AGG", help="what to keep: trips=count fare='sum(fare)' p90='quantile(km, 0.9)'"
    )
    parser.add_argument("--grain", default="1s", metavar="LENGTH", help="the finest step of time that can be asked about (default: 1s)")
    parser.add_argument("--to", dest="store", metavar="STORE", help="the folder of the index (default: TABLE.tiles)")
    parser.add_argument(
        "--until",
        metavar="TIME",
        help="rows before this time are complete (default: up to the last row's grain, which may still be filling)",
    )


def run(args: argparse.Namespace) -> int:
    """Build an index, or bring it up to date, and say what it holds."""
    from sash.wheel.tile_segments import require_arrow

    require_arrow()
    from sash.frames.index import open_table, update_index
    from sash.wheel import TileStore

    place = args.store or args.table.rstrip("/") + ".tiles"
    aggs = _aggs(args.aggs)
    table = open_table(args.table)
    for name in (args.time, *(args.key or ())):
        if name not in table.schema.names:
            raise DefinitionError(f"{args.table} has no column {name!r}. It has {', '.join(table.schema.names)}.")
    store = TileStore.create(place, aggs=aggs, grain=_grain(args.grain), key=args.key)
    begun = time.perf_counter()
    rows = update_index(store, table, args.time, None if args.until is None else timestamp(args.until), args.table)
    if store.watermark is None:
        print(f"{args.table} has no row with a time before the last row's grain yet: nothing to index", file=sys.stderr)
        return 0
    print(
        f"{rows:,} rows into {place}: {len(store):,} slices of {duration_text(store.grain)}, {_size(store):,} bytes, complete up to "
        f"{timestamp_text(store.watermark)}, in {time.perf_counter() - begun:,.1f} s"
    )
    print(f"ask it: sash query {place} --by 1d")
    return 0


def _aggs(texts: list[str]) -> dict[str, Aggregation]:
    from sash.pipeline.expressions import aggregation

    found = {}
    for text in texts:
        name, equals, what = text.partition("=")
        if not equals or not name.strip():
            raise DefinitionError(f"--aggs {text!r} has no name. Write NAME=AGG, e.g. fare='sum(fare)'.")
        try:
            found[name.strip()] = aggregation(what)
        except ValueError as error:
            raise DefinitionError(f"--aggs {text}: {error}") from None
    return found


def _grain(text: str) -> int:
    try:
        return duration(text)
    except ValueError as error:
        raise DefinitionError(f"--grain: {error}") from None


def _size(store: TileStore) -> int:
    return sum(segment.size for segment in store._manifest.segments)
