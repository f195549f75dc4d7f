"""Make the environment in .venv: `make run` and `make test` call this. Needs only Python, its headers and a C++ compiler.

The core is compiled while pip downloads: one is bound by the processor, the other by the network. Every step is a line with its
time, and so is every file that was compiled, so that nobody wonders whether anything still happens.

    python3 tools/setup_env.py demo         what the demo needs
    python3 tools/setup_env.py --bench all  what the tests need: every extra, and the loops of `sash bench`
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "build" / "wheels"
BUILD = "import sys, scikit_build_core.build as b; b.build_wheel(sys.argv[1], dict(a.split('=', 1) for a in sys.argv[2:]))"
COMPILED = re.compile(r"\[(\d+/\d+)\] (?:Building CXX object .*/|Linking CXX (?:shared module|static library) )(\S+?)(?:\.o)?$")
DOWNLOADED = re.compile(r"\s*Downloading (\S+) (\(\S+ [MG]B\))|\s*(Building wheel for \S+) .*: started|(Installing) collected packages")
SAID_BEFORE_AN_ERROR = 40  # lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("extras", nargs="+", help="extras of pyproject.toml whose packages are installed; all of them: all")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--bench", action="store_true", help="build the loops of `sash bench` too")
    parser.add_argument("--native", action="store_true", help="build for this machine's processor only")
    args = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = args.venv.absolute() / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color"]
    start = time.monotonic()

    ready = python.exists() or step("environment", [sys.executable, "-m", "venv", str(args.venv)])
    ready = ready and install("build tools", pip, args.venv, project["build-system"]["requires"])
    if not ready:
        return 1
    with ThreadPoolExecutor() as beside:
        packages = beside.submit(install, "packages", pip, args.venv, required(project["project"], args.extras))
        wheel = build(python, ["cmake.define.SASH_BENCH=ON"] * args.bench + ["cmake.define.SASH_NATIVE=ON"] * args.native)
    if not packages.result() or wheel is None or not step("sash", [*pip, "install", "--no-deps", "--force-reinstall", str(wheel)]):
        return 1
    say("set-up", f"done in {clock(time.monotonic() - start)}")
    return 0


def install(name: str, pip: list[str], venv: Path, requirements: list[str]) -> bool:
    """Install packages, unless these were installed before: pip needs seconds to find out that there is nothing to do."""
    noted = venv / f".{name.replace(' ', '-')}"
    wanted = "\n".join(requirements)
    if noted.exists() and set(requirements) <= set(noted.read_text().splitlines()):
        return True
    done = step(name, [*pip, "install", *requirements], pip_progress)
    if done:
        noted.write_text(wanted)
    return done


def build(python: Path, options: list[str]) -> Path | None:
    """Compile the core into a wheel; objects stay in build/, so that the next time only what changed is compiled."""
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    done = step("core", [str(python), "-c", BUILD, str(WHEELS), *options], compile_progress)
    return next(WHEELS.glob("*.whl")) if done else None


def required(project: dict[str, Any], extras: list[str]) -> list[str]:
    """List the packages of the given extras; an extra may name others of this project, as sash[spark]."""
    table = project["optional-dependencies"]
    found = set(project["dependencies"])
    asked = list(table) if extras == ["all"] else list(extras)
    done: set[str] = set()
    while asked:
        extra = asked.pop()
        if extra not in table:
            raise SystemExit(f"setup_env: there is no extra {extra!r}. pyproject.toml has {', '.join(table)}.")
        if extra in done:
            continue
        done.add(extra)
        for requirement in table[extra]:
            own = re.fullmatch(rf"{project['name']}\[([\w,-]+)\]", requirement)
            if own:
                asked += own[1].split(",")
            else:
                found.add(requirement)
    return sorted(found)


# --- steps

speaking = threading.Lock()


def step(name: str, command: list[str], progress: Callable[[str], str | None] = lambda line: None) -> bool:
    """Run a command; show what `progress` makes of each of its lines, then the time, or its last lines if it fails."""
    start = time.monotonic()
    say(name, "...")
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    said: list[str] = []
    for line in lines(process):
        said.append(line)
        shown = progress(line)
        if shown:
            say(name, f"{shown}  {clock(time.monotonic() - start)}")
    if process.wait() == 0:
        say(name, f"done in {clock(time.monotonic() - start)}")
        return True
    say(name, f"failed after {clock(time.monotonic() - start)}. It said last:\n" + "\n".join(said[-SAID_BEFORE_AN_ERROR:]))
    return False


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip()


def compile_progress(line: str) -> str | None:
    found = COMPILED.match(line)
    return f"[{found[1]}] {Path(found[2]).name}" if found else None


def pip_progress(line: str) -> str | None:
    found = DOWNLOADED.match(line)
    if not found:
        return None
    if found[1]:
        return f"downloading {found[1].split('/')[-1]} {found[2]}"
    return (found[3] or found[4]).lower()


def say(name: str, text: str) -> None:
    with speaking:
        print(f"{name:12} {text}", flush=True)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    raise SystemExit(main())
