"""One window per key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from sash._core import Window
from sash.containers import objects
from sash.keys import write_key
from sash.swag.columns import Items
from sash.time import timestamps

__all__ = ["Keyed"]


class Keyed:
    """Keep a window of its own for every key.

    Which keys are one is the rule of ``sash.keys``: every NaN is, 1 and 1.0 are not. Other hashable objects are keys as a dict
    takes them.

    >>> from sash import agg
    >>> from sash.swag import DabaLite, Keyed
    >>> k = Keyed(lambda: DabaLite(agg.sum()))
    >>> k.insert_many(["a", "b", "a"], [1, 2, 3], [10, 20, 30])
    >>> k.query("a"), k.query("b"), k.query("nobody")
    (4, 2, 0)
    >>> k.bulk_evict(20); sorted(k)
    ['a']
    """

    def __init__(self, make_window: Callable[[], Window]) -> None:
        if not callable(make_window):
            raise TypeError(f"{make_window!r} makes no windows. Pass a callable, e.g. Keyed(lambda: DabaLite(agg.sum())).")
        self._make = make_window
        self._windows: dict[Hashable, Window] = {}  # by what names a key
        self._keys: dict[Hashable, Hashable] = {}  # the key, as it first came
        self._empty = make_window()

    def insert(self, key: Hashable, value: Any, time: Any = None) -> None:
        """Add an item to the window of its key."""
        name = _name(key)
        window = self._windows.get(name)
        if window is None:
            window = self._make()
            window.insert(value, time)
            self._windows[name], self._keys[name] = window, key
        else:
            window.insert(value, time)

    def insert_many(self, keys: Any, values: Any, times: Any = None) -> None:
        """Add a column of items, each to the window of its key; the order within a key is kept."""
        names, items = objects(keys), Items(values).objects(self._empty.aggregation)
        if len(names) != len(items):
            raise ValueError(f"there are {len(items)} values but {len(names)} keys. Pass one key per value.")
        stamps = None
        if times is not None:
            stamps = timestamps(times)
            if len(stamps) != len(names):
                raise ValueError(f"there are {len(items)} values but {len(stamps)} times. Pass one time per value.")
        groups: dict[Hashable, list[int]] = {}
        for i, key in enumerate(names):
            groups.setdefault(_name(key), []).append(i)
        for name, chosen in groups.items():
            window = self._windows.get(name)
            fresh = window is None
            if window is None:
                window = self._make()
            window.bulk_insert([items[i] for i in chosen], None if stamps is None else stamps[chosen], sort=not window.algorithm.in_order)
            if fresh:
                self._windows[name], self._keys[name] = window, names[chosen[0]]

    def query(self, key: Hashable, start: Any = None, end: Any = None, *, arg: Any = None) -> Any:
        """Give the value of a key's window; of a key that has none, the empty result."""
        return self._windows.get(_name(key), self._empty).query(start, end, arg=arg)

    def evict(self, key: Hashable) -> None:
        """Remove the oldest entry of a key."""
        name = _name(key)
        if name not in self._windows:
            raise IndexError(f"the key {key!r} has no entries: there is nothing to evict. Test key in window first.")
        self._windows[name].evict()
        self._drop_if_empty(name)

    def bulk_evict(self, time: Any) -> None:
        """Remove all entries up to and including a time, of every key; keys without entries go."""
        for window in self._windows.values():
            window.bulk_evict(time)
        for name in list(self._windows):
            self._drop_if_empty(name)

    def _drop_if_empty(self, name: Hashable) -> None:
        if not len(self._windows[name]):
            del self._windows[name], self._keys[name]

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._windows)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._keys.values())

    def __contains__(self, key: Hashable) -> bool:
        return _name(key) in self._windows

    def __getitem__(self, key: Hashable) -> Window:
        try:
            return self._windows[_name(key)]
        except KeyError:
            raise KeyError(key) from None


def _name(key: Hashable) -> Hashable:
    try:
        return write_key(key)
    except TypeError:
        return key
