"""Take each mend of a silent defect out again, in a copy of the package, and see that the table of tests/truth/test_table.py notices.

A mutation is a text of the source and what stands in its place: the code as it was wrong. ``python -m tests.truth.mutations`` runs them
all; tests/truth/test_mutations.py does so under ``make stress``.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

import sash

PACKAGE = pathlib.Path(sash.__file__).parent
ROOT = pathlib.Path(__file__).parent.parent.parent


class Mutation(NamedTuple):
    """What was wrong, where, and how it was written."""

    what: str
    path: str
    mended: str
    wrong: str


MUTATIONS = [
    Mutation(
        "the parts of a struct of numbers all get the first part's column",
        "swag/columns.py",
        "found = self.numbers(part)",
        "found = self.numbers(_parts(aggregation)[0])",
    ),
    Mutation(
        "the parts of a struct in Python all get the first part's column",
        "containers/tables.py",
        "zip(*(objects(held.get(name)) for name in names), strict=True)",
        "zip(*(objects(held.get(names[0])) for name in names), strict=True)",
    ),
    Mutation(
        "where= is forgotten",
        "swag/columns.py",
        "refused = (keep[0] == 0).astype(np.uint8)",
        "refused = np.zeros(self.count, np.uint8)",
    ),
    Mutation("columns of unequal length are read", "containers/tables.py", "if length != lengths[first]:", "if False:"),
    Mutation(
        "masked arrays lose their mask",
        "containers/columns.py",
        "nulls, values = without_gaps(mask if mask.dtype.kind",
        "nulls, values = None and without_gaps(mask if mask.dtype.kind",
    ),
    Mutation(
        "nulls of Arrow become zeros",
        "containers/columns.py",
        "return Column(arrow_numpy(values), nulls)",
        "return Column(arrow_numpy(values), None)",
    ),
    Mutation("nulls of Polars become zeros", "containers/columns.py", "if values.null_count() else None", "if False else None"),
    Mutation(
        "integers beside nothing are rounded by slide",
        "arrays/slides.py",
        'if fits == "rounded":',
        "if False:",
    ),
    Mutation(
        "integers beside nothing are rounded by query_many",
        "swag/columns.py",
        "exact = all(type(value) is not int or -EXACT <= value <= EXACT for value in values)",
        "exact = True",
    ),
    Mutation("integers that ranks pick are rounded", "arrays/slides.py", "-int(array.min())) > EXACT:", "-int(array.min())) > 2**64:"),
    Mutation(
        "integers beyond 64 bits wrap",
        "swag/columns.py",
        'case "u" if len(array) and array.max() >= 2**63:',
        'case "u" if False:',
    ),
    Mutation("slide() gives positions for float times", "arrays/plan.py", "times_lost = agg.reads_time and", "times_lost = False and"),
    Mutation(
        "timedelta64 is taken for a plain integer",
        "time.py",
        "isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)",
        "isinstance(value, int | np.integer) and not isinstance(value, bool)",
    ),
    Mutation("decimals of durations are rounded", "time.py", "Fraction(number) * MICROS", "int(float(number)) * MICROS"),
    Mutation("times of uint64 wrap", "time.py", '_fitting(int(read.values.max()), "time")', "pass"),
    Mutation("times beyond 64 bits become floats", "time.py", "return np.array(points, np.int64)", "return np.asarray(points)"),
    Mutation("far datetimes wrap", "containers/moments.py", "if not -(2**63) <= end * scale < 2**63:", "if False:"),
    Mutation(
        "times in another zone are taken as UTC",
        "time.py",
        "value if value.tzinfo else value.replace(tzinfo=dt.UTC)",
        "value.replace(tzinfo=dt.UTC)",
    ),
    Mutation("tied times leave together in slides by count", "arrays/driven.py", '{"ties": "keep"} if tree else {}', "{}"),
    Mutation(
        "slides by arrival hold the newest time where their end is open",
        "arrays/driven.py",
        "if t == newest and not with_end:",
        "if False:",
    ),
    Mutation(
        "a window chosen for integers takes floats",
        "planner.py",
        'options = {"integers_only": True}',
        "options = {}",
    ),
    Mutation("a column of keys is read in another order", "arrays/slides.py", "out[order] = found", "out[:] = found"),
]


def caught(mutation: Mutation | None) -> tuple[bool, str]:
    """Whether the table fails on a copy of the package with this mend taken out (None: with all of them in); and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "sash"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            source = copy / mutation.path
            text = source.read_text()
            if text.count(mutation.mended) != 1:
                raise AssertionError(f"{mutation.path} does not hold {mutation.mended!r} once: the list of mutations is out of date")
            source.write_text(text.replace(mutation.mended, mutation.wrong))
        path = os.pathsep.join([folder, str(ROOT)])
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "tests/truth/test_table.py"],
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
    said = next((line for line in ran.stdout.splitlines() if line.startswith("E ")), ran.stdout[-300:] + ran.stderr[-300:])
    return ran.returncode == 1, said


if __name__ == "__main__":
    missed = 0
    seen, said = caught(None)
    if seen:
        sys.exit(f"the table fails on the package as it is: {said}")
    for one in MUTATIONS:
        seen, said = caught(one)
        missed += not seen
        print(f"{'caught' if seen else 'MISSED'}  {one.what}: {said[:110]}", flush=True)
    print(f"{len(MUTATIONS)} mutations, {missed} missed")
    sys.exit(bool(missed))
