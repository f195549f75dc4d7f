"""Many keys, slices per key and grain: the engine under Spark's windows, ``slide(by=...)`` and keyed wheels."""

from sash.engine.bucket import Bucket, commits_of
from sash.engine.changes import check as check_change
from sash.engine.emit import bucket_of
from sash.engine.history import begun, lent, reach
from sash.engine.query import CalendarWindows, Commit, Hops, Labels, Packed, Query, Rolling, Rows, Sessions, Windows
from sash.engine.slicer import Slicer
from sash.engine.sweep import Sweep

__all__ = [
    "Bucket",
    "CalendarWindows",
    "Commit",
    "Hops",
    "Labels",
    "Packed",
    "Query",
    "Rolling",
    "Rows",
    "Sessions",
    "Slicer",
    "Sweep",
    "Windows",
    "begun",
    "bucket_of",
    "check_change",
    "commits_of",
    "lent",
    "reach",
]
