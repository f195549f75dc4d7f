"""What is aggregated: the one class that every factory returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from sash import codec
from sash.agg.forms import CODEC, Blob, Rank, Result, Sql, Tile
from sash.callables import value_facts
from sash.containers import NULLS
from sash.errors import Undescribed

__all__ = ["INT64_MAX", "INT64_MIN", "Aggregation", "ItemType", "Native", "Traits", "fits_int64"]

ItemType = Literal["int64", "float64", "object"]
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class Native(NamedTuple):
    """How the core runs an aggregation on one item type: a kernel, its numbers, and how to lower each field."""

    kernel: str
    params: tuple[float, ...]
    lowers: tuple[str, ...]
    result: type[tuple[Any, ...]] | None  # a named tuple for several fields, None for one


class Traits(NamedTuple):
    """What an algorithm may rely on."""

    invertible: bool = False
    commutative: bool = False
    associative: bool = True
    selective: bool = False
    size_preserving: bool = True
    parametric: bool = False
    exact: bool = True


_NO_TRAITS: Final = Traits()


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Aggregation:
    """An immutable definition of what is computed: lift, combine, lower, identity, and traits.

    The Python functions here are the specification, and what runs for items that are Python objects; for int64 and
    float64 items the core runs the kernel that ``native`` names, which the tests hold equal to them.

    >>> from sash import agg
    >>> mean = agg.mean()
    >>> mean.lower(mean.combine(mean.lift(1), mean.lift(4)))
    2.5
    >>> agg.max().selective, agg.max().invertible
    (True, False)
    """

    name: str
    zero: Any
    lift_function: Callable[[Any, Any], Any]
    combine_function: Callable[[Any, Any], Any]
    lower_function: Callable[..., Any]
    inverse_function: Callable[[Any, Any], Any] | None = None
    traits: Traits = _NO_TRAITS
    column: str | None = None
    where: Callable[[Any], bool] | str | None = None
    dtype: ItemType | None = None
    params: tuple[tuple[str, Any], ...] = ()
    parts: tuple[tuple[str, Aggregation], ...] = ()
    natives: Callable[[ItemType], Native | None] | None = None
    run_time: Callable[[ItemType], Native | None] | None = None  # a kernel that only windows and slides run: see kernel()
    from_native: Callable[[bytes], Any] | None = None  # the Python form of such a kernel's partial, to lower it with arg
    in_slices: Callable[[ItemType], Native | None] | None = None  # the kernel of the engine, where it is another: see slice_kernel()
    exact_inverse: bool = False  # on integers the inverse gives back every bit, so it may be chosen without being asked for
    counts: bool = False  # its partial holds integers whatever the items are, so its inverse is exact on floats too
    in_unit: Callable[[int], Aggregation] | None = None  # makes it for times in units of so many microseconds: see with_unit()
    reads_time: bool = False  # a partial holds the time of its items, not their values alone
    ties: bool = False  # of items with one time, the engine's tie column decides which counts
    null_in_frames: bool = False  # where there is no value, a frame holds null as in SQL, and a window gives a number
    reads: tuple[str, ...] = ()  # the names of the parameters that are columns
    result: Result | None = None  # of which type the result is; None: the type is found by trying a made-up item
    rank: Rank | None = None  # what of the sorted items is the result
    tile: Tile | None = None  # the columns that hold the partial in a tile; None: bytes
    blob: Blob = CODEC  # those bytes
    sql: Sql | None = None  # how SQL makes slices of it; None: only we can
    callables: bool = False  # made of the user's callables: stored bytes need a name
    named: bool = True
    source: Mapping[str, Any] | None = None  # the arguments of define(), to pickle it by

    # --- traits, by the names of the papers

    @property
    def invertible(self) -> bool:
        """Whether ``inverse`` exists."""
        return self.inverse_function is not None

    @property
    def commutative(self) -> bool:
        """Whether the order of the arguments of combine does not matter."""
        return self.traits.commutative

    @property
    def associative(self) -> bool:
        """Whether the grouping of combines does not matter; only Recalc takes one that is not."""
        return self.traits.associative

    @property
    def selective(self) -> bool:
        """Whether combine returns one of its arguments."""
        return self.traits.selective

    @property
    def size_preserving(self) -> bool:
        """Whether a combined partial is no larger than a lifted one."""
        return self.traits.size_preserving

    @property
    def parametric(self) -> bool:
        """Whether ``query(arg=...)`` is understood."""
        return self.traits.parametric

    @property
    def exact(self) -> bool:
        """Whether the result is exact; False for sketches only."""
        return self.traits.exact

    # --- the monoid

    def identity(self) -> Any:
        """Give the partial of nothing."""
        return self.zero

    def lift(self, x: Any, time: Any = None) -> Any:
        """Make a partial of one item; of None, and of what ``where`` refuses, the identity."""
        value = self.value_of(x)
        return self.zero if value is None or type(value).__name__ in NULLS else self.lift_function(value, time)

    def combine(self, a: Any, b: Any) -> Any:
        """Combine two partials, the older one on the left."""
        return self.combine_function(a, b)

    def inverse(self, whole: Any, oldest: Any) -> Any:
        """Take the oldest part away: ``inverse(combine(a, b), a) == b``."""
        if self.inverse_function is None:
            raise TypeError(f"{self.name} has no inverse. Use an algorithm that needs none, e.g. DabaLite.")
        return self.inverse_function(whole, oldest)

    def lower(self, p: Any, arg: Any = None) -> Any:
        """Turn a partial into the result; ``arg`` for parametric aggregations."""
        if arg is None:
            return self.lower_function(p)
        if not self.parametric:
            raise TypeError(f"{self.name} takes no arg. Leave it out; aggregations that take one have the trait parametric.")
        return self.lower_function(p, arg)

    # --- items

    def value_of(self, x: Any) -> Any:
        """Pick what this aggregation looks at out of an item: its column of a record, None where ``where`` refuses it."""
        if x is None or (self.where is not None and not self._accepts(x)):
            return None
        if self.column is not None and isinstance(x, Mapping):
            return x[self.column]
        return x

    def _accepts(self, x: Any) -> bool:
        if isinstance(self.where, str):
            return bool(x[self.where])
        assert self.where is not None
        return bool(self.where(x))

    def native(self, item_type: ItemType) -> Native | None:
        """Name the kernel that runs this aggregation on items of a type, None where only Python can."""
        return self.natives(item_type) if self.natives is not None else None

    def kernel(self, item_type: ItemType) -> Native | None:
        """Name the kernel that windows run: that of ``native``, or one whose partial is known at run time only."""
        return self.run_time(item_type) if self.run_time is not None else self.native(item_type)

    def with_unit(self, micros: int) -> Aggregation:
        """Give the same definition for times that count units of so many microseconds; it equals this one."""
        if self.parts and self.reads_time:
            return _remake("struct", {name: part.with_unit(micros) for name, part in self.parts}, self.dtype)
        return self if self.in_unit is None else self.in_unit(micros)

    def slice_kernel(self, item_type: ItemType) -> Native | None:
        """Name the kernel that the engine runs on slices, None where only Python can."""
        return self.in_slices(item_type) if self.in_slices is not None else self.native(item_type)

    # --- what other rooms ask

    @property
    def looks_at_items(self) -> bool:
        """Whether it matters what the items are; to a count it does not."""
        return self.native("object") is None

    @property
    def median_like(self) -> bool:
        """Whether a structure that keeps the items sorted gives the result: what ``swag.OrderStatistics`` computes."""
        return self.rank is not None and not self.rank.lists

    @property
    def empty(self) -> Any:
        """The result of nothing."""
        return self.lower_function(self.zero)

    def inverts_exactly(self, item_type: ItemType | None) -> bool:
        """Tell whether ``inverse`` gives back every bit on items of a type; None: of any type."""
        return self.invertible and self.exact_inverse and (item_type == "int64" or self.counts)

    @property
    def lacks_column(self) -> bool:
        """Whether it needs a column of a record and names none."""
        params = dict(self.params)
        named = self.column is not None or (bool(self.reads) and all(params.get(name) is not None for name in self.reads))
        return self.looks_at_items and not self.callables and not named

    def columns(self) -> tuple[tuple[str, Any], ...]:
        """Give (argument, column) for every column that a record must have."""
        params = dict(self.params)
        named = (("column", self.column), ("where", self.where), *((name, params.get(name)) for name in self.reads))
        return tuple((argument, column) for argument, column in named if isinstance(column, str))

    # --- identity of definitions

    def facts(self) -> Any:
        """Describe the definition as plain data: what a fingerprint covers; ``Undescribed`` where that can't be done exactly."""
        where = value_facts(self.where) if callable(self.where) else self.where
        functions: tuple[Any, ...] = ()
        if self.callables:
            made_of = (self.lift_function, self.combine_function, self.lower_function, self.inverse_function)
            functions = tuple(value_facts(part) for part in (*made_of, self.zero))
        parts = tuple((name, part.facts()) for name, part in self.parts)
        params = tuple((k, value_facts(v) if callable(v) else v) for k, v in self.params)
        return (self.name, self.column, where, self.dtype, params, parts, functions)

    def fingerprint(self) -> bytes:
        """Give 16 bytes that differ where the definition does; user aggregations need a name."""
        for _, part in (*self.parts, ("", self)):
            if part.callables and not part.named:
                raise ValueError("an aggregation made of callables needs a name to be stored. Pass name= to define().")
        return codec.fingerprint(self.facts())

    def replace(self, **changes: Any) -> Aggregation:
        """Give the same aggregation with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __reduce__(self) -> tuple[Any, ...]:
        # By factory and arguments: the functions inside are closures, which only cloudpickle could carry.
        if self.source is not None:
            return (_remake, ("define", dict(self.source), self.dtype))
        if self.parts:
            return (_remake, ("struct", dict(self.parts), None))
        return (_remake, (self.name, {"column": self.column, "where": self.where, **dict(self.params)}, self.dtype))

    def __copy__(self) -> Aggregation:
        return self

    def __deepcopy__(self, memo: Any) -> Aggregation:
        return self

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Aggregation):
            return self is other
        if (self.name, self.column) != (other.name, other.column):
            return False
        try:  # by their bytes: 1, 1.0 and True are equal in Python, and not what a definition means by them
            return codec.encode(self.facts()) == codec.encode(other.facts())
        except Undescribed:
            return False

    def __hash__(self) -> int:
        return hash((self.name, self.column, len(self.params)))

    def __repr__(self) -> str:
        arguments = [repr(self.column)] if self.column is not None else []
        arguments += [f"{key}={value!r}" for key, value in self.params]
        arguments += [f"{name}={part!r}" for name, part in self.parts]
        return f"agg.{self.name}({', '.join(arguments)})"


def fits_int64(value: Any) -> Any:
    """Pass a result on, or raise OverflowError where an integer does not fit int64."""
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"the result {value} does not fit int64. Use float items (dtype='float64') or a smaller window.")
    return value


def _remake(factory: str, arguments: dict[str, Any], dtype: ItemType | None) -> Aggregation:
    from sash import agg

    made: Aggregation = getattr(agg, factory)(**arguments)
    return made if made.dtype == dtype else made.replace(dtype=dtype)
