"""A stored state under a changed definition: taken where it holds all that the new one needs, else refused with what is missing.

What is stored are partials, a column per leaf of the aggregations, and rows that wait. So aggregations and columns may go, names may
change, and windows and look-backs may change as far as the slices and rows that are kept reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd
from typing import TYPE_CHECKING, Any

from sash import codec
from sash.engine.query import Query
from sash.engine.shapes import Hops, Lookback, Rolling, Rows, Windows
from sash.engine.slicer import pack_rows
from sash.time import duration_text, timestamp_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check", "stored_facts", "translated"]

_FIXED = ("time", "key", "tie", "emit", "session", "offset", "slide", "calendar", "tz", "history_until")


def stored_facts(query: Query) -> dict[str, Any]:
    """What a state says of itself beside its definition, so that another definition can read it."""
    return {"leaves": _leaves(query), "schema": query.schema.serialize().to_pybytes() if query.rolling is not None else b""}


def check(query: Query, stored: dict[str, Any]) -> None:
    """Raise a ValueError that names what a query needs and a state, stored with another definition, does not hold."""
    missing = list(_missing(query, stored))
    if missing:
        upto = stored["watermark"]
        until = "" if upto is None or not 0 < upto < 2**62 else f", history_until='{timestamp_text(upto)}'"
        raise ValueError(
            f"this state was stored with another definition: {'; '.join(missing)}. Restore the definition, or start a new checkpoint "
            f"with the rows so far behind it: {'windows' if query.rolling is None else 'rolling'}(..., history=rows{until})."
        )


def translated(query: Query, stored: dict[str, Any], blobs: Mapping[int, bytes]) -> dict[int, bytes]:
    """The blobs of a state as the query would have written them; a ValueError names what it needs and they do not hold."""
    check(query, stored)
    known = _stored_leaves(stored)
    places = [known.index(leaf) for leaf in _leaves(query)]
    schema = _stored_schema(query, stored)

    def written(kind: str, data: bytes) -> bytes:
        if kind == "slices":
            keys, slices, parts = codec.decode(codec.unseal("slices", None, data))
            if len(parts) != 4 + len(known):
                raise ValueError("this state is of an earlier version, and a struct of it can't be taken apart. Restore the definition.")
            chosen = [*parts[:4], *(parts[4 + place] for place in places)]
            return codec.seal("slices", query.fingerprint(), codec.encode((keys, slices, chosen)))
        if kind == "closed":  # keys and times
            return codec.seal("closed", query.fingerprint(), codec.unseal("closed", None, data))
        import pyarrow as pa

        if schema is None:
            raise ValueError("this state is of an earlier version, and its rows had other columns. Restore the columns.")
        batch = pa.ipc.read_record_batch(pa.py_buffer(codec.unseal("rows", None, data)), schema)
        return pack_rows(query, batch.select(query.schema.names))

    return {i: written(kind, blobs[i]) for i, (kind, *_) in stored["pieces"].items() if i in blobs}


# --- what is missing


def _missing(query: Query, stored: dict[str, Any]) -> Iterator[str]:
    was, now = stored["definition"], query.definition
    for name in _FIXED:
        if was.get(name) != now.get(name):
            yield _difference(name, was.get(name), now.get(name))
    yield from _missing_columns(query, was, now)
    if (was.get("at") is None) != (now.get("at") is None):
        yield _difference("at", was.get("at"), now.get("at"))
    elif was.get("at") is not None and was["at"][1] != now["at"][1]:
        yield _difference("at_time", was["at"][1], now["at"][1])
    known = set(_stored_leaves(stored))
    for name, a in query.aggs:
        if not {leaf for leaf in _leaves_of(a)} <= known:
            yield _new_aggregation(name, was, now)
    if isinstance(query.windows, Windows) and "range" in was:
        yield from _missing_panes(query.windows, was)
    elif query.rolling is not None and "look-backs" in was:
        yield from _missing_rows(query, was, stored["watermark"])
    elif ("range" in was) != ("range" in now) or ("look-backs" in was) != ("look-backs" in now):
        yield "its windows are of another kind"


def _missing_columns(query: Query, was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for field in query.schema:
        name = f"column {field.name}"
        if name not in was:
            if query.rolling is not None:
                yield f"column {field.name} is new, and rows that wait were stored without it"
        elif was[name] != now[name]:
            yield _difference(name, was[name], now[name])


def _new_aggregation(name: str, was: dict[str, Any], now: dict[str, Any]) -> str:
    part = f"aggregation {name}"
    before, after = was.get(part), now[part]
    if before is None:
        return f"{part} is new, {after[0]}, and was not kept"
    return f"{part} has other code or parameters than it had" if before[0] == after[0] else _difference(part, before[0], after[0])


def _missing_panes(windows: Windows, was: dict[str, Any]) -> Iterator[str]:
    unit = _count if "calendar" in was else duration_text
    ranges = [length for _, length in was.get("ranges", ())]
    if windows.range > was["range"]:
        yield f"range was {unit(was['range'])}, is {unit(windows.range)}: what is older than {unit(was['range'])} was not kept"
    grain = 1 if "calendar" in was else gcd(was["range"], was["slide"], *ranges)
    if windows.grain != grain:
        yield f"slices were of {unit(grain)}, would be of {unit(windows.grain)}: ranges and slide have another common divisor"
    if windows.empty_once and "empty" not in was:
        yield "empty was absent, is once: keys that fell silent were not kept"


def _missing_rows(query: Query, was: dict[str, Any], watermark: int | None) -> Iterator[str]:
    assert query.rolling is not None
    if watermark is None:
        return  # nothing was let go yet
    old = Rolling(tuple((label, _lookback(p)) for label, p in was["look-backs"]), was["closed"], was["delay"])
    at = watermark - (query.emit == "changed")
    kept, exact = old.oldest_time(at), old.exact_from(at)
    for label, period in query.rolling.lookbacks:
        alone = Rolling(((label, period),), query.rolling.closed, query.rolling.delay if not isinstance(period, Rows) else 0)
        if isinstance(period, Rows):
            covered = period.n <= old.kept_rows
        elif period is None:
            covered = old.whole_past and query.rolling.delay <= old.delay
        elif isinstance(period, Hops):
            first = period.begin(at + 1 - query.rolling.delay)
            covered = first >= exact or (first >= kept and old.hop > 0 and period.hop % old.hop == 0 and alone.exact_from(at) >= exact)
        else:
            covered = alone.exact_from(at) >= exact
        if not covered:
            yield f"look-back {label} reaches further back than the rows that were kept"


# --- what is stored


def _leaves(query: Query) -> list[bytes]:
    return [leaf for _, a in query.aggs for leaf in _leaves_of(a)]


def _leaves_of(a: Any) -> list[bytes]:
    return [leaf for _, part in a.parts for leaf in _leaves_of(part)] if a.parts else [codec.fingerprint(a.facts())]


def _stored_leaves(stored: dict[str, Any]) -> list[bytes]:
    """The leaves of a stored state; states of earlier versions do not say them, and have one per aggregation or can't be read."""
    was = stored["definition"]
    return stored.get("leaves") or [was[f"aggregation {name}"][1] for name in was["aggregations"]]


def _stored_schema(query: Query, stored: dict[str, Any]) -> pa.Schema | None:
    import pyarrow as pa

    if stored.get("schema"):
        return pa.ipc.read_schema(pa.py_buffer(stored["schema"]))
    names = [name.removeprefix("column ") for name in stored["definition"] if name.startswith("column ")]
    return pa.schema([query.schema.field(name) for name in names]) if {*names} <= {*query.schema.names} else None


def _lookback(plain: Any) -> Lookback:
    if isinstance(plain, tuple):
        return Rows(plain[1]) if plain[0] == "rows" else Hops(plain[1], plain[2])
    return None if plain is None else int(plain)


def _count(units: int) -> str:
    return str(units)


def _difference(name: str, was: Any, now: Any) -> str:
    if name == "history_until":
        was, now = (None if x is None else timestamp_text(x) for x in (was, now))
    return f"{name} was {'absent' if was is None else was}, is {'absent' if now is None else now}"
