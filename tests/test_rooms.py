"""One room, one job; a room knows only the rooms listed above it."""

import ast
import os
import pathlib
import re
import subprocess
import sys

ROOMS = [
    "containers",
    "time",
    "errors",
    "codec",
    "callables",
    "keys",
    "agg",
    "swag",
    "planner",
    "arrays",
    "engine",
    "wheel",
    "frames",
    "spark",
    "pipeline",
    "serve",
    "bench",
    "commands",
    "demo",
    "cli",
    "__main__",
]
SOURCE = pathlib.Path(__file__).parents[1] / "src" / "sash"


def imports(path: pathlib.Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name.split(".")[1] for name in found if name.startswith("sash.")}


def test_imports_go_only_upwards_in_the_list_of_rooms():
    broken = []
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        allowed = set(ROOMS[: ROOMS.index(room) + 1]) | {"_core", "__version__"} | ({"_bench"} if room == "bench" else set())
        broken += [f"{path.relative_to(SOURCE)} knows {other}" for other in imports(path) - allowed]
    assert not broken


def test_every_room_is_on_the_list():
    rooms = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert rooms - {"__init__"} <= set(ROOMS)


def test_import_loads_neither_spark_nor_pandas_nor_numba_nor_arrow():
    heavy = {"pyspark", "pandas", "numba", "pyarrow", "datasketches", "polars", "duckdb"}
    code = f"import sys, sash, sash.swag; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_import_takes_less_than_50_ms_beyond_numpy(tmp_path):
    # Processor time of the process itself, compiled once, the least of several: what else runs on the machine does not count.
    code = "import time, numpy; t = time.process_time(); import sash; print(time.process_time() - t)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    command = [sys.executable, "-c", code]
    took = [float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout) for _ in range(6)]
    assert min(took) < 0.050


# What the core imports from Python, and why. All else that is written in Python comes to it by register_hooks.
CORE_IMPORTS = {
    "sash.containers": "scalars and records of NumPy become plain Python data",
    "sash.errors": "the classes of errors, looked up when one is raised",
    "sash.time": "datetimes, durations and text become int64 by one parser, which is written in Python",
    "sash.agg.base": "the class Aggregation, to tell what is one",
    "sash.agg.ranks": "the order of the interpolation rules",
    "sash.keys": "keys as the bytes that tell them apart, and back",
    "sash.swag.columns": "columns of items as arrays, read once for all structures; results as arrays",
    "sash.wheel.errors": "the words of a wheel's refusals",
}


def test_the_core_imports_only_the_rooms_that_are_listed_with_a_reason():
    core = SOURCE.parent / "core"
    found = {name for path in core.rglob("*.[ch]pp") for name in re.findall(r"import_\(\"(sash[\w.]*)\"\)", path.read_text())}
    assert found == set(CORE_IMPORTS)


def test_nobody_writes_into_a_class_from_outside():
    broken = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else []
            assigned = [t.value for t in targets if isinstance(t, ast.Attribute)]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
                assigned.append(node.args[0])
            names = [value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "") for value in assigned]
            broken += [f"{path.relative_to(SOURCE)}:{node.lineno}" for name in names if name[:1].isupper()]
    assert not broken, "declare the method in the core and register its body: _core.register_hooks"


def test_a_python_that_was_told_to_run_without_the_gil_is_refused():
    code = "import sys; sys._is_gil_enabled = lambda: False; import sash"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert left.returncode == 1
    assert left.stderr.splitlines()[-1].startswith("ImportError: Sash needs the GIL")
