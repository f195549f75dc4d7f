"""The values of a pipeline file, read one by one: what is wrong is noted with its line, and reading goes on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sash.errors import DefinitionError
from sash.pipeline.lines import Path as Place
from sash.pipeline.lines import line_of
from sash.time import duration

__all__ = ["PipelineErrors", "Values"]


class PipelineErrors(DefinitionError):
    """All that is wrong with a pipeline file."""

    def __init__(self, file: Path, found: list[tuple[int, str]]) -> None:
        self.found = sorted(set(found))
        said = [f"{file}:{line}: {message}" for line, message in self.found]
        count = "1 thing is" if len(said) == 1 else f"{len(said)} things are"
        super().__init__("\n".join([f"{count} wrong with {file}", *said]))


class Values:
    """Reads values of a document and notes what is wrong, going on as far as it can."""

    def __init__(self, file: Path, where: dict[Place, int]) -> None:
        self.file, self.where = file, where
        self.found: list[tuple[int, str]] = []

    def wrong(self, place: Place, message: str) -> None:
        """Note a mistake at a key of the file."""
        self.found.append((line_of(self.where, place), message))

    def unknown(self, place: Place, table: Mapping[str, Any], allowed: tuple[str, ...], what: str) -> None:
        """Note the keys of a table that it does not take."""
        for key in table:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, 1)
                fix = f"Did you mean {near[0]}?" if near else f"It takes {', '.join(allowed)}."
                self.wrong((*place, key), f"{key!r} is not a key of {what}. {fix}")

    def table(self, place: Place, parent: Mapping[str, Any], needed: str | None = None) -> Mapping[str, Any] | None:
        """Read a table."""
        value = parent.get(str(place[-1]))
        if value is None:
            if needed:
                self.wrong(place[:-1], f"there is no {needed}. Add it.")
            return None
        if not isinstance(value, dict):
            self.wrong(place, f"{place[-1]} is {value!r}, not a table. Write [{place[-1]}] on a line, and its keys below.")
            return None
        return value

    def text(self, place: Place, parent: Mapping[str, Any], needed: str | None = None) -> str | None:
        """Read a text that is not empty."""
        value = parent.get(str(place[-1]))
        if value is None and needed:
            self.wrong(place[:-1], f"there is no {place[-1]}. Add {needed}.")
        if value is not None and (not isinstance(value, str) or not value.strip()):
            self.wrong(place, f'{place[-1]} is {value!r}. Write it as text: {place[-1]} = "...".')
            return None
        return value

    def texts(self, place: Place, parent: Mapping[str, Any], example: str) -> tuple[str, ...]:
        """Read a list of texts; none where the key is missing."""
        value = parent.get(str(place[-1]))
        if value is None:
            return ()
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one.strip() for one in value):
            self.wrong(place, f"{place[-1]} is {value!r}. Write a list of texts: {place[-1]} = {example}.")
            return ()
        return tuple(value)

    def length(self, place: Place, parent: Mapping[str, Any], needed: str | None = None) -> str | None:
        """Read a length of time, as text."""
        value = parent.get(str(place[-1]))
        if value is None:
            if needed:
                self.wrong(place[:-1], f"there is no {place[-1]}. Add {needed}.")
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.wrong(place, f'{place[-1]} = {value} has no unit. Write it as text with one: {place[-1]} = "{value}s".')
            return None
        try:
            duration(value)
        except (TypeError, ValueError, OverflowError) as error:
            self.wrong(place, f"{place[-1]}: {error}")
            return None
        return str(value)

    def one_of(self, place: Place, table: Mapping[str, Any], asked: dict[str, Any], allowed: tuple[str, ...]) -> None:
        """Read one of some words into `asked`, where the key is there."""
        key = str(place[-1])
        if key in table and table[key] not in allowed:
            self.wrong(place, f"{key} = {table[key]!r} is not known. Use one of {', '.join(allowed)}.")
        elif key in table:
            asked[key] = table[key]

    def options(self, place: Place, parent: Mapping[str, Any]) -> dict[str, str]:
        """Read the options of a format or the settings of Spark."""
        table = self.table(place, parent) or {}
        found = {}
        for key, value in _flat(table):
            if isinstance(value, list | dict):
                self.wrong((*place, key), f"the option {key} is {value!r}. Options are text, numbers, true or false.")
            found[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return found

    def resolved(self, path: str) -> str:
        """A path as Spark takes it: one without a scheme is relative to the file."""
        return path if "://" in path else str((self.file.parent / path).resolve())


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Options with dots in their names, which TOML reads as tables of tables."""
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        found += _flat(value, f"{before}{key}.") if isinstance(value, dict) else [(before + key, value)]
    return found
