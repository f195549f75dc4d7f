"""Packages that formats need, for the Spark that runs: found by the format's name, downloaded as Spark does it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from sash.errors import DefinitionError
from sash.pipeline.document import Pipeline
from sash.pipeline.lines import Path as Place
from sash.pipeline.values import PipelineErrors

__all__ = ["session_settings", "spark_version", "unresolved"]

PACKAGES: Final = "spark.jars.packages"
_EXCLUDES: Final = "spark.jars.excludes"
_JARS: Final = "spark.jars"
_TOKENS: Final = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"


@dataclasses.dataclass(frozen=True)
class _Connector:
    """The package of a format by the minor version of Spark, and the settings that it needs."""

    title: str
    artifact: str  # how its name is told from others
    packages: Mapping[str, str]
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)


# What was there to be had when this was written, and runs. A later Spark needs a word in `packages`.
_KAFKA: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_CONNECTORS: Final = {
    "kafka": _Connector(
        "Kafka",
        "spark-sql-kafka-0-10",
        {"4.0": f"{_KAFKA}:4.0.0", "4.1": f"{_KAFKA}:4.1.3", "4.2": f"{_KAFKA}:4.2.0", "4.3": f"{_KAFKA}:4.2.0"},
    ),
    "delta": _Connector(
        "Delta",
        "delta-spark",
        {
            "4.0": "io.delta:delta-spark_2.13:4.0.1",
            "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
            "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
        },
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "iceberg": _Connector(
        "Iceberg",
        "iceberg-spark-runtime",
        {
            "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
            "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        },
        {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
    "avro": _Connector(
        "Avro",
        "spark-avro",
        {
            "4.0": "org.apache.spark:spark-avro_2.13:4.0.2",
            "4.1": "org.apache.spark:spark-avro_2.13:4.1.1",
            "4.2": "org.apache.spark:spark-avro_2.13:4.1.1",
            "4.3": "org.apache.spark:spark-avro_2.13:4.1.1",
        },
    ),
}
# From 4.1 on, Kafka's connector asks for a token provider that was not published with it; the one of 4.0.0 has the same classes.
_OLD_TOKENS: Final = ("4.1", "4.2", "4.3")


def spark_version() -> str:
    """The minor version of the Spark that is installed, such as 4.3."""
    return ".".join(importlib.metadata.version("pyspark").split(".")[:2])


def session_settings(pipeline: Pipeline, version: str | None = None) -> dict[str, str]:
    """The settings of the session that a pipeline needs, with the packages of its formats; PipelineErrors where there is none."""
    minor = version or spark_version()
    settings = dict(pipeline.spark)
    packages = [*pipeline.packages, *filter(None, settings.get(PACKAGES, "").split(","))]
    given = " ".join([*packages, settings.get(_JARS, ""), *_installed_jars()])
    wrong: list[tuple[int, str]] = []
    for format_, place in _formats(pipeline):
        connector = _CONNECTORS[format_]
        for name, value in connector.settings.items():
            settings.setdefault(name, value)
        if connector.artifact in given:
            continue
        if minor not in connector.packages:
            known = " or ".join(connector.packages)
            wrong.append(
                (
                    pipeline.line(place),
                    f"no package is known that brings {connector.title} to Spark {minor}. Use Spark {known}, e.g. "
                    f'pip install "pyspark=={list(connector.packages)[-1]}.*"; or name one: packages = ["group:artifact:version"].',
                )
            )
        elif connector.packages[minor] not in packages:
            packages.append(connector.packages[minor])
    if wrong:
        raise PipelineErrors(pipeline.file, wrong)
    if packages:
        settings[PACKAGES] = ",".join(packages)
    if minor in _OLD_TOKENS and f"{_KAFKA}:" in settings.get(PACKAGES, "") and _TOKENS not in settings.get(PACKAGES, ""):
        settings[_EXCLUDES] = ",".join(filter(None, [settings.get(_EXCLUDES), _TOKENS]))
        settings[_JARS] = ",".join(filter(None, [settings.get(_JARS), str(_jar(f"{_TOKENS}:4.0.0", settings))]))
    return settings


def _formats(pipeline: Pipeline) -> list[tuple[str, Place]]:
    """The formats of a pipeline that need a package, each once, with the key that asks for it."""
    source, history = pipeline.source, pipeline.history
    sources = [source] if history is None else [source, history[0]]
    sinks = [section.sink for section in pipeline.sections if section.sink is not None]
    if source.dead_letters is not None:
        sinks.append(source.dead_letters)
    found: dict[str, Place] = {}
    for format_, place in [(end.format, end.place) for end in sources] + [(end.format, end.place) for end in sinks]:
        found.setdefault(format_, (*place, "format"))
    for one in sources:
        if one.value is not None:
            found.setdefault(one.value.format, (*one.place, "value"))
    return [(format_, place) for format_, place in found.items() if format_ in _CONNECTORS]


def _pyspark_jars() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "jars"


def _installed_jars() -> Iterable[str]:
    """The names of the jars that Spark has already."""
    folder = _pyspark_jars()
    return [] if folder is None else [path.name for path in folder.glob("*.jar")]


def _jar(coordinates: str, settings: Mapping[str, str]) -> Path:
    """Download one jar without what it asks for, by Spark's own Ivy: Spark can't leave out a version and take another."""
    from sash.spark.java import find_java

    folder = _pyspark_jars()
    ivy = None if folder is None else next(folder.glob("ivy-*.jar"), None)
    if ivy is None:
        raise DefinitionError(f"Spark's Ivy is not installed, so that {coordinates} can't be had. Put its jar into [spark] spark.jars.")
    group, artifact, version = coordinates.split(":")
    with tempfile.NamedTemporaryFile("r", prefix="sash-jar-") as found:
        command = [str(find_java() / "bin" / "java"), "-cp", str(ivy), "org.apache.ivy.Main", "-dependency", group, artifact, version]
        command += ["-notransitive", "-types", "jar", "-cachepath", found.name]
        if own := settings.get("spark.jars.ivySettings"):
            command += ["-settings", own]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        path = found.read().strip()
    if done.returncode or not path:
        raise DefinitionError(_cannot_be_had(coordinates))
    return Path(path)


_UNRESOLVED: Final = re.compile(r"unresolved dependency: ([\w.-]+)#([\w.-]+);([\w.-]+)")


def unresolved(log: str) -> str | None:
    """What is wrong with packages, by what Spark said as it did not start; None where it is something else."""
    found = _UNRESOLVED.findall(log)
    return _cannot_be_had(", ".join(dict.fromkeys(":".join(one) for one in found))) if found else None


def _cannot_be_had(packages: str) -> str:
    return f"{packages} can't be downloaded: no repository that Spark asks has it. Check its name and version, and the network."
