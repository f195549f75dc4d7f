"""A Spark stream: sliding windows into Parquet, tiles into a store, and questions to the store, which nobody declared."""

import datetime as dt
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sash import agg
from sash.spark import session, tile_sink, tiles, windows
from sash.wheel import TileStore

AGGS = {"trips": agg.count(), "fare": agg.mean("fare")}
SHARED = {"time": "pickup", "key": "zone", "watermark": "10 minutes", "aggs": AGGS}


def write_trips(folder: Path) -> None:
    """Three files of trips; some come up to five minutes late."""
    chance = random.Random(5)
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    for hour in range(3):
        minutes = [hour * 60 + i / 10 - chance.random() * 5 for i in range(600)]
        columns = {
            "pickup": [start + dt.timedelta(minutes=max(0, m)) for m in minutes],
            "zone": [chance.choice(["north", "south"]) for _ in minutes],
            "fare": [round(chance.uniform(4, 40), 2) for _ in minutes],
        }
        pq.write_table(pa.table(columns), folder / f"{hour}.parquet")


def main() -> None:
    place = Path(tempfile.mkdtemp(prefix="sash-example-"))
    (place / "trips").mkdir()
    write_trips(place / "trips")
    spark = session("live pipeline")
    schema = spark.read.parquet(str(place / "trips")).schema
    trips = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place / "trips"))

    hourly = windows(trips, range="1 hour", slide="5 minutes", **SHARED).writeStream.format("parquet").option("path", str(place / "hourly"))
    store = TileStore.create(str(place / "tiles"), aggs=AGGS, grain="1m", key="zone")
    kept = tiles(trips, grain="1m", **SHARED).writeStream.foreachBatch(tile_sink(store, str(place / "checkpoint" / "tiles")))
    for name, writer in (("hourly", hourly), ("tiles", kept)):
        query = writer.option("checkpointLocation", str(place / "checkpoint" / name)).trigger(availableNow=True).start()
        query.awaitTermination()

    print("final windows:", spark.read.parquet(str(place / "hourly")).count())
    fares = TileStore(str(place / "tiles")).wheels("fare")
    span = ("2024-03-01 00:17", "2024-03-01 02:03")
    print(f"mean fare of the north from {span[0]} to {span[1]}: {fares.query('north', *span):.2f}")
    print("the dearer zone of that time:", fares.top(1, *span)[0][0])


if __name__ == "__main__":
    main()
