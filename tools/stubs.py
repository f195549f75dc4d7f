"""Write src/sash/_core.pyi from the built core by nanobind's generator; with --check, only tell whether it is up to date.

The bindings take most arguments as Python objects, since one reader decides what is an item and what a time. So `object` becomes Any,
and an array is typed by its elements alone. What nanobind can't know is in stubs.pat.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import re
import subprocess
import sys
from pathlib import Path

from nanobind.stubgen import StubGen, load_pattern_file

from sash import _core

HERE = Path(__file__).parent
STUB = HERE.parent / "src" / "sash" / "_core.pyi"
HEAD = '"""The types of the native core, written by `make stubs`: change the bindings, or tools/stubs.pat."""\n'
SHORTER = [
    (r"Annotated\[(NDArray(?:\[[\w.]+\])?), dict\([^)]*(?:\([^)]*\))?[^)]*\)\]", r"\1"),
    (r"\bNDArray\b(?!\[)", "NDArray[Any]"),
    (r"\bobject(?: \| None)?\b", "Any"),
    (r"\blist\b(?!\[)", "list[Any]"),
    (r"\btuple\b(?!\[)", "tuple[Any, ...]"),
    (r"\bdict\b(?!\[)", "dict[str, Any]"),
    (r"\baggregation: Any\b", "aggregation: Aggregation"),
    (r"(query_many\(.*) -> Any", r"\1 -> NDArray[Any]"),
    (r"\bdtype: Any\b", "dtype: str | None"),
]


def generated() -> str:
    """Make the text of the stub."""
    importlib.import_module("sash.wheel")  # adds methods to the core's classes
    generator = StubGen(module=_core, include_private=True, patterns=load_pattern_file(str(HERE / "stubs.pat")))
    generator.put(_core)
    text = HEAD + re.sub(r"(?m)^ *def .*$", lambda line: shorter(line[0]), generator.get())
    text = ruff(text, "check", "--fix", "--exit-zero", "--quiet")  # imports sorted, and without those of types that are gone
    return ruff(text, "format")


def shorter(signature: str) -> str:
    """Write a signature with the types that a reader needs."""
    for pattern, written in SHORTER:
        signature = re.sub(pattern, written, signature)
    return signature


def ruff(text: str, *command: str) -> str:
    """Pass a stub through a command of ruff."""
    run = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
    return subprocess.run(run, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the stub is not what would be written")
    args = parser.parse_args()
    text, there = generated(), STUB.read_text() if STUB.exists() else ""
    if not args.check:
        STUB.write_text(text)
        return 0
    if text != there:
        print("".join(difflib.unified_diff(there.splitlines(True), text.splitlines(True), "src/sash/_core.pyi", "the built core", n=1)))
        print("src/sash/_core.pyi does not tell what the core has. Run make stubs.")
    return int(text != there)


if __name__ == "__main__":
    raise SystemExit(main())
