"""`sash inspect`: what a checkpoint holds: keys, slices, bytes, watermark, definition."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from sash.errors import DefinitionError
from sash.pipeline.document import LETTERS

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `sash inspect`."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="of a query, or of a pipeline: the folder of all its queries")
    parser.add_argument("--buckets", action="store_true", help="a line for every bucket, not only their sum")
    parser.add_argument("--format", choices=["table", "json"], default="table", help="of the answer (default: table)")


def run(args: argparse.Namespace) -> int:
    """Read the state of every query in a checkpoint, and print it."""
    found = queries(args.checkpoint)
    from sash.commands.run import stderr_to
    from sash.spark import read_state, session

    with tempfile.NamedTemporaryFile(prefix="sash-inspect-", suffix=".log") as log:
        with stderr_to(Path(log.name)):
            spark = session("sash inspect", master="local[1]")
        try:
            states = {path: read_state(spark, str(path.resolve())).collect() for path in found}
        finally:
            spark.stop()
    if args.format == "json":
        _print_json(states)
    else:
        print("\n\n".join(_text(path, rows, args.buckets) for path, rows in states.items()))
    return 0


def queries(checkpoint: Path) -> list[Path]:
    """The checkpoints of queries in a folder: itself, or those in it."""
    if not checkpoint.is_dir():
        raise DefinitionError(f"{checkpoint} is not a folder. Give the checkpoint of a query, or of a pipeline.")
    found = [path for path in (checkpoint, *sorted(checkpoint.iterdir())) if (path / "metadata").is_file() and (path / "offsets").is_dir()]
    found = [path for path in found if path.name != LETTERS or path == checkpoint]  # dead letters are passed on: nothing is held
    if not found:
        raise DefinitionError(f"{checkpoint} is not a checkpoint: it has neither metadata nor offsets, nor has any folder in it.")
    for path in found:
        if not any((path / "commits").glob("[0-9]*")):
            raise DefinitionError(f"{path} has no finished batch yet. Look again when the first one is done.")
        if not (path / "state").is_dir():
            raise DefinitionError(f"{path} has no state: it is the checkpoint of a query without windows(), rolling() or tiles().")
    return found


def _sums(rows: list[Any]) -> dict[str, Any]:
    total = {name: sum(row[name] for row in rows) for name in ("keys", "slices", "late", "blobs", "bytes")}
    marks = [row["watermark"] for row in rows]
    return {"watermark": min(marks).isoformat(" ") if marks else None, "buckets": len(rows), **total}


def _text(path: Path, rows: list[Any], buckets: bool) -> str:
    from sash.commands.query import table_text

    sums = _sums(rows)
    definition = dict(rows[0]["definition"]) if rows else {}
    lines = [
        f"{path.name}: complete up to {sums['watermark'] or 'nothing'}",
        f"  {sums['keys']:,} keys, {sums['slices']:,} slices, {sums['bytes']:,} bytes, {sums['blobs']:,} blobs, {sums['buckets']} buckets",
        f"  {sums['late']:,} late rows so far",
        *(f"  {name:10} {value}" for name, value in definition.items()),
    ]
    if buckets:
        columns = ["bucket", "keys", "slices", "late", "blobs", "bytes"]
        lines += ["", *("  " + line for line in table_text(columns, [[row[name] for name in columns] for row in rows]).splitlines())]
    return "\n".join(lines)


def _print_json(states: dict[Path, list[Any]]) -> None:
    import json

    document = {
        path.name: {
            **_sums(rows),
            "definition": dict(rows[0]["definition"]) if rows else {},
            "by_bucket": [{name: row[name] for name in ("bucket", "keys", "slices", "late", "blobs", "bytes")} for row in rows],
        }
        for path, rows in states.items()
    }
    print(json.dumps(document, indent=1))
