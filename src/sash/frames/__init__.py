"""The same definition on any frame of a laptop: pandas, Polars, Arrow, DuckDB; and, batch by batch, ``Live``."""

from sash.errors import missing_extra

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError as error:
    raise missing_extra("pyarrow", "frames") from error

from sash.frames.api import rolling, tiles, windows
from sash.frames.live import Live

__all__ = ["Live", "rolling", "tiles", "windows"]
