"""Questions to a tile store in words: texts from a shell or a URL become names, keys and times, and answers become rows.

`option` is how the asker writes a parameter, such as --from or from: what is refused is said in those words.
"""

from __future__ import annotations

import csv
import datetime as dt
import difflib
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sash.errors import DefinitionError
from sash.time import duration, duration_text, timestamp, timestamp_text
from sash.wheel.errors import TileStoreError

if TYPE_CHECKING:
    from sash.wheel.keyed_wheels import KeyedWheels
    from sash.wheel.tile_store import TileStore

__all__ = [
    "bounds",
    "complete_to",
    "flat",
    "key_cells",
    "key_of",
    "key_text",
    "local_step",
    "moment",
    "names_of",
    "series",
    "show_times",
    "step_of",
    "time_cell",
]

_YEARS: Final = tuple(timestamp(dt.datetime(year, 1, 1)) for year in (1, 9999))  # what can be written as a date


# --- what is asked


def names_of(store: TileStore, given: Sequence[str] | None) -> list[str]:
    """The aggregations that are asked for, all of them where none is named; one text may name several, separated by commas."""
    known = list(store.aggs)
    names = known if not given else [name.strip() for text in given for name in text.split(",")]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise DefinitionError(
                f"{store.path} has no aggregation {name!r}. It has {', '.join(known)}." + (f" Did you mean {near[0]}?" if near else "")
            )
    return list(dict.fromkeys(names))


def key_of(store: TileStore, text: str, option: str) -> Any:
    """A key as text in the types of the store's key columns."""
    if not store.key:
        raise DefinitionError(f"{store.path} has no key. Leave {option} out.")
    parts = next(csv.reader([text]), []) if len(store.key) > 1 else [text]
    if len(parts) != len(store.key):
        raise DefinitionError(
            f"{option} {text!r} has {len(parts)} parts; the key is {', '.join(store.key)}. Write {option} {','.join(store.key).upper()}."
        )
    values = []
    for part, column in zip(parts, store.key, strict=True):
        kind = store.columns.get(column, "string")
        try:
            values.append(_value(part, kind))
        except ValueError:
            raise DefinitionError(f"{option} {text!r}: {part!r} is not a value of {column}, which is {kind}.") from None
    return values[0] if len(values) == 1 else tuple(values)


def _value(text: str, kind: str) -> Any:
    """Text as a value of an Arrow type; ValueError where it is none."""
    import datetime as dt
    import decimal

    if "int" in kind:
        return int(text)
    if kind in ("double", "float", "halffloat"):
        return float(text)
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if "binary" in kind:
        return text.encode("utf-8", "surrogateescape")
    if kind.startswith("date"):
        return dt.date.fromisoformat(text)
    if kind.startswith("timestamp"):
        moment = dt.datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or dt.UTC) if "tz=" in kind else moment
    if kind.startswith("decimal"):
        try:
            return decimal.Decimal(text)
        except decimal.InvalidOperation:
            raise ValueError(text) from None
    return text


def complete_to(store: TileStore, provisional: bool = False) -> int:
    """Up to where all slices are there, on the grain; TileStoreError where there are none yet, with `provisional` not even open ones."""
    if store.watermark is None or (store.span is None and not (provisional and store.provisional)):
        raise TileStoreError(f"{store.path} has no complete slice yet. Wait until the watermark of its stream has passed the first one.")
    return store.watermark // store.grain * store.grain


def moment(store: TileStore, text: str, option: str, tz: str | None = None, *, cut: bool = False, provisional: bool = False) -> int:
    """A time on the grain, there where a time zone is given, or a length of time back from the watermark.

    With `cut`, the slice that a time lies in begins there.
    """
    complete = complete_to(store, provisional)
    try:
        back = duration(text)
    except ValueError:
        try:
            at = timestamp(text if tz is None else _local(text, tz))
        except (ValueError, OverflowError) as error:
            raise DefinitionError(f"{option}: {error} Or a length of time back from the watermark, e.g. 7d.") from None
        if at % store.grain and not cut:
            raise DefinitionError(
                f"{option} {text} is not on the store's grain of {duration_text(store.grain)}. Use {timestamp_text(at - at % store.grain)}."
            ) from None
        return at - at % store.grain
    if not _YEARS[0] <= complete - back <= _YEARS[1]:
        raise DefinitionError(f"{option} {text} is farther from the watermark than dates go. Use less, e.g. 7d.")
    assert store.watermark is not None
    return (store.watermark - back) // store.grain * store.grain


