"""What a running pipeline says of itself: a line per query, in place on a terminal, one after the other elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import unquote, urlparse

from sash.spark.metrics import Figures
from sash.time import MICROS, timestamp_text

__all__ = ["Meter", "Screen", "source_files"]

_BAR: Final = 20


class Meter(Figures):
    """Counts what one query has done, and how much of its source is left."""

    def __init__(self, name: str, files: Mapping[str, int] | None, checkpoint: Path | None) -> None:
        super().__init__(name)
        self._files, self._checkpoint = files, checkpoint
        self._before = self._bytes_taken()
        self._began = time.monotonic()

    def read(self, query: Any) -> bool:
        """Take in the reports of a query; whether there was a new one."""
        return any([self.take(progress) for progress in query.recentProgress])

    def share(self) -> float | None:
        """How much of what was there at the start is done, None where that is not known."""
        if not self._files:
            return None
        todo = sum(self._files.values()) - self._before
        return 1.0 if todo <= 0 else min((self._bytes_taken() - self._before) / todo, 1.0)

    def _bytes_taken(self) -> int:
        """The bytes of the source's files that are in committed batches, by the logs in the checkpoint."""
        if self._files is None or self._checkpoint is None:
            return 0
        done = max((int(p.name) for p in (self._checkpoint / "commits").glob("[0-9]*") if p.name.isdecimal()), default=-1)
        taken = set()
        for log in (self._checkpoint / "sources" / "0").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # Spark merges old logs into one and deletes them
                entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
                taken |= {unquote(urlparse(entry["path"]).path) for entry in entries if entry.get("batchId", 0) <= done}
        return sum(size for name, size in self._files.items() if name in taken)

    def line(self) -> str:
        """One line: the bar where the end is known, rows, rows/s, watermark, late rows, state."""
        share = self.share()
        bar = "" if share is None else f"[{'#' * round(share * _BAR):-<{_BAR}}] {share:4.0%}  "
        seconds = max(time.monotonic() - self._began, 1e-9)
        rows = self.counted["rows"]
        watermark = "none yet" if self.watermark is None else timestamp_text(self.watermark // MICROS["s"] * MICROS["s"])
        facts = [
            f"{rows:,} rows",
            f"{rows / seconds:,.0f} rows/s",
            f"watermark {watermark}",
            f"{self.counted['late']:,} late",
            *([f"{self.counted['unparsed']:,} not parsed"] if self.counted["unparsed"] else []),
            f"state {self.held['keys']:,} keys, {self.held['slices']:,} slices, {self.state_bytes / 1e6:.1f} MB",
        ]
        return f"{self.name:10} {bar}{', '.join(facts)}"


class Screen:
    """Shows meters: over the old lines on a terminal, else a line whenever a batch is done."""

    def __init__(self, meters: list[Meter], out: TextIO | None = None) -> None:
        self._meters = meters
        self._out = sys.stdout if out is None else out
        self._live = self._out.isatty()
        self._drawn = False
        self._last = 0.0

    def show(self, changed: list[Meter], *, last: bool = False) -> None:
        """Draw what changed."""
        if not self._live:
            for meter in changed:
                print(meter.line(), file=self._out, flush=True)
            return
        now = time.monotonic()
        if not last and not changed and now - self._last < 0.5:
            return
        self._last = now
        if self._drawn:
            self._out.write(f"\x1b[{len(self._meters)}A")
        width = os.get_terminal_size(self._out.fileno()).columns or 80
        for meter in self._meters:
            self._out.write(f"\r\x1b[K{meter.line()[: width - 1]}\n")
        self._out.flush()
        self._drawn = True


def source_files(path: str | None) -> dict[str, int] | None:
    """The files that a local source has now, with their sizes; None where that is not known."""
    import glob

    from sash.spark.tile_sink import local_path

    local = None if path is None else local_path(path)
    if local is None:
        return None
    found: dict[str, int] = {}
    for place in glob.glob(str(local)):
        inside = [p for p in Path(place).rglob("*") if p.is_file()] if os.path.isdir(place) else [Path(place)]
        found |= {str(p.resolve()): p.stat().st_size for p in inside if not p.name.startswith(("_", "."))}
    return found
