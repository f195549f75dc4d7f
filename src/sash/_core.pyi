"""The types of the native core, written by `make stubs`: change the bindings, or tools/stubs.pat."""

from collections.abc import Sequence
from typing import Any, Self

import numpy
from numpy.typing import NDArray

from sash.agg.base import Aggregation

def register_hooks(**hooks: Any) -> None:
    """Give the bodies of methods of the core that are written in Python, by name."""

class Algorithm:
    """
    The entry of an algorithm: what it can do, what it needs, what it costs.
    """

    @property
    def name(self) -> str: ...
    @property
    def time(self) -> str:
        """Combines per operation."""

    @property
    def space(self) -> str:
        """Partials."""

    @property
    def paper(self) -> str: ...
    @property
    def in_order(self) -> bool:
        """Whether times must not decrease."""

    @property
    def ranges(self) -> bool:
        """Whether query(start, end) is answered."""

    @property
    def suffixes(self) -> bool:
        """Whether it is answered for ends at the youngest entry."""

    @property
    def items(self) -> bool:
        """Whether it still has its items."""

    @property
    def anywhere(self) -> bool:
        """Whether evict(time) removes an entry anywhere."""

    @property
    def counts_times(self) -> bool:
        """Whether times may be left out though items come in any order."""

    @property
    def combines_ties(self) -> bool:
        """Whether equal times are one entry."""

    @property
    def needs_associative(self) -> bool: ...
    @property
    def needs_inverse(self) -> bool: ...
    @property
    def needs_selective(self) -> bool: ...
    @property
    def needs_median_like(self) -> bool: ...
    @property
    def needs_delay(self) -> bool:
        """Whether its constructor needs max_delay=."""

    @property
    def preference(self) -> int:
        """Its turn in sash.window, from 1; 0 where it must be named."""

    @property
    def spike(self) -> str | None:
        """What a single call may cost, where that grows with n."""

    @property
    def drawback(self) -> str | None:
        """Why sash.window passes it over without need."""

    @property
    def benches(self) -> str:
        """The experiments of sash bench that it is in."""

def algorithms() -> list[Any]:
    """List the algorithms, in the order of the tables."""

class Window:
    """
    A sliding window: insert, evict, query. Its subclasses are the algorithms.

        >>> from sash.swag import Fiba, Window
        >>> issubclass(Fiba, Window)
        True
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None, **options: Any) -> None: ...
    def insert(self, value: Any, time: Any = None) -> None:
        """Add an item; left-out times count 0, 1, 2 ..."""

    def bulk_insert(self, values: Any, times: Any = None, *, sort: bool = False) -> None:
        """Add many items at once, fast for NumPy and Arrow columns."""

    def evict(self, time: Any = None) -> bool | None:
        """
        Remove the oldest entry; with a time, exactly that entry, and tell whether it was there.
        """

    def bulk_evict(self, time: Any) -> None:
        """Remove all entries up to and including a time."""

    def query(self, start: Any = None, end: Any = None, *, arg: Any = None) -> Any:
        """
        Give the lowered value of the whole window, or of the entries from start to end, both included.
        """

    def query_many(self, starts: Any, ends: Any) -> NDArray[Any]:
        """Give the value of many ranges at once, as an array."""

    def __len__(self) -> int:
        """Count the entries."""

    @property
    def oldest(self) -> Any:
        """The time of the oldest entry, None when empty."""

    @property
    def youngest(self) -> Any:
        """The time of the youngest entry, None when empty."""

    @property
    def dtype(self) -> str:
        """The item type: int64, float64 or object."""

    @property
    def aggregation(self) -> Aggregation:
        """What is aggregated."""

    def items(self) -> list[tuple[Any, Any]]:
        """
        List (time, lowered value) in time order, where the algorithm still has its items.
        """

    def clear(self) -> None:
        """Remove everything, and mend a broken window."""

    def check(self, values: Any = None) -> None:
        """Verify every invariant, and say in words which one broke."""

    def merge(self, other: Self) -> None:
        """Take over the entries of another window, in time order."""

    @property
    def algorithm(self) -> Algorithm:
        """What the algorithm can do, what it needs, what it costs."""

    def explain(self) -> str:
        """Tell the algorithm, what it costs, and why it was chosen."""

    def to_bytes(self) -> bytes:
        """Store the window as bytes, with the fingerprint of its aggregation."""

    def __reduce__(self) -> tuple[Any, ...]: ...
    def _state(self) -> tuple[Any, ...]: ...
    def _restore(self, arg: tuple[Any, ...], /) -> None: ...
    def _counts(self) -> dict[str, Any]: ...
    def _nodes(self) -> Any: ...
    @property
    def _options(self) -> dict[str, Any]: ...
    @classmethod
    def from_bytes(cls, data: bytes, aggregation: Aggregation) -> Self:
        """Read a window that `to_bytes` stored; ValueError for damaged bytes or another definition's."""

