"""Settings that are not part of a definition: read from the session when a query is defined."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from sash.errors import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKETS = "spark.sash.buckets"
CACHE = "spark.sash.cache"

_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How many buckets keys are hashed into, and whether workers keep decoded buckets between micro-batches."""

    partitions: int
    buckets: int
    cache: bool
    name: str  # of the observed metrics: two results in one query must not share it

    @classmethod
    def read(cls, spark: SparkSession, what: str) -> Settings:
        """Read them from a session; the number of buckets is that of shuffle partitions, at least 2, at most 128."""
        partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        buckets = spark.conf.get(BUCKETS, None)
        cache = spark.conf.get(CACHE, "true")
        if buckets is not None and (not buckets.isdecimal() or int(buckets) == 0):
            raise DefinitionError(f"{BUCKETS}={buckets!r} is not a number of buckets. Use a whole number from 1.")
        if cache not in ("true", "false"):
            raise DefinitionError(f"{CACHE}={cache!r} is not known. Use 'true' or 'false'.")
        return cls(partitions, int(buckets) if buckets else min(max(partitions, 2), 128), cache == "true", f"sash.{what}.{next(_numbers)}")

    def metric(self, part: str) -> str:
        """The name of an observed metric."""
        return f"{self.name}.{part}"
