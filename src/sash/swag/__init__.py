"""How it is aggregated: the window classes, one per algorithm.

They are the classes of the native core itself: insert, evict and query pass through no Python.
"""

from sash._core import BTree, DabaLite, Fiba, OrderStatistics, Recalc, Reordered, Window
from sash.swag import stored
from sash.swag.keyed import Keyed

stored.attach()

__all__ = ["BTree", "DabaLite", "Fiba", "Keyed", "OrderStatistics", "Recalc", "Reordered", "Window"]
