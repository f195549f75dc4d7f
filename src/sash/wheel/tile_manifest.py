"""The manifest of a tile store: what its tiles are of, which segments it has, and how far they reach.

::

    store/
      tiles-00000000-00000007.parquet     a segment: the slices of some batches of one query, sorted by key and time
      _sash/manifest.json                 this: the definition, the writer, the watermark, the segments
      _sash/tiles-….index                 where each key's rows are in a segment; made again where it is missing

A change is a new manifest, written aside and renamed: a reader sees the store before it or after it, never in between.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sash import agg, codec
from sash.agg import Aggregation
from sash.time import duration_text
from sash.wheel.errors import TileStoreError

__all__ = ["FOLDER", "VERSION", "Definition", "Manifest", "Segment", "locked", "write_aside"]

VERSION: Final = 1
FOLDER: Final = "_sash"
_FORMAT: Final = "sash tile store"
_FACTORIES: Final = frozenset(agg.__all__) - {"Aggregation", "define", "struct"}


@dataclasses.dataclass(frozen=True)
class Definition:
    """What a store's tiles are of: aggregations by name, the grain in microseconds, the key columns."""

    aggs: Mapping[str, Aggregation]
    grain: int
    keys: tuple[str, ...]

    def fingerprint(self) -> str:
        """Text that differs where the definition does; user aggregations need a name."""
        facts = tuple((name, a.fingerprint()) for name, a in self.aggs.items())
        return codec.fingerprint((facts, self.grain, self.keys, "us")).hex()

    def document(self) -> dict[str, Any]:
        """The definition as JSON."""
        aggs = {name: _agg_document(a) for name, a in self.aggs.items()}
        return {"grain": duration_text(self.grain), "grain_us": self.grain, "unit": "us", "keys": list(self.keys), "aggs": aggs}

    @classmethod
    def read(cls, document: Mapping[str, Any], given: Mapping[str, Aggregation]) -> Definition:
        """Read it from JSON; `given` holds the aggregations that JSON can't, those made of callables."""
        aggs = {
            name: given[name] if name in given and made.get("callables") else _agg(name, made) for name, made in document["aggs"].items()
        }
        return cls(aggs, int(document["grain_us"]), tuple(document["keys"]))

    def differences(self, other: Definition) -> str:
        """Say in words how another definition differs from this one."""
        found = []
        if self.grain != other.grain:
            found.append(f"its grain is {duration_text(self.grain)}, not {duration_text(other.grain)}")
        if self.keys != other.keys:
            found.append(f"its key is {', '.join(self.keys) or 'none'}, not {', '.join(other.keys) or 'none'}")
        for name in dict.fromkeys((*self.aggs, *other.aggs)):
            mine, theirs = self.aggs.get(name), other.aggs.get(name)
            if mine != theirs:
                found.append(f"its {name} is {mine!r}, not {theirs!r}" if mine is not None else f"it has no {name}")
        return "; ".join(found) or "its aggregations are in another order"


