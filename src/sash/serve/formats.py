"""Answers as bytes: JSON for one question, an Arrow stream for bulk reads."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import TYPE_CHECKING, Any

from sash.serve.answers import Answer, stamp

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ARROW", "as_arrow", "as_json", "document"]

ARROW = "application/vnd.apache.arrow.stream"


def document(store: str, answer: Answer) -> dict[str, Any]:
    """An answer as a JSON document: rows as objects."""
    return {
        "store": store,
        **answer.facts,
        "watermark": stamp(answer.watermark),
        "complete_to": stamp(answer.complete),
        "notes": answer.notes,
        "took_ms": round(answer.took * 1e3, 3),
        "rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows],
    }


def as_json(content: Any) -> bytes:
    """Write JSON that every reader takes: NaN and infinities are the texts "NaN", "Infinity", "-Infinity"."""
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":"), default=_plain).encode()
    except (ValueError, TypeError):
        return json.dumps(_without_nan(content), allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    """A value that JSON has no form for."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return str(value)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _without_nan(inner) for key, inner in value.items()}
    return [_without_nan(inner) for inner in value] if isinstance(value, list | tuple) else value


def as_arrow(store: str, answer: Answer) -> bytes:
    """Write an Arrow stream: a column per column of the answer; what else it says is in the schema's metadata."""
    import pyarrow as pa

    said = {
        "store": store,
        "watermark": stamp(answer.watermark),
        "complete_to": stamp(answer.complete),
        "notes": json.dumps(answer.notes),
        **{name: str(value) for name, value in answer.facts.items()},
    }
    table = pa.table({name: _column([row[i] for row in answer.rows]) for i, name in enumerate(answer.columns)})
    table = table.replace_schema_metadata(said)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _column(values: list[Any]) -> pa.Array:
    """A column of results; those that Arrow has no type for, as JSON."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else as_json(value).decode() for value in values], pa.string())
