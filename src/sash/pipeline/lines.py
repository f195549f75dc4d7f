"""Where things stand in a TOML file: tomllib gives values without lines, and an error without a line helps nobody.

A parser that keeps positions would be better, if there were one: tomlkit and tomlrt keep none; tomlkit-extras brings five packages for
it, tree-sitter-toml two compiled ones, and values still come from tomllib. Statements are easy to tell apart in a text that tomllib has
read without an error, which is the only kind of text that comes here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final

__all__ = ["Path", "line_of", "lines"]

Path = tuple[str | int, ...]

# What a statement is made of, as far as it matters for where it ends: strings, comments, brackets, the end of a line.
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'" r"|#[^\n]*|[\[\]{}]|\n", re.DOTALL
)
_PART: Final = re.compile(r'\s*(?:([A-Za-z0-9_-]+)|("(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'))\s*(\.?)')


def lines(text: str) -> dict[Path, int]:
    """Find the line of every table and every key: `("windows", 0, "range")` is the key of the first [[windows]].

    >>> lines("time = 1\\n[[windows]]\\nrange = 2\\n")
    {('time',): 1, ('windows', 0): 2, ('windows', 0, 'range'): 3}
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}  # how many [[tables]] of a name there were, less one
    table: Path = ()
    for number, statement in _statements(text):
        brackets = len(statement) - len(statement.lstrip("["))
        key = _key(statement[brackets:])
        if brackets:
            table = _full(key, counts)
            if brackets == 2:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
        found.setdefault(table if brackets else (*table, *key), number)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Cut a document into tables' heads and keys with their values, each with the line it starts at."""
    start, depth = 0, 0
    for token in _TOKEN.finditer(text + "\n"):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if token[0] == "\n" and depth == 0:
            statement = text[start : token.start()].strip()
            if statement and not statement.startswith("#"):
                yield text.count("\n", 0, start) + 1, statement
            start = token.end()


def _key(text: str) -> tuple[str, ...]:
    """Read the dotted key that a text begins with."""
    parts: list[str] = []
    dot, at = ".", 0
    while dot and (part := _PART.match(text, at)):
        parts.append(part[1] or tomllib.loads(f"key = {part[2]}")["key"])
        dot, at = part[3], part.end()
    return tuple(parts)


def _full(path: tuple[str, ...], counts: dict[Path, int]) -> Path:
    """A table's path with the index of the array of tables that it lies in."""
    out: Path = ()
    for i, part in enumerate(path):
        out = (*out, part)
        if out in counts and i < len(path) - 1:
            out = (*out, counts[out])
    return out


def line_of(found: dict[Path, int], path: Path) -> int:
    """The line of a key, or of the nearest thing around it that has one."""
    while path:
        if path in found:
            return found[path]
        path = path[:-1]
    return 1
