"""Where things stand in a TOML file: tomllib gives values without lines, and an error without a line helps nobody."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Path", "line_of", "lines"]

Path = tuple[str | int, ...]

_KEY: Final = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TABLE: Final = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_PART: Final = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def lines(text: str) -> dict[Path, int]:
    """Find the line of every table and every key: `("windows", 0, "range")` is the key of the first [[windows]].

    >>> lines("time = 1\\n[[windows]]\\nrange = 2\\n")
    {('time',): 1, ('windows', 0): 2, ('windows', 0, 'range'): 3}
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    closing = ""  # of a multi-line string or array that is open
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if closing:
            closing = "" if closing in line else closing
            continue
        if depth > 0:
            depth += _brackets(line)
            continue
        if head := _TABLE.match(line):
            path = _full(tuple(_parts(head[2])), counts)
            if head[1] == "[[":
                counts[path] = counts.get(path, -1) + 1
                path = (*path, counts[path])
            table = path
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
            rest = line[key.end() :]
            for quotes in ('"""', "'''"):
                if rest.count(quotes) % 2:
                    closing = quotes
            depth = 0 if closing else max(_brackets(rest), 0)
    return found


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(dotted)]


def _full(path: tuple[str, ...], counts: dict[Path, int]) -> Path:
    """A table's path with the index of the array of tables that it lies in."""
    out: Path = ()
    for i, part in enumerate(path):
        out = (*out, part)
        if out in counts and i < len(path) - 1:
            out = (*out, counts[out])
    return out


def _brackets(text: str) -> int:
    """How many [ are open after a line, strings and comments aside."""
    plain = re.sub(r""""(?:\\.|[^"\\])*"|'[^']*'""", "", text).partition("#")[0]
    return plain.count("[") - plain.count("]")


def line_of(found: dict[Path, int], path: Path) -> int:
    """The line of a key, or of the nearest thing around it that has one."""
    while path:
        if path in found:
            return found[path]
        path = path[:-1]
    return 1
