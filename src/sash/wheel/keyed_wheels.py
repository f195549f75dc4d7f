"""Wheels of many keys under one clock."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

import numpy as np

from sash import codec
from sash._core import KeyedWheelsCore
from sash.agg.base import Aggregation
from sash.agg.forms import Tile
from sash.containers import column as read_column
from sash.containers import objects, sized
from sash.swag.columns import numbers
from sash.time import Duration
from sash.wheel.answers import buckets, units
from sash.wheel.errors import Misaligned, length_text, time_text
from sash.wheel.plan import explained
from sash.wheel.replays import is_new, remember, taken_over
from sash.wheel.shape import LEVELS, Retention, Shape

__all__ = ["KeyedWheels"]

ALL_KEYS: Final = object()  # None is a key
FEW: Final = 64  # slots of a key that are folded one by one: a plan over its coarser levels costs as much


class KeyedWheels:
    """A wheel per key, and one of all keys together, under one watermark.

    A key holds only the slots for which something arrived: a million keys with a few events each are cheap, and a question about a
    key reads what it holds, never the empty time between. Keys are ints, text, bytes, floats, bools, None, and tuples of these;
    ``1``, ``"1"`` and ``(1,)`` are three keys.

    Cost: an insert is two combines; a query of a key at most one per slot that holds something, as ``explain`` says; memory about 24
    bytes per key and slot for a sum of integers, 16 for one of floats.

    >>> from sash import agg
    >>> k = KeyedWheels(agg.sum(), unit="s")
    >>> k.insert_many(["a", "b", "a"], [1, 2, 3], times=[0, 59, 60])
    0
    >>> k.advance_to(3600)
    >>> k.query("a", 0, 60), k.landmark("a"), k.landmark("nobody")
    (1, 4, 0)
    >>> k.query_all(0, 60), k.top(1, 0, 3600)
    (3, [('a', 4)])
    """

    def __init__(
        self,
        aggregation: Aggregation,
        start: Any = 0,
        unit: str = "us",
        grain: Duration = "1s",
        levels: Iterable[Duration] = LEVELS,
        retention: Retention | Mapping[Duration, Retention] = "keep",
        write_ahead: int = 64,
        *,
        dtype: str | None = None,
        _few: int = FEW,
    ) -> None:
        if not isinstance(aggregation, Aggregation):
            raise TypeError(f"{aggregation!r} is not an aggregation. Pass one of sash.agg, e.g. KeyedWheels(agg.sum()).")
        if not aggregation.associative:
            raise TypeError(f"{aggregation.name} is not associative. A wheel needs that; only Recalc does not.")
        shape = Shape.read(unit, grain, levels, retention, "plain")
        if not isinstance(write_ahead, int) or isinstance(write_ahead, bool) or not 1 <= write_ahead <= 2**26:
            raise ValueError(f"write_ahead={write_ahead!r} is not a number of grains. Use 1 to 2**26.")
        begin = shape.time(start)
        if begin % shape.grain:
            raise Misaligned(
                f"start {begin} is not a multiple of the grain, {length_text(shape.grain, shape.micros)}. "
                f"Use {begin - begin % shape.grain} or another that is."
            )
        sizes = (shape.grain, *shape.levels)
        rows = [(size // shape.grain, retain) for size, retain in zip(sizes, shape.retain, strict=True)]
        self._core = KeyedWheelsCore(aggregation.with_unit(shape.micros), dtype, shape.micros, shape.grain, begin, rows, write_ahead, _few)
        self._shape = shape
        self._merged: dict[str, int] = {}
        self._options: dict[str, Any] = {
            "unit": unit,
            "grain": shape.grain,
            "levels": shape.levels,
            "retention": {size: retain or "keep" for size, retain in zip(sizes, shape.retain, strict=True)},
            "write_ahead": write_ahead,
            "dtype": dtype,
            "_few": _few,
        }

    # --- in

    def insert(self, key: Hashable, value: Any, time: Any) -> bool:
        """Add an item of a key; False if it is late, that is older than the watermark: refused, and counted in ``late``."""
        return self._core.insert(key, value, time)

    def insert_many(self, keys: Any, values: Any, times: Any) -> int:
        """Add whole columns, and tell how many items were late: the main path, fast for NumPy and Arrow.

        Several key columns are a tuple or a list of arrays; a key is then the tuple of their values.

        >>> from sash import agg
        >>> import numpy as np
        >>> k = KeyedWheels(agg.max(), unit="s")
        >>> k.insert_many((np.array([1, 1, 2]), ["x", "y", "x"]), [7, 8, 9], [0, 1, 2])
        0
        >>> k.keys()
        [(1, 'x'), (1, 'y'), (2, 'x')]
        """
        columns, together = _key_columns(keys)
        return self._core.insert_many(columns, together, values, self._shape.times(times))

    def insert_slices(self, keys: Any, times: Any, partials: Any) -> int:
        """Add partials of whole grains, combined elsewhere (tiles), and tell how many were late.

        ``times`` are the starts of the grains. A slice combines with what its key holds of that grain already, as what came later. It is
        late, refused and counted once its grain is closed: history is loaded into wheels that start before it and have not been advanced
        past it, in any order; then ``advance_to`` the watermark. ``partials`` are what ``tiles`` store:

        - ``sum``, ``count``, ``min``, ``max``, ``first``, ``last``, ``bit_and``, ``bit_or``: a column of numbers, null where there is none;
        - ``mean``: a mapping (or a pair) of columns ``sum`` and ``count``; ``minmax``, ``relvar``: of ``min`` and ``max``;
        - ``struct`` of these: a mapping of part to what the part takes;
        - all else: a list of partials, as ``aggregation.combine`` takes them.

        >>> from sash import agg
        >>> k = KeyedWheels(agg.mean(), unit="s", grain="1m")
        >>> k.insert_slices(["a", "a"], [0, 60], {"sum": [10.0, 2.0], "count": [4, 2]}); k.advance_to(120)
        0
        >>> k.query("a", 0, 120)
        2.0
        """
        starts = self._shape.times(times)
        if (off := starts % self._shape.grain).any():
            bad = int(starts[int(np.flatnonzero(off)[0])])
            raise Misaligned(
                f"a slice starts at {bad}, which is not a multiple of the grain, {length_text(self._shape.grain, self._shape.micros)}. "
                "Use wheels whose grain is that of the slices."
            )
        columns, together = _key_columns(keys)
        a = self.aggregation
        apart = bool(a.parts) and isinstance(partials, Mapping)
        tiles = [part.tile for _, part in a.parts] if apart else [None if a.parts else a.tile]
        given = [partials[name] for name, _ in a.parts] if apart else [partials]
        known = [tile for tile in tiles if tile is not None]
        if self._core.dtype != "object" and len(known) == len(tiles):
            flat = [column for tile, part in zip(known, given, strict=True) for column in _fields(part, tile.fields)]
            read = [numbers(column) for column in flat]
            if all(column is not None for column in read):
                for column in flat:
                    if len(column) != len(starts):
                        raise ValueError(f"there are {len(column)} partials but {len(starts)} times. Pass one time per slice.")
                return self._core.insert_slices(columns, together, [tile.form for tile in known], read, starts)
        if apart:
            each = [_listed(part, tile, column) for (_, part), tile, column in zip(a.parts, tiles, given, strict=True)]
            partials = list(zip(*each, strict=True))
        elif not a.parts:
            partials = _listed(a, a.tile, partials)
        return self._core.insert_partials(columns, together, list(partials), starts)

    def advance_to(self, time: Any) -> None:
        """Move the watermark of all keys. A time before it changes nothing."""
        self._core.advance_to(time)

    # --- one key

    def query(self, key: Hashable, start: Any, end: Any, *, clamp: bool = False, arg: Any = None) -> Any:
        """Give the value of a key in [start, end); of a key that is not known, the empty result; with clamp, before the watermark."""
        return self._core.key_query(key, start, end, arg, clamp)

    def landmark(self, key: Hashable, *, arg: Any = None) -> Any:
        """Give the value of everything of a key before the watermark."""
        return self._core.key_landmark(key, arg)

    def interval(self, key: Hashable, length: Duration, *, arg: Any = None) -> Any:
        """Give the value of a key in the last ``length`` before the watermark, or before the grain that it lies in."""
        whole = units(self._core, length)
        if whole < 0:
            raise ValueError(f"interval({length!r}) is negative. Use the length of time before the watermark.")
        return self._core.key_interval(key, whole, arg)

    def group_by(self, key: Hashable, start: Any, end: Any, every: Duration, *, tz: str | None = None) -> list[tuple[int, Any]]:
        """Give (bucket start, value) of a key, empty buckets included; the last ends at ``end``.

        With a time zone, ``every`` is whole days, weeks (from Monday) or months there, which begin at local midnights.
        """
        return [(first, self.query(key, first, last)) for first, last in buckets(self._core, start, end, every, tz)]

    # --- all keys

    def query_all(self, start: Any, end: Any, *, clamp: bool = False, arg: Any = None) -> Any:
        """Give the value of [start, end) over all keys together."""
        return self._core.query(start, end, clamp=clamp, arg=arg)

    def landmark_all(self, *, arg: Any = None) -> Any:
        """Give the value of everything before the watermark, over all keys together."""
        return self._core.landmark(arg=arg)

    def group_by_all(self, start: Any, end: Any, every: Duration, *, tz: str | None = None) -> list[tuple[int, Any]]:
        """Give (bucket start, value) over all keys together, empty buckets included."""
        return self._core.group_by(start, end, every, tz=tz)

    def query_each(self, start: Any, end: Any, *, clamp: bool = False) -> tuple[list[Any], list[Any]]:
        """Give the keys that hold something in [start, end), in order of first arrival, and their values.

        >>> from sash import agg
        >>> k = KeyedWheels(agg.count(), unit="s"); _ = k.insert_many(["a", "b", "a"], [1, 1, 1], [0, 60, 61]); k.advance_to(120)
        >>> k.query_each(60, 120)
        (['a', 'b'], [1, 1])
        """
        keys, values = self._core.query_each(start, end, clamp)
        return keys, values

    def top(self, n: int, start: Any, end: Any, *, clamp: bool = False) -> list[tuple[Any, Any]]:
        """Give the n keys of the largest values in [start, end), largest first; of equal ones, that which came first.

        Keys without a value (None) are left out; NaN is larger than any number.
        """
        if n < 0:
            raise ValueError(f"n={n} is negative. Use the number of keys wanted.")
        found = self._core.top(n, start, end, clamp)
        if found is None:
            keys, values = self.query_each(start, end, clamp=clamp)
            rows = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
            found = sorted(rows, key=lambda row: _rank(row[1]), reverse=True)[:n]  # stable, also in reverse
        return list(found)

    def explain(self, start: Any, end: Any, key: Hashable = None) -> str:
        """Say how a range is answered: over all keys, or for one that is not None.

        >>> from sash import agg
        >>> k = KeyedWheels(agg.max(), unit="s"); _ = k.insert_many(["a"] * 3, [1, 2, 3], [0, 70, 4000]); k.advance_to(7200)
        >>> print(k.explain(0, 7200, "a"))
        max of 'a' over [0, 7200)    2 combines for the 3 slots that hold something: 1s x 3
        """
        if key is None:
            return str(explained(self._core, start, end, False))
        reads = self._core.slots_read(key, start, end)
        sizes = (self._shape.grain, *self._shape.levels)
        total = sum(reads)
        asked = [time_text(self._shape.time(time), self._shape.micros) for time in (start, end)]
        told = ", ".join(f"{length_text(size, self._shape.micros)} x {n:,}" for size, n in zip(sizes, reads, strict=True) if n)
        return (
            f"{self.aggregation.name} of {key!r} over [{asked[0]}, {asked[1]})    {max(total - 1, 0):,} combines for the {total:,} slots "
            f"that hold something" + (f": {told}" if told else "")
        )

    def combines(self, start: Any, end: Any, *, key: Hashable = ALL_KEYS) -> int:
        """Tell how many combines a range takes: over all keys, or for one.

        >>> from sash import agg
        >>> k = KeyedWheels(agg.max(), unit="s"); _ = k.insert_many(["a"] * 3, [1, 2, 3], [0, 70, 4000]); k.advance_to(7200)
        >>> k.combines(0, 3660), k.combines(0, 7200, key="a")
        (1, 2)
        """
        if key is ALL_KEYS:
            return explained(self._core, start, end, False).combines
        return max(sum(self._core.slots_read(key, start, end)) - 1, 0)

    # --- what there is

    @property
    def aggregation(self) -> Aggregation:
        """What is aggregated."""
        return self._core.aggregation

    @property
    def start(self) -> int:
        """Where the wheels begin; before it, nothing can be asked."""
        return self._core.start

    @property
    def watermark(self) -> int:
        """Up to here, not included, everything has arrived, for every key."""
        return self._core.watermark

    @property
    def late(self) -> int:
        """How many items and slices were late, and refused."""
        return self._core.late

    @property
    def memory(self) -> int:
        """The bytes that keys, slots and open grains take."""
        return self._core.nbytes

    @property
    def dtype(self) -> str:
        """The item type: int64, float64 or object."""
        return self._core.dtype

    def keys(self) -> list[Any]:
        """List the keys in order of first arrival; one whose items were all late is not among them."""
        return self._core.keys()

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._core)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return self._core.has(key)

    def check(self) -> None:
        """Verify every invariant, and say in words which one broke."""
        self._core.check()

    # --- together and apart

    def merge(self, other: KeyedWheels, *, source: str | None = None, sequence: int | None = None) -> bool:
        """Take in wheels fed by another stream, of equal grain and levels; the watermark becomes the smaller.

        Within a grain, these wheels' items come first. Both must keep all their grains (``retention="keep"``). Cost: O(slots held).

        A merge that may come twice says what it is: with ``source`` and ``sequence``, the number of a delta of that source, a delta that
        was merged before changes nothing. Gives whether it was taken in.
        """
        if not isinstance(other, KeyedWheels):
            raise TypeError(f"{other!r} are not keyed wheels. Merge keyed wheels of the same aggregation.")
        if self.aggregation != other.aggregation:
            raise ValueError(f"one aggregates {self.aggregation!r}, the other {other.aggregation!r}. Merge wheels of one aggregation.")
        mine, theirs = self._shape, other._shape
        if (mine.micros, mine.grain, mine.levels) != (theirs.micros, theirs.grain, theirs.levels):
            raise ValueError(f"one has {mine.text()}, the other {theirs.text()}. Merge wheels of equal unit, grain and levels.")
        if not is_new(self._merged, source, sequence):
            return False
        self._core.merge(other._core)
        remember(self._merged, source, sequence, other._merged)
        return True

    def to_bytes(self) -> bytes:
        """Store everything as bytes, in the codec's envelope with the fingerprint of the aggregation."""
        return codec.seal("keyed wheels", self.aggregation.fingerprint(), codec.encode((self._stored_options(), self._core.state())))

    @classmethod
    def from_bytes(cls, data: bytes, aggregation: Aggregation) -> Self:
        """Read what ``to_bytes`` stored; ValueError for damaged bytes or another definition's."""
        payload = codec.unseal("keyed wheels", aggregation.fingerprint(), data)
        with codec.refusing():
            options, state = codec.decode(payload)
            return _rebuilt(cls, aggregation, options, state)

    def _stored_options(self) -> dict[str, Any]:
        return {**self._options, "merged": dict(self._merged)} if self._merged else self._options

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (type(self), self.aggregation, self._stored_options(), self._core.state()))

    def __copy__(self) -> Self:
        return _rebuilt(type(self), self.aggregation, self._stored_options(), self._core.state())

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<KeyedWheels of {self.aggregation!r}, {len(self):,} keys, {self._shape.text()}, from {self.start} to {self.watermark}>"


