"""A Spark session set up for Sash."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.errors import DefinitionError
from sash.spark.java import find_java
from sash.spark.tile_source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAMING = "org.apache.spark.sql.execution.streaming"
_ROCKSDB = f"{_STREAMING}.state.RocksDBStateStoreProvider"


def session(app: str = "sash", **conf: Any) -> SparkSession:
    """Start, or return, a Spark session with the settings that Sash needs.

    `conf` takes Spark's own names (`**{"spark.sql.shuffle.partitions": 8}`) and the short
    `master=` and `remote=`. Without a master it runs in this process on all cores.

    >>> spark = session(master="local[2]")  # doctest: +SKIP
    """
    settings = {_full_name(name): str(value) for name, value in conf.items()}
    remote = settings.pop("spark.remote", None) or os.environ.get("SPARK_REMOTE")
    # Workers must run the interpreter that has Sash, not the first python3 on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote is None or remote.startswith("local"):
        os.environ["JAVA_HOME"] = str(find_java())

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app)
    if remote is not None:
        builder = builder.remote(remote)
        local = remote if remote.startswith("local") else None
    else:
        master = settings.setdefault("spark.master", os.environ.get("MASTER", "local[*]"))
        local = master if master.startswith("local") else None
    for name, value in (_defaults(local) | settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def _full_name(name: str) -> str:
    if name in ("master", "remote"):
        return f"spark.{name}"
    if not name.startswith("spark."):
        raise DefinitionError(
            f"session() does not know the setting {name!r}. Give Spark's full name, "
            f'as in session(**{{"spark.sql.shuffle.partitions": 8}}), or master= or remote=.'
        )
    return name


def _defaults(local: str | None) -> dict[str, str]:
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        # A micro-batch stores what changed, not a snapshot of everything: a third less time in small micro-batches.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Arrow batches are the unit of the native core: few and fat.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        # With any lower limit Spark adds up the buffers of all columns after every row: 813 ms instead of 439 for 3.2 million rows
        # of three numbers on their way to Python. Rows of 10 kB and more need fewer per batch instead.
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647b",
    }
    if local is not None:
        # On the user's own machine: nothing is open to the network, a partition per core.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": str(_cores(local)),
        }
        if manager := _file_manager():
            settings["spark.sql.streaming.checkpointFileManagerClass"] = manager
    return settings


def _file_manager() -> str | None:
    """The class that writes checkpoints through Java's file calls, by its name in this Spark; None where it is not found.

    Spark's default goes through Hadoop's FileContext, which on a local disk takes ten times as long per file: a third of the
    time of a micro-batch of 400,000 rows. Both write to another name and rename.
    """
    spec = importlib.util.find_spec("pyspark")
    jars = [] if spec is None or spec.origin is None else [*(Path(spec.origin).parent / "jars").glob("spark-sql_*.jar")]
    for jar in jars:
        with zipfile.ZipFile(jar) as classes:
            for package in (_STREAMING, f"{_STREAMING}.checkpointing"):
                name = f"{package}.FileSystemBasedCheckpointFileManager"
                if f"{name.replace('.', '/')}.class" in classes.NameToInfo:
                    return name
    return None


def _cores(master: str) -> int:
    inside = master.partition("[")[2].rstrip("]").partition(",")[0]
    if not inside:
        return 1
    return len(os.sched_getaffinity(0)) if inside == "*" else int(inside)
