"""One room, one job; a room knows only the rooms listed above it."""

import ast
import pathlib
import subprocess
import sys

import sash

ROOMS = [
    "time",
    "errors",
    "codec",
    "callables",
    "agg",
    "swag",
    "planner",
    "arrays",
    "engine",
    "wheel",
    "spark",
    "pipeline",
    "bench",
    "commands",
    "demo",
    "cli",
]
SOURCE = pathlib.Path(sash.__file__).parent


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
    code = "import sys, sash, sash.swag; print(sorted({'pyspark', 'pandas', 'numba', 'pyarrow', 'datasketches'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