K = TypeVar("K", bound=KeyedWheels)


def _rebuilt(cls: type[K], aggregation: Aggregation, options: dict[str, Any], state: tuple[Any, ...]) -> K:
    options, merged = taken_over(options)
    wheels = cls(aggregation, start=state[2], **options)
    wheels._core.restore(state)
    wheels._merged = merged
    return wheels


def _rank(value: Any) -> tuple[Any, ...]:
    """Order results: NaN is larger than any number, also within tuples."""
    if isinstance(value, tuple | list):
        return (0, [_rank(part) for part in value])
    return (1, 0) if isinstance(value, float) and value != value else (0, value)


# --- columns of keys

_LETTERS: dict[str, tuple[str, str]] = {  # of an Arrow type: the letter of a key's type, and what it is cast to
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), ("i", "int64")),
    **dict.fromkeys(("halffloat", "float", "double"), ("f", "double")),
    "bool": ("b", "bool"),
    "string": ("s", "string"),
    "large_string": ("s", "large_string"),
    "string_view": ("s", "large_string"),
    "binary": ("y", "binary"),
    "large_binary": ("y", "large_binary"),
}


def _key_columns(keys: Any) -> tuple[Any, bool]:
    """Read keys for the core: (an int64 array, or pairs of letter and Arrow array, or a list of Python keys; whether keys are tuples)."""
    if isinstance(keys, str | bytes):
        raise TypeError(f"{keys!r} is one key, not a column. Pass a list of keys, or use insert().")
    if isinstance(keys, tuple | list) and keys and all(_is_column(column) for column in keys):
        lengths = [len(column) for column in keys]
        if len(set(lengths)) > 1:
            raise ValueError(f"the key columns have {', '.join(map(str, lengths))} rows. Pass columns of one length.")
        columns = [_as_arrow(_key_column(column)) for column in keys]
        if all(isinstance(column, tuple) for column in columns):
            return tuple(columns), True
        return list(zip(*map(objects, keys), strict=True)), False
    column = _key_column(keys)
    if isinstance(column, tuple):
        return (column,), False
    return column, False


