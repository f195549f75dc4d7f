"""Many keys, slices per key and grain: the engine under Spark's windows, ``slide(by=...)`` and keyed wheels."""

from sash.keyed.bucket import Bucket
from sash.keyed.emit import bucket_of
from sash.keyed.query import Commit, Packed, Query, Rolling, Rows, Sessions, Windows
from sash.keyed.slicer import Slicer
from sash.keyed.sweep import Sweep

__all__ = ["Bucket", "Commit", "Packed", "Query", "Rolling", "Rows", "Sessions", "Slicer", "Sweep", "Windows", "bucket_of"]
