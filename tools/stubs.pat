# What nanobind can't tell of the core: what its objects are, and the methods that Python adds to its classes.
# The syntax is nanobind.stubgen's; tools/stubs.py applies it.

sash._core.__prefix__$:
    \from typing import Any, Self
    \from sash.agg.base import Aggregation

sash._core.Window.__prefix__$:
    def __init__(self, aggregation: Aggregation, *, dtype: str | None = None, **options: Any) -> None: ...

sash._core.Window.evict$:
    def evict(self, time: Any = None) -> bool | None:
        \doc

sash._core.Window.aggregation$:
    @property
    def aggregation(self) -> Aggregation:
        \doc

sash._core.Window.items$:
    def items(self) -> list[tuple[Any, Any]]:
        \doc

sash._core.Window.merge$:
    def merge(self, other: Self) -> None:
        \doc

sash._core.Window.explain$:
    def explain(self) -> str:
        """Tell the algorithm, what it costs, and why it was chosen."""

sash._core.Window.to_bytes$:
    def to_bytes(self) -> bytes:
        """Store the window as bytes, with the fingerprint of its aggregation."""

sash._core.Window.from_bytes$:
    @classmethod
    def from_bytes(cls, data: bytes, aggregation: Aggregation) -> Self:
        """Read a window that `to_bytes` stored; ValueError for damaged bytes or another definition's."""

sash._core.Window.__reduce__$:
    def __reduce__(self) -> tuple[Any, ...]: ...

sash._core.Window.__(deep)?copy__$:

sash._core.WheelAnswers.(start|watermark)$:
    @property
    def \1(self) -> int:
        \doc

sash._core.WheelAnswers.aggregation$:
    @property
    def aggregation(self) -> Aggregation:
        \doc

sash._core.WheelAnswers.query_many$:
    def query_many(self, starts: Any, ends: Any, *, clamp: bool = False) -> NDArray[Any]:
        """Give the values of many ranges [start, end) at once, as an array."""

sash._core.WheelAnswers.interval$:
    def interval(self, length: Any, *, arg: Any = None) -> Any:
        """Give the value of the last `length` before the watermark."""

sash._core.WheelAnswers.group_by$:
    def group_by(self, start: Any, end: Any, every: Any, *, tz: str | None = None) -> list[tuple[int, Any]]:
        """Cut [start, end) into buckets of `every`, and give each one's start and value."""

sash._core.WheelAnswers.explain$:
    def explain(self, start: Any, end: Any, *, clamp: bool = False) -> Any:
        """Tell how a range would be answered, at what cost, and why not otherwise."""

sash._core.register_hooks$:
    def register_hooks(**hooks: Any) -> None:
        """Give the bodies of methods of the core that are written in Python, by name."""

sash._core.Algorithm.(spike|drawback)$:
    @property
    def \1(self) -> str | None:
        \doc
