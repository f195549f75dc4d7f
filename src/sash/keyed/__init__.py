"""Many keys, slices per key and grain: the engine under Spark's windows, ``slide(by=...)`` and keyed wheels."""

from sash.keyed.bucket import Bucket
from sash.keyed.query import Commit, Packed, Query, Rolling, Rows, Windows
from sash.keyed.slicer import Slicer
from sash.keyed.sweep import Sweep

__all__ = ["Bucket", "Commit", "Packed", "Query", "Rolling", "Rows", "Slicer", "Sweep", "Windows"]
