"""Many keys, slices per key and grain: the engine under Spark's windows, ``slide(by=...)`` and keyed wheels."""

from sash.keyed.plain import Bucket, Slicer, Sweep
from sash.keyed.query import Commit, Packed, Query, Rolling, Rows, Windows

__all__ = ["Bucket", "Commit", "Packed", "Query", "Rolling", "Rows", "Slicer", "Sweep", "Windows"]