class Recalc(Window):
    """
    Aggregate a window from scratch at every query: the oracle, and the only one that takes non-associative aggregations.

        >>> from sash import agg
        >>> from sash.swag import Recalc
        >>> w = Recalc(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class SubtractOnEvict(Window):
    """
    Aggregate an in-order window by taking the oldest item away with an inverse.

        >>> from sash import agg
        >>> from sash.swag import SubtractOnEvict
        >>> w = SubtractOnEvict(agg.sum())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (15, 3, 100)
        >>> w.evict(); w.query()
        6
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None, integers_only: bool = False) -> None: ...

class TwoStacks(Window):
    """
    Aggregate an in-order window with two stacks: amortised constant time, 2n partials, its items at hand.

        >>> from sash import agg
        >>> from sash.swag import TwoStacks
        >>> w = TwoStacks(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class TwoStacksLite(Window):
    """
    Aggregate an in-order window in amortised constant time, with n + 1 partials.

        >>> from sash import agg
        >>> from sash.swag import TwoStacksLite
        >>> w = TwoStacksLite(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class Daba(Window):
    """
    Aggregate an in-order window in worst-case constant time, with 2n partials and its items at hand.

        >>> from sash import agg
        >>> from sash.swag import Daba
        >>> w = Daba(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class DabaLite(Window):
    """
    Aggregate an in-order window in worst-case constant time, with n + 2 partials.

        >>> from sash import agg
        >>> from sash.swag import DabaLite
        >>> w = DabaLite(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class FlatFit(Window):
    """
    Aggregate an in-order window, or its youngest part, in amortised constant time.

        >>> from sash import agg
        >>> from sash.swag import FlatFit
        >>> w = FlatFit(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class FlatFat(Window):
    """
    Aggregate an in-order window and any range of it with a flat binary tree.

        >>> from sash import agg
        >>> from sash.swag import FlatFat
        >>> w = FlatFat(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class BInt(Window):
    """
    Aggregate an in-order window and any range of it with dyadic intervals; evicting costs no combine.

        >>> from sash import agg
        >>> from sash.swag import BInt
        >>> w = BInt(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class Amta(Window):
    """
    Aggregate an in-order window in amortised constant time, evicting any number of items in O(log n).

        >>> from sash import agg
        >>> from sash.swag import Amta
        >>> w = Amta(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class MonotonicDeque(Window):
    """
    Aggregate an in-order window of a selective aggregation by keeping only the items that can still win.

        >>> from sash import agg
        >>> from sash.swag import MonotonicDeque
        >>> w = MonotonicDeque(agg.max())
        >>> for time, item in ((100, 9), (200, 4), (300, 2)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class OrderStatistics(Window):
    """
    Compute median, quantile, ith_smallest or distinct of numbers in any order, in O(log n).

        >>> from sash import agg
        >>> from sash.swag import OrderStatistics
        >>> w = OrderStatistics(agg.median())
        >>> for time, item in ((100, 9), (300, 2), (200, 4)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (4.0, 3, 100)
        >>> w.evict(); w.query()
        3.0
    """

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class BTree(Window):
    """
    Aggregate a window of items in any order: O(log n) for every item; the baseline that Fiba is measured against.

        >>> from sash import agg
        >>> from sash.swag import BTree
        >>> w = BTree(agg.max())
        >>> for time, item in ((100, 9), (300, 2), (200, 4)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, min_arity: Any = None, ties: str = "combine", dtype: str | None = None) -> None: ...

class Fiba(Window):
    """
    Aggregate a window of items in any order: O(log d) for an item d places late, ranges included.

        >>> from sash import agg
        >>> from sash.swag import Fiba
        >>> w = Fiba(agg.max())
        >>> for time, item in ((100, 9), (300, 2), (200, 4)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, min_arity: Any = None, ties: str = "combine", dtype: str | None = None) -> None: ...

class BlockFiba(Window):
    """
    Aggregate a window of items in any order: blocks of entries and three fingers.

        >>> from sash import agg
        >>> from sash.swag import BlockFiba
        >>> w = BlockFiba(agg.max())
        >>> for time, item in ((100, 9), (300, 2), (200, 4)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, ties: str = "combine", dtype: str | None = None) -> None: ...

class _SmallBlockFiba(Window):
    """BlockFiba with blocks of four, for tests."""

    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None) -> None: ...

class Reordered(Window):
    """
    Sort items that are at most max_delay late in a buffer before a DabaLite.

        >>> from sash import agg
        >>> from sash.swag import Reordered
        >>> w = Reordered(agg.max(), max_delay=200)
        >>> for time, item in ((100, 9), (300, 2), (200, 4)):
        ...     w.insert(item, time)
        >>> w.query(), len(w), w.oldest
        (9, 3, 100)
        >>> w.evict(); w.query()
        4
    """

    def __init__(self, aggregation: Aggregation, *, max_delay: Any, dtype: str | None = None) -> None: ...

def write_key(key: Any) -> bytes:
    """Write a key as bytes: equal bytes are equal keys."""

def read_key(written: bytes) -> Any:
    """Read a key that write_key wrote."""

def slide_array(
    kernel: str,
    lower: str,
    values: Any,
    nulls: Any,
    times: Any,
    period: Any,
    size: int,
    closed: int,
    arrival: bool,
    dense: bool,
    starts: Sequence[int],
    threads: int,
    out: Any,
    gone: Any = None,
    params: Sequence[float] = [],
) -> str:
    """
    Slide a kernel over segments of a column: 'fits', 'overflow' where a result does not fit int64, 'rounded' where out does not hold it.
    """

def rows_as_lists(rows: Any, counts: Any, k: int) -> Any:
    """Make a list of the first so many of every k numbers."""

def slide_ranked(
    ask: int,
    q: float,
    rule: int,
    k: int,
    values: Any,
    nulls: Any,
    times: Any,
    period: Any,
    size: int,
    closed: int,
    starts: Sequence[int],
    threads: int,
    out: Any,
    counts: Any,
) -> None:
    """Slide an aggregation that looks at ranks over segments of a column."""

class WheelAnswers:
    """What can be asked of a wheel at one watermark."""

    def query(self, start: Any, end: Any, *, clamp: bool = False, arg: Any = None) -> Any:
        """
        Give the value of [start, end); with clamp, of its part before the watermark.
        """

    def landmark(self, *, arg: Any = None) -> Any:
        """Give the value of everything before the watermark."""

    def query_many(self, starts: Any, ends: Any, *, clamp: bool = False) -> NDArray[Any]:
        """Give the values of many ranges [start, end) at once, as an array."""

    def interval(self, length: Any, *, arg: Any = None) -> Any:
        """Give the value of the last `length` before the watermark."""

    def group_by(self, start: Any, end: Any, every: Any, *, tz: str | None = None) -> list[tuple[int, Any]]:
        """Cut [start, end) into buckets of `every`, and give each one's start and value."""

    def explain(self, start: Any, end: Any, *, clamp: bool = False) -> Any:
        """Tell how a range would be answered, at what cost, and why not otherwise."""

    def _interval(self, length: int, arg: Any = None) -> Any: ...
    def _query_many(self, starts: NDArray[numpy.int64], ends: NDArray[numpy.int64], clamp: bool) -> NDArray[Any]: ...
    def _plans(self, start: Any, end: Any, clamp: bool) -> tuple[Any, ...]: ...
    def _levels(self) -> list[Any]: ...
    def _origin(self) -> Any: ...
    @property
    def start(self) -> int:
        """Where the wheel begins; before it, nothing can be asked."""

    @property
    def watermark(self) -> int:
        """Up to here, not included, everything has arrived."""

    @property
    def dtype(self) -> str:
        """The item type: int64, float64 or object."""

    @property
    def aggregation(self) -> Aggregation:
        """What is aggregated."""

    @property
    def _unit(self) -> int: ...

class WheelReader(WheelAnswers):
    """
    A read-only view of a wheel at one watermark, for other threads.

        >>> from sash import agg
        >>> from sash.wheel import Wheel
        >>> w = Wheel(agg.sum(), unit="s")
        >>> w.insert(5, time=30)
        True
        >>> _ = w.advance_to(60)
        >>> reader = w.reader()
        >>> _ = w.advance_to(120)                    # the reader stays where it was
        >>> reader.watermark, reader.query(0, 60)
        (60, 5)
    """

class WheelCore(WheelAnswers):
    """A wheel: writer, reader, windows and one clock."""

    def __init__(
        self,
        aggregation: Aggregation,
        dtype: str | None,
        unit: int,
        grain: int,
        start: int,
        levels: list[Any],
        write_ahead: int,
        inverse: bool,
        threshold: Any,
        chunk: int,
    ) -> None: ...
    def insert(self, value: Any, time: Any) -> bool:
        """Add an item; False if it is late, that is older than the watermark."""

    def _insert_many(self, values: Any, times: NDArray[numpy.int64]) -> int: ...
    def _install(self, range: int, slide: int, offset: int, session: int) -> None: ...
    def _advance_to(self, time: Any, empty: bool, type: Any, names: Any, keep_errors: bool) -> list[Any]: ...
    def _reader(self) -> WheelReader: ...
    def _merge(self, other: WheelCore) -> None: ...
    @property
    def late(self) -> int:
        """How many items were late, and refused."""

    @property
    def nbytes(self) -> int:
        """The memory that slots and open ticks take, in bytes."""

    @property
    def slots(self) -> int:
        """How many slots all levels hold together."""

    def check(self) -> None:
        """Verify every invariant, and say in words which one broke."""

    def _state(self) -> tuple[Any, ...]: ...
    def _restore(self, arg: tuple[Any, ...], /) -> None: ...

class KeyedWheelsCore(WheelAnswers):
    """Wheels of many keys under one clock."""

    def __init__(
        self, aggregation: Aggregation, dtype: str | None, unit: int, grain: int, start: int, levels: list[Any], write_ahead: int, few: int
    ) -> None: ...
    def insert(self, key: Any, value: Any, time: Any) -> bool: ...
    def insert_many(self, keys: Any, as_tuple: bool, values: Any, times: NDArray[numpy.int64]) -> int: ...
    def insert_slices(self, keys: Any, as_tuple: bool, forms: list[Any], columns: list[Any], times: NDArray[numpy.int64]) -> int: ...
    def insert_partials(self, keys: Any, as_tuple: bool, partials: list[Any], times: NDArray[numpy.int64]) -> int: ...
    def advance_to(self, time: Any) -> None: ...
    def key_query(self, key: Any, start: Any, end: Any, arg: Any = None, clamp: bool = False) -> Any: ...
    def key_landmark(self, key: Any, arg: Any = None) -> Any: ...
    def key_interval(self, key: Any, length: int, arg: Any = None) -> Any: ...
    def query_each(self, start: Any, end: Any, clamp: bool = False) -> Any: ...
    def top(self, n: int, start: Any, end: Any, clamp: bool = False) -> Any: ...
    def slots_read(self, key: Any, start: Any, end: Any) -> list[int]: ...
    def __len__(self) -> int: ...
    def has(self, key: Any) -> bool: ...
    def keys(self) -> list[Any]: ...
    @property
    def late(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def merge(self, other: KeyedWheelsCore) -> None: ...
    def check(self) -> None: ...
    def state(self) -> tuple[Any, ...]: ...
    def restore(self, arg: tuple[Any, ...], /) -> None: ...

class KeyTable:
    """Distinct keys in order of their hash."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def memory(self) -> int: ...
    def bucket_starts(self, arg: int, /) -> NDArray[numpy.int64]: ...
    def find(self, other: KeyTable, place: int) -> int: ...
    def decode(self, widths: Sequence[int]) -> list[Any]: ...
    def pack(self, arg0: int, arg1: int, /) -> bytes: ...
    @staticmethod
    def unpack(arg0: bytes, arg1: int, /) -> KeyTable: ...

class SliceColumn:
    """The partials of one aggregation, one per slice of a run."""

    def __len__(self) -> int: ...
    def memory(self) -> int: ...
    def lift(
        self,
        places: NDArray[numpy.int32],
        slices: int,
        values: NDArray[Any] | None,
        valid: NDArray[numpy.uint8] | None,
        times: NDArray[numpy.int64] | None,
        ties: NDArray[numpy.int64] | None,
        tie_valid: NDArray[numpy.uint8] | None,
    ) -> SliceColumn: ...
    def gather(self, parts: Sequence[SliceColumn], places: Sequence[NDArray[numpy.int32]], slices: int) -> SliceColumn: ...
    def slide(
        self,
        starts: NDArray[numpy.int64],
        ends: NDArray[numpy.int64],
        how: Sequence[str],
        subtract: bool,
        rows: NDArray[numpy.int32] | None,
        out: Sequence[tuple[NDArray[numpy.int64], NDArray[numpy.uint8]]],
    ) -> list[bool]: ...
    def pack(self, arg0: int, arg1: int, /) -> bytes: ...
    def unpack(self, arg0: bytes, arg1: int, /) -> SliceColumn: ...

def slice_column(kernel: str, type: str, params: Sequence[float]) -> SliceColumn: ...
def encode_keys(columns: list[Any], n: int) -> tuple[Any, ...]: ...
def slice_rows(
    ids: NDArray[numpy.int32], times: NDArray[numpy.int64], valid: NDArray[numpy.uint8] | None, keys: int, grain: int, offset: int
) -> tuple[Any, ...]: ...
def order_rows(
    ids: NDArray[numpy.int32], times: NDArray[numpy.int64], ties: Sequence[NDArray[numpy.int64]], keys: int
) -> tuple[Any, ...]: ...
def merge_runs(
    arg0: KeyTable,
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.int64],
    arg3: KeyTable,
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.int64],
    arg6: bool,
    arg7: int,
    /,
) -> tuple[Any, ...]: ...
def keep_entries(
    arg0: KeyTable, arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: int, arg4: int, arg5: bool, arg6: int, /
) -> tuple[Any, ...]: ...
def window_stretches(
    starts: NDArray[numpy.int64],
    panes: NDArray[numpy.int64],
    range: int,
    slide: int,
    first_end: int,
    last_end: int,
    keys: tuple[int, int] | None = None,
) -> tuple[Any, ...]: ...
def lookback_stretches(
    arg0: NDArray[numpy.int64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int32], arg3: str, arg4: int, arg5: bool, arg6: bool, /
) -> tuple[Any, ...]: ...
def pack_words(arg: NDArray[numpy.int64], /) -> bytes: ...
def unpack_words(arg0: bytes, arg1: int, /) -> NDArray[numpy.int64]: ...
def point_stretches(
    starts: NDArray[numpy.int64],
    times: NDArray[numpy.int64],
    keys: NDArray[numpy.int32],
    at: NDArray[numpy.int64],
    unit: str,
    length: int,
    hop: int,
    delay: int,
    takes_left: bool,
    takes_right: bool,
) -> tuple[Any, ...]: ...
def coarsen(starts: NDArray[numpy.int64], times: NDArray[numpy.int64], before: int, rows: int, hop: int) -> tuple[Any, ...]: ...
def first_from(
    times: NDArray[numpy.int64], starts: NDArray[numpy.int64], ends: NDArray[numpy.int64], bounds: NDArray[numpy.int64]
) -> NDArray[numpy.int64]: ...

class Answers:
    """Rows of partials that were asked for."""

    def __len__(self) -> int: ...

class LivePlan:
    """What makes a key of a live bucket due."""

    @staticmethod
    def windows(range: int, slide: int, ranges: Sequence[int]) -> LivePlan: ...
    @staticmethod
    def oldest(apart: bool, hops: Sequence[tuple[int, int]], hop: int, ahead: int) -> LivePlan: ...
    @staticmethod
    def sessions(gap: int) -> LivePlan: ...
    @staticmethod
    def changes(
        apart: bool, periods: Sequence[int], delay: int, takes_left: bool, takes_right: bool, hops: Sequence[tuple[int, int]], hop: int
    ) -> LivePlan: ...

class Live:
    """The live structure of a bucket: windows of many keys that go on."""

    def __init__(
        self, columns: Sequence[SliceColumn], plan: LivePlan, form: str = "auto", combine: Any = None, move: Any = None
    ) -> None: ...
    @property
    def keys(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def words(self) -> int: ...
    @property
    def combines(self) -> int: ...
    @property
    def visited(self) -> int: ...
    def bytes(self) -> int: ...
    def check(self) -> None: ...
    def number(self, keys: KeyTable) -> NDArray[numpy.int32]: ...
    def find(self, keys: KeyTable) -> NDArray[numpy.int32]: ...
    def table(self, arg: NDArray[numpy.int32], /) -> KeyTable: ...
    def wait(self, arg0: NDArray[numpy.int32], arg1: NDArray[numpy.int64], /) -> None: ...
    def insert(
        self,
        keys: KeyTable,
        starts: NDArray[numpy.int64],
        times: NDArray[numpy.int64],
        columns: Sequence[SliceColumn],
        objects: list[Any] | None = None,
    ) -> tuple[Any, ...]: ...
    def expire(self, oldest: int, exact: int, keep: int, fold: bool) -> None: ...
    def query(
        self,
        ids: NDArray[numpy.int32],
        places: NDArray[numpy.int32] | None,
        starts: NDArray[numpy.int64],
        ends: NDArray[numpy.int64],
        past: bool,
    ) -> Answers: ...
    def query_rows(
        self,
        ids: NDArray[numpy.int32],
        places: NDArray[numpy.int32] | None,
        times: NDArray[numpy.int64],
        first: int,
        length: int,
        takes_itself: bool,
    ) -> Answers: ...
    def query_rows_upto(self, ids: NDArray[numpy.int32], times: NDArray[numpy.int64], length: int) -> Answers: ...
    def query_last(self, ids: NDArray[numpy.int32], length: int) -> Answers: ...
    def objects(self, which: int = 0) -> list[Any]: ...
    def lower(self, answers: Answers, leaf: int, how: Sequence[str]) -> list[Any]: ...
    def close_windows(self, arg: int, /) -> tuple[Any, ...]: ...
    def close_sessions(self, arg: int, /) -> tuple[Any, ...]: ...
    def due(self, arg: int, /) -> NDArray[numpy.int32]: ...
    def settle(self, arg0: NDArray[numpy.int32], arg1: int, arg2: int, arg3: int, arg4: int, arg5: bool, /) -> None: ...
    def export(self) -> tuple[Any, ...]: ...
