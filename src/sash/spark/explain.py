"""What was planned, and why: noted in the result's schema, so that it survives select, filter and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sash.engine import CalendarWindows, Hops, Rows, Sessions
from sash.errors import DefinitionError
from sash.spark.definition import Definition
from sash.time import duration_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOTE = "sash.plan"


def explain(df: DataFrame) -> str:
    """Say how the Sash results in a DataFrame are computed, why so, and what delay that adds.

    >>> print(explain(windows(stream, time="at", range="1h", slide="1m", aggs={"n": agg.count()}, watermark="10m")))  # doctest: +SKIP
    windows of 1h every 1m, no key, as a stream
      packed      rows sliced by key and pane where they are, ...    <- chosen
      ...
    """
    notes = dict.fromkeys(field.metadata[_NOTE] for field in df.schema.fields if _NOTE in (field.metadata or {}))
    if not notes:
        raise DefinitionError(
            "this DataFrame has no column that windows(), rolling() or tiles() made. "
            "Call explain() on their result, or keep one of its columns."
        )
    return "\n".join(notes)


def noted(df: DataFrame, definition: Definition, chosen: dict[str, str], **more: str) -> DataFrame:
    """Note the plan on a result column; `chosen` maps strategies to what they do or why not, the one taken first; `more` goes along."""
    return df.withMetadata(definition.result_column, {_NOTE: _text(definition, chosen), **more})


def _text(definition: Definition, chosen: dict[str, str]) -> str:
    keys = definition.query.keys
    head = f"{_what(definition)}, {'by ' + ', '.join(keys) if keys else 'no key'}, {'as a stream' if definition.streaming else 'in batch'}"
    width = max(map(len, chosen))
    first, *others = (f"  {name:{width}}  {words}" for name, words in chosen.items())
    lines = [head, f"{first}   <- chosen", *others]
    if definition.streaming:
        lines.append(f"  {'delay':{width}}  {_delay(definition)}")
    return "\n".join(lines)


def _what(definition: Definition) -> str:
    query = definition.query
    if isinstance(query.windows, Sessions):
        return f"sessions with gaps of up to {duration_text(query.windows.gap)}"
    if isinstance(query.windows, CalendarWindows):
        windows = query.windows
        return f"{definition.what} of {windows.range} {windows.kind} every {windows.slide} {windows.kind} in {windows.tz}"
    if query.windows is not None:
        ranges = [duration_text(length) for _, length in query.windows.ranges] or [duration_text(query.windows.range)]
        return f"{definition.what} of {', '.join(ranges)} every {duration_text(query.windows.slide)}"
    assert query.rolling is not None
    labels = (
        f"{p.n} rows" if isinstance(p, Rows) else _in_hops(p) if isinstance(p, Hops) else label for label, p in query.rolling.lookbacks
    )
    return f"rolling over {', '.join(labels)}{'' if query.labels is None else ' at the times of another table'}"


def _in_hops(period: Hops) -> str:
    return f"{duration_text(period.period)} in hops of {duration_text(period.hop)}"


def _delay(definition: Definition) -> str:
    behind = "as set on the DataFrame" if definition.delay is None else f"{duration_text(definition.delay)} behind the newest row"
    event = {
        "final": f"a {'row' if definition.query.windows is None else 'window'} comes out when the watermark reaches its "
        f"{'time' if definition.query.windows is None else 'end'}",
        "event": "none: a row comes out in the micro-batch it came in; rows beyond every look-back go as the watermark moves",
        "changed": "the values are those of the watermark",
        "update": "none: a window comes out whenever rows came for it, until the watermark has passed its end",
    }[definition.query.emit]
    if definition.idle is not None:
        behind += f", and no further than {duration_text(definition.idle)} more behind the clock"
    return f"{event}; the watermark is {behind}, and moves between micro-batches"
