"""Damaged files and requests: tile stores, pipeline files, HTTP.

As in ``fuzz``: what is damaged is read as it was written, or refused by the error that is documented for it.
``Files(folder).damage(seed)`` damages one, and tells which.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import random
import re
import shutil
import tempfile
import time
from typing import Any

from sash.errors import DefinitionError
from sash.pipeline import document
from sash.wheel import BeyondWatermark, NotRetained, TileStore, TileStoreError
from sash.wheel.tile_manifest import _checksum
from tests.truth.fuzz import Wrong, changed, cut, flip
from tests.wheel.tile_batches import AGGS, MINUTE, made, random_batches

PIPELINE = """
name = "taxis"
time = "at"
key = "zone"
watermark = "10 minutes"
checkpoint = "checkpoint"
trigger = "available now"

[source]
format = "csv"
path = "in"
schema = "at timestamp, zone string, fare long"
options = { header = true }

[[windows]]
range = "1 hour"
slide = "1 minute"
aggs = { n = "count()", fare = "mean(fare)" }
sink = { format = "parquet", path = "out" }

[[rolling]]
name = "features"
lookbacks = ["1h", "100rows"]
aggs = { s = "sum(fare)" }
sink = { format = "console" }

[tiles]
grain = "1m"
retention = "90d"
path = "tiles"
aggs = { p90 = "quantile(fare, 0.9)" }
"""
WORDS = re.findall(r"[\w.]+|\S", PIPELINE)
MORE = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "\x00",
    "é",
    "[[",
    "]]",
    "{}",
    "'''",
    "true",
    "1979-05-27",
    "9" * 40,
    "__import__('os')",
    "sum(",
    "lambda",
]


class Files:
    """Stored things in a folder of their own, damaged one at a time and put back."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        batches = random_batches(3, 3, zones=3)
        made(folder / "store", batches).compact()
        (folder / "in").mkdir()
        self.expected = repr(self._answers(folder / "store"))
        self.files = [p for p in sorted((folder / "store").rglob("*")) if p.is_file() and p.name != "lock"]
        self.whole = {p: p.read_bytes() for p in self.files}
        self.client: Any = None

    @staticmethod
    def _answers(path: pathlib.Path) -> Any:
        store = TileStore(path)
        each = [store.wheels(name, start=0).group_by_all(0, 21 * MINUTE, "1m") for name in AGGS]
        return sorted(store.keys()), each, store.wheels("mean", keys=["z1"], start=0).query("z1", 0, 21 * MINUTE), len(store)

    def damage(self, seed: Any) -> str:
        """Damage one thing that the seed draws; tell which."""
        rng = random.Random(f"files {seed}")
        what = rng.choice(("tiles", "tiles", "manifest", "pipeline", "pipeline", "request", "request", "request"))
        try:
            getattr(self, f"_{what}")(rng)
        except Wrong as wrong:
            raise Wrong(f"seed {seed!r}, {what}: {wrong}") from wrong.__cause__
        except Exception as error:
            raise Wrong(f"seed {seed!r}, {what}: {type(error).__name__}: {error}") from error
        return what

    def _put_back(self) -> None:
        for path, data in self.whole.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)

    def _tiles(self, rng: random.Random) -> None:
        path = rng.choice(self.files)
        path.write_bytes(rng.choice((flip, flip, cut))(rng, self.whole[path]))
        try:
            if repr(self._answers(self.folder / "store")) != self.expected:
                raise Wrong(f"{path.suffix} was damaged, and answers changed")
        except TileStoreError:
            pass
        finally:
            self._put_back()

    def _manifest(self, rng: random.Random) -> None:
        """Nonsense under a right checksum: an answer may be another one, an accident may not be."""
        path = self.folder / "store" / "_sash" / "manifest.json"
        said = json.loads(self.whole[path])
        said.pop("checksum")
        wrong = changed(rng, said)
        try:
            path.write_text(json.dumps({**wrong, "checksum": _checksum(wrong)} if isinstance(wrong, dict) else wrong))
        except TypeError:  # JSON does not hold it
            return
        try:
            self._answers(self.folder / "store")
        except (TileStoreError, NotRetained, BeyondWatermark):
            pass
        finally:
            self._put_back()

    def _pipeline(self, rng: random.Random) -> None:
        words = re.split(r"([\w.]+|\S)", PIPELINE)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(words))
            words[at] = rng.choice(("", rng.choice(WORDS), rng.choice(MORE), words[at] * 2))
        data = "".join(words).encode("utf-8", "surrogatepass")
        if rng.random() < 0.2:
            data = rng.choice((flip, cut))(rng, data)
        file = self.folder / "pipeline.toml"
        file.write_bytes(data)
        with contextlib.suppress(DefinitionError):
            document.read(file)

    def _request(self, rng: random.Random) -> None:
        from tests.serve import malformed

        if self.client is None:
            from sash.serve import app
            from tests.serve import streams
            from tests.serve.client import Client

            streams.written(self.folder / "trips", 240)
            self.client = Client(app(self.folder / "trips"))
            self.client.__enter__()
            self.description = self.client.get("/openapi.json").json()
        for why, method, path, query, body, headers in malformed.requests(self.description, rng.random(), 1):
            answer = self.client.send(method, path, query, body, headers)
            if not 400 <= answer.status < 500 or "error" not in json.loads(answer.body):
                raise Wrong(f"{why}: {method} {path} {query[:80]!r}: {answer.status} {answer.body[:200]!r}")

    def close(self) -> None:
        """Let the server go."""
        if self.client is not None:
            self.client.close()


def soak(seed: int, seconds: float) -> int:
    """Damage files and requests for a time, and count them."""
    end, count = time.monotonic() + seconds, 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sash-fuzz-"))
    files = Files(folder)
    try:
        while time.monotonic() < end:
            files.damage(f"{seed}/{count}")
            count += 1
    finally:
        files.close()
        shutil.rmtree(folder, ignore_errors=True)
    return count
