"""The pipeline on Spark: sliding windows and rolling features, one definition for batch and Structured Streaming.

>>> from sash import agg
>>> from sash.spark import rolling, session, windows
>>> spark = session()                                                   # doctest: +SKIP
>>> hourly = windows(                                                   # doctest: +SKIP
...     rides, time="at", range="1 hour", slide="1 minute", key="zone",
...     aggs={"n": agg.count(), "fare": agg.mean("fare")}, watermark="10 minutes")
"""

from importlib.util import find_spec

from sash.errors import missing_extra

for _package in ("pyspark", "pyarrow", "pandas"):
    if find_spec(_package) is None:
        raise missing_extra(_package, "spark")

from sash.spark.api import rolling, tiles, windows  # noqa: E402
from sash.spark.explain import explain  # noqa: E402
from sash.spark.listener import listen  # noqa: E402
from sash.spark.metrics import metrics  # noqa: E402
from sash.spark.session import session  # noqa: E402
from sash.spark.state import read_state  # noqa: E402
from sash.spark.tile_sink import tile_sink, write_history  # noqa: E402
from sash.spark.tile_source import register  # noqa: E402

__all__ = ["explain", "listen", "metrics", "read_state", "register", "rolling", "session", "tile_sink", "tiles", "windows", "write_history"]
