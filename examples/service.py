"""A service: features over HTTP from a tile store. `sash serve FOLDER` does the same from the shell, with a page."""

import json
import tempfile
import urllib.request
from pathlib import Path

import pyarrow as pa

from sash import agg, tiles
from sash.serve import app
from sash.serve.server import Address, beside
from sash.wheel import TileStore

AGGS = {"trips": agg.count(), "fare": agg.mean("fare")}


def filled_store(folder: str) -> TileStore:
    """A store of one hour of trips of two zones."""
    seconds = list(range(0, 3_600, 5))
    trips = pa.table(
        {
            "at": pa.array([1_709_251_200 + s for s in seconds], pa.timestamp("s", "UTC")),
            "zone": ["north" if s % 3 else "south" for s in seconds],
            "fare": [4.0 + s % 11 for s in seconds],
        }
    )
    store = TileStore.create(folder, aggs=AGGS, grain="1m", key="zone")
    store.write_history(tiles(trips, time="at", key="zone", grain="1m", aggs=AGGS), until="2024-03-01 01:00")
    return store


def main() -> None:
    folder = str(Path(tempfile.mkdtemp(prefix="sash-example-")) / "trips")
    filled_store(folder)
    with beside(app({"trips": folder}), Address("127.0.0.1", 0)) as address:
        asked = f"{address.url.rstrip('/')}/api/stores/trips/lookback?key=north&key=south&back=5m&back=1h&agg=trips,fare"
        with urllib.request.urlopen(asked, timeout=30) as answer:
            said = json.load(answer)
    print("complete to", said["complete_to"])
    for row in said["rows"]:
        print(row)


if __name__ == "__main__":
    main()
