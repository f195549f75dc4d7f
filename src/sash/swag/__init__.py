"""How it is aggregated: the window classes, one per algorithm.

They are the classes of the native core itself: insert, evict and query pass through no Python.
"""

from sash._core import (
    Amta,
    BInt,
    BlockFiba,
    BTree,
    Daba,
    DabaLite,
    Fiba,
    FlatFat,
    FlatFit,
    MonotonicDeque,
    OrderStatistics,
    Recalc,
    Reordered,
    SubtractOnEvict,
    TwoStacks,
    TwoStacksLite,
    Window,
)
from sash.swag import stored  # noqa: F401  registers the bytes, pickles and copies of windows
from sash.swag.coarse import Coarse
from sash.swag.keyed import Keyed

__all__ = [
    "Amta",
    "BInt",
    "BTree",
    "BlockFiba",
    "Coarse",
    "Daba",
    "DabaLite",
    "Fiba",
    "FlatFat",
    "FlatFit",
    "Keyed",
    "MonotonicDeque",
    "OrderStatistics",
    "Recalc",
    "Reordered",
    "SubtractOnEvict",
    "TwoStacks",
    "TwoStacksLite",
    "Window",
]