@dataclasses.dataclass(frozen=True)
class Segment:
    """A file of slices: of which batches, how large, over which time [start, end) in microseconds."""

    file: str
    first: int
    last: int
    level: int  # how often it was merged
    rows: int
    size: int
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One state of a store."""

    definition: Definition
    query: str | None = None  # the one that writes; None before the first batch
    batch: int = -1  # the last one that was written
    watermark: int | None = None  # slices that end by here are complete, in microseconds
    kept_from: int | None = None  # slices before were dropped by retention
    columns: tuple[tuple[str, str], ...] = ()
    segments: tuple[Segment, ...] = ()

    def save(self, store: Path) -> None:
        """Write it aside and rename it."""
        document: dict[str, Any] = {
            "format": _FORMAT,
            "version": VERSION,
            "fingerprint": self.definition.fingerprint(),
            "definition": self.definition.document(),
            "query": self.query,
            "batch": self.batch,
            "watermark": self.watermark,
            "kept_from": self.kept_from,
            "columns": dict(self.columns),
            "units": [dataclasses.asdict(segment) for segment in self.segments],
        }
        text = json.dumps({**document, "checksum": _checksum(document)}, indent=1)
        write_aside(_path(store), text.encode())

    @classmethod
    def load(cls, store: Path, given: Mapping[str, Aggregation], known: Definition | None = None) -> Manifest:
        """Read a store's manifest, or say why not. `known`: the definition read before, to read it no second time."""
        document = _document(store)
        definition = known
        if definition is None or definition.fingerprint() != document["fingerprint"]:
            definition = Definition.read(document["definition"], given)
            if definition.fingerprint() != document["fingerprint"]:
                raise TileStoreError(
                    f"{store}: the aggregations given are not the ones its tiles were made with. Pass the same definitions, unchanged."
                )
        return cls(
            definition,
            document["query"],
            document["batch"],
            document["watermark"],
            document["kept_from"],
            tuple(document["columns"].items()),
            tuple(Segment(**segment) for segment in document["units"]),
        )


def _path(store: Path) -> Path:
    return store / FOLDER / "manifest.json"


def _document(store: Path) -> dict[str, Any]:
    try:
        text = _path(store).read_bytes()
    except FileNotFoundError:
        there = "is a folder without a manifest" if store.is_dir() else "does not exist"
        raise TileStoreError(
            f"{store} {there}: it is no tile store. Give the folder that [tiles] of a pipeline writes, "
            f"the one that holds {FOLDER}/manifest.json; if that file was lost, restore it: the tiles alone do not say what they are of."
        ) from None
    except NotADirectoryError:
        raise TileStoreError(f"{store} is a file, not a tile store. Give the folder that [tiles] of a pipeline writes.") from None
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError("it is no manifest")
        if document["version"] > VERSION:
            raise TileStoreError(
                f"{store} is a tile store of version {document['version']}, newer than this Sash reads ({VERSION}). Use a newer Sash."
            )
        if document.pop("checksum", None) != _checksum(document):
            raise ValueError("its checksum does not fit")
        return document
    except TileStoreError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise TileStoreError(f"{_path(store)} is damaged: {error}. Restore it; the tiles themselves were not touched.") from error


def _checksum(document: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=8).hexdigest()


def write_aside(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Let one process at a time change a store; readers need no lock."""
    import fcntl

    with (store / FOLDER / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


# --- aggregations as JSON


def _agg_document(aggregation: Aggregation) -> dict[str, Any]:
    a = aggregation
    if a.callables or callable(a.where) or any(callable(value) for _, value in a.params):  # only Python can hold it
        return {"agg": a.name, "callables": True}
    if a.parts:
        return {"agg": "struct", "parts": {name: _agg_document(part) for name, part in a.parts}}
    return {"agg": a.name, "column": a.column, "where": a.where, "dtype": a.dtype, "params": dict(a.params)}


def _agg(name: str, made: Mapping[str, Any]) -> Aggregation:
    if made.get("callables"):
        raise TileStoreError(
            f"the aggregation {name!r} ({made['agg']}) is made of Python callables, which a store does not hold. "
            f"Open the store with it: TileStore(path, aggs={{{name!r}: ...}})."
        )
    if made["agg"] == "struct":
        return agg.struct(**{part: _agg(f"{name}.{part}", inner) for part, inner in made["parts"].items()})
    if made["agg"] not in _FACTORIES:
        raise TileStoreError(f"the aggregation {name!r} is {made['agg']!r}, which this Sash does not have. Use a newer Sash.")
    arguments = {"column": made["column"], "where": made["where"], **made["params"]}
    aggregation: Aggregation = getattr(agg, made["agg"])(**{key: value for key, value in arguments.items() if value is not None})
    return aggregation if aggregation.dtype == made["dtype"] else aggregation.replace(dtype=made["dtype"])