def _local(text: str, tz: str) -> dt.datetime | str:
    """A time without an offset as one of a time zone."""
    from sash.wheel.calendar import zone

    try:
        at = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return text  # said by whoever reads it
    return at if at.tzinfo is not None else at.replace(tzinfo=zone(tz))


def bounds(
    store: TileStore,
    start: int | None,
    end: int | None,
    options: tuple[str, str],
    names: Iterable[str] = (),
    *,
    provisional: bool = False,
) -> tuple[int, int, list[str]]:
    """The time that is asked about, inside what there is of some aggregations; what had to be left out is said.

    With `provisional`, what there is reaches up to where slices are not final yet.
    """
    opened = store.provisional if provisional else None
    complete = complete_to(store, provisional)
    complete = complete if opened is None else max(complete, opened[1])
    span = store.span or opened
    assert span is not None
    first = store.kept_from if store.kept_from is not None else span[0]
    first = max([first, *(store.since[name] for name in names if name in store.since)])
    start, end = first if start is None else start, complete if end is None else end
    notes = []
    if end > complete:
        last = "the watermark" if opened is None else "all slices"
        notes.append(f"{options[1]} {timestamp_text(end)} is after {last}: the answer ends at {timestamp_text(complete)}")
        end = complete
    if start < first:
        notes.append(f"{options[0]} {timestamp_text(start)} is before the first tile: the answer begins at {timestamp_text(first)}")
        start = first
    if start > end:
        raise DefinitionError(
            f"nothing is complete between {timestamp_text(start)} and {timestamp_text(end)}. "
            f"{options[0]} must be before {options[1]} and the watermark."
        )
    return start, end, notes


def local_step(text: str, option: str, tz: str) -> str:
    """Days, weeks or months of a time zone, as they were written."""
    from sash.wheel.calendar import calendar_step, zone

    try:
        calendar_step(text), zone(tz)
    except ValueError as error:
        raise DefinitionError(f"{option}: {error}") from None
    return text


def step_of(store: TileStore, text: str, option: str) -> int:
    """A length of time that is a multiple of the grain."""
    try:
        every = duration(text)
    except ValueError as error:
        raise DefinitionError(f"{option}: {error}") from None
    if every < 1 or every % store.grain:
        raise DefinitionError(f"{option} {text} is not a multiple of the store's grain, {duration_text(store.grain)}.")
    return every


# --- what comes out


def series(
    wheels: KeyedWheels, key: Any, together: bool, start: int, end: int, every: int | str | None, tz: str | None = None
) -> list[tuple[int, Any]]:
    """(time, value) of a key, or of all keys together, for every step of a range; without steps, one for all of it."""
    if tz is not None and every is not None:
        return wheels.group_by_all(start, end, str(every), tz=tz) if together else wheels.group_by(key, start, end, str(every), tz=tz)
    assert not isinstance(every, str)
    if every is None:
        return [(start, wheels.query_all(start, end) if together else wheels.query(key, start, end))]
    first = start - start % every  # buckets begin at multiples, as everywhere; the first may be cut
    whole = start if first == start else min(first + every, end)
    head = [] if first == start else [(start, wheels.query_all(start, whole) if together else wheels.query(key, start, whole))]
    if whole >= end:
        return head
    rest: list[tuple[int, Any]] = wheels.group_by_all(whole, end, every) if together else wheels.group_by(key, whole, end, every)
    return head + rest


def time_cell(time: int, tz: str | None = None) -> str:
    """A time as text: UTC, or with its offset where a time zone is given."""
    if tz is None:
        return timestamp_text(time)
    from sash.wheel.calendar import zone

    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=time)
    return at.astimezone(zone(tz)).isoformat(" ", "minutes" if time % 60_000_000 == 0 else "auto")


def key_cells(store: TileStore, key: Any) -> list[Any]:
    """The values of a key, column by column."""
    return list(key) if isinstance(key, tuple) and len(store.key) != 1 else [key]


def key_text(key: Any) -> str:
    """A key as key_of() takes it."""
    if not isinstance(key, tuple):
        return str(key)
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(key)
    return out.getvalue()


def show_times(store: TileStore, name: str, values: Iterable[Any]) -> list[Any]:
    """Results of an aggregation: those that are times, e.g. max of a timestamp, as text; they came out as numbers."""
    if not store.columns.get(name, "").startswith("timestamp"):
        return list(values)
    return [None if value is None else timestamp_text(value) for value in values]


def flat(columns: list[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
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