def _is_column(value: Any) -> bool:
    return isinstance(value, list) or (hasattr(value, "__len__") and not isinstance(value, str | bytes | tuple | Mapping))


def _key_column(column: Any) -> Any:
    """One column: a pair of letter and Arrow array, an int64 array, or a list of Python keys."""
    column = sized(column, "a column of keys")
    if hasattr(column, "to_arrow"):  # Polars: by way of Arrow, where it is installed
        try:
            column = column.to_arrow()
        except ImportError:
            return objects(column)
    if hasattr(column, "combine_chunks") or hasattr(column, "buffers"):
        return _arrow_column(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "US" and column.ndim == 1 and column.size > 1_000:  # the same
        try:
            import pyarrow as pa
        except ImportError:
            return column.tolist()
        return _arrow_column(pa.array(column))
    if isinstance(column, list | tuple) and not set(map(type, column)) <= {int}:
        return objects(column)  # True is no 1 among keys
    read = read_column(column)
    whole = read.values.dtype.kind == "i" or (read.values.dtype.kind == "u" and (not read.values.size or read.values.max() < 2**63))
    return np.ascontiguousarray(read.values, np.int64) if whole and read.nulls is None else objects(column)


def _as_arrow(column: Any) -> Any:
    """An int64 array as a pair of letter and Arrow array, where Arrow is installed."""
    if not isinstance(column, np.ndarray):
        return column
    try:
        import pyarrow as pa
    except ImportError:
        return column
    return "i", pa.array(column)


def _arrow_column(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    known = _LETTERS.get(str(column.type))
    if known is None or (str(column.type) == "uint64" and (pc.max(column).as_py() or 0) >= 2**63):
        return column.to_pylist()
    letter, wanted = known
    return letter, column if str(column.type) == wanted else column.cast(getattr(pa, {"double": "float64"}.get(wanted, wanted))())


# --- partials of slices


def _fields(partials: Any, fields: Sequence[str]) -> list[Any]:
    """The columns that partials consist of."""
    if not fields:
        return [partials]
    if isinstance(partials, Mapping):
        return [partials[name] for name in fields]
    if hasattr(partials, "field") and hasattr(partials, "type"):  # an Arrow struct
        if hasattr(partials, "combine_chunks"):
            partials = partials.combine_chunks()
        return list(partials.flatten())
    if isinstance(partials, np.ndarray) and partials.dtype.names:
        return [partials[name] for name in fields]
    if isinstance(partials, list | tuple) and len(partials) == len(fields) and all(_is_column(column) for column in partials):
        return list(partials)
    rows = list(partials)
    if rows and isinstance(rows[0], Mapping):
        return [[None if row is None else row[name] for row in rows] for name in fields]
    return [[None if row is None else row[i] for row in rows] for i in range(len(fields))]


def _listed(aggregation: Aggregation, tile: Tile | None, partials: Any) -> Any:
    """Columns of one aggregation's partials as a list of Python's partials; a list of these stays as it is."""
    if tile is None or (tile.form == "value" and isinstance(partials, list)):
        return partials
    return _as_partials(aggregation, tile, [objects(column) for column in _fields(partials, tile.fields)])


def _as_partials(aggregation: Aggregation, tile: Tile, columns: list[list[Any]]) -> list[Any]:
    """Columns of plain values as Python partials, for wheels of Python objects."""
    if tile.join is not None:
        return [tile.join(*values) for values in zip(*columns, strict=True)]
    zero = aggregation.identity()
    return [zero if value is None else value for value in columns[0]]
