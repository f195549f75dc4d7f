"""The manifest of a tile store: what its tiles are of, which segments it has, and how far they reach.

::

    store/
      tiles-00000000-00000007-4f1c….parquet   a segment: the slices of some batches of one query, sorted by key and time
      _sash/manifest.json                     this: the definition, the writer, the watermark, the segments
      _sash/tiles-….index                     where each key's rows are in a segment; made again where it is missing

A change is a new manifest, put in one step: a reader sees the store before it or after it, never in between. The manifest names
only files that are whole, and a file's name is never used again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from sash import agg, codec
from sash.agg import Aggregation
from sash.time import duration_text
from sash.wheel.errors import TileStoreError
from sash.wheel.tile_files import FOLDER, Files

__all__ = ["VERSION", "Definition", "Manifest", "Segment"]

VERSION: Final = 2  # 2: checksums of segments, aggregations that were added later
_NAME: Final = f"{FOLDER}/manifest.json"
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

    def with_added(self, other: Definition) -> Definition | None:
        """This definition with the aggregations that another one has besides; None where they differ in anything else."""
        known = all(other.aggs.get(name) == a for name, a in self.aggs.items())
        if not known or self.grain != other.grain or self.keys != other.keys:
            return None
        return dataclasses.replace(self, aggs={**self.aggs, **other.aggs})

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
    checksum: int | None = None  # CRC-32 of the file; None where version 1 wrote it

    @classmethod
    def read(cls, document: Any) -> Segment:
        """Read one of a manifest; TypeError where a field is not of its kind."""
        numbers = {name: _number(name, value) for name, value in document.items() if name not in ("file", "checksum")}
        checksum = _number("checksum", document.get("checksum"), none=True)
        return cls(**{**numbers, "file": _text_of("file", document["file"]), "checksum": checksum})


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
    since: Mapping[str, int] = dataclasses.field(default_factory=dict)  # of aggregations that were added later: from where on they are kept
    prints: tuple[str, ...] = ()  # fingerprints of the definition before they were
    table: Mapping[str, Any] | None = None  # of an index: what it is an index of
    free: bool = False  # another query may go on from the watermark
    open: Segment | None = None  # slices that are not final yet, perhaps none; None where the last batch did not tell them

    def save(self, files: Files) -> None:
        """Put it in the place of the one before, in one step."""
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
            "since": dict(self.since),
            "prints": list(self.prints),
            "table": self.table,
            "free": self.free,
            "open": None if self.open is None else dataclasses.asdict(self.open),
        }
        text = json.dumps({**document, "checksum": _checksum(document)}, indent=1)
        files.put(_NAME, text.encode())

    @classmethod
    def load(cls, files: Files, given: Mapping[str, Aggregation], known: Definition | None = None) -> Manifest:
        """Read a store's manifest, or say why not. `known`: the definition read before, to read it no second time."""
        text = _text(files)
        try:
            document = json.loads(text)
            if not isinstance(document, dict) or document.get("format") != _FORMAT:
                raise ValueError("it is no manifest")
            if document["version"] > VERSION:
                raise TileStoreError(
                    f"{files} is a tile store of version {document['version']}, newer than this Sash reads ({VERSION}). Use a newer Sash."
                )
            if document.pop("checksum", None) != _checksum(document):
                raise ValueError("its checksum does not fit")
            return cls._read(files, document, given, known)
        except TileStoreError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise TileStoreError(f"{files.path(_NAME)} is damaged: {error}. Restore it; the tiles themselves were not touched.") from error

    @classmethod
    def _read(cls, files: Files, document: dict[str, Any], given: Mapping[str, Aggregation], known: Definition | None) -> Manifest:
        definition = known
        if definition is None or definition.fingerprint() != document["fingerprint"]:
            definition = Definition.read(document["definition"], given)
            if definition.fingerprint() != document["fingerprint"]:
                raise TileStoreError(
                    f"{files}: the aggregations given are not the ones its tiles were made with. Pass the same definitions, unchanged."
                )
        return cls(
            definition,
            None if document["query"] is None else _text_of("query", document["query"]),
            _number("batch", document["batch"]),
            _number("watermark", document["watermark"], none=True),
            _number("kept_from", document["kept_from"], none=True),
            tuple((name, _text_of("columns", kind)) for name, kind in document["columns"].items()),
            tuple(Segment.read(segment) for segment in document["units"]),
            {name: _number("since", at) for name, at in document.get("since", {}).items()},
            tuple(_text_of("prints", print_) for print_ in document.get("prints", ())),
            None if document.get("table") is None else dict(document["table"]),
            bool(document.get("free", False)),
            None if document.get("open") is None else Segment.read(document["open"]),
        )

    def accepts(self, print_: str) -> bool:
        """Whether a segment of this fingerprint belongs to the store."""
        return print_ == self.definition.fingerprint() or print_ in self.prints


def exists(files: Files) -> bool:
    """Whether there is a manifest."""
    try:
        files.read(_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _text(files: Files) -> bytes:
    try:
        return files.read(_NAME)
    except FileNotFoundError:
        there = "is a folder without a manifest" if files.kind() == "folder" else "does not exist"
        raise TileStoreError(
            f"{files} {there}: it is no tile store. Give the folder that [tiles] of a pipeline writes, "
            f"the one that holds {_NAME}; if that file was lost, restore it: the tiles alone do not say what they are of."
        ) from None
    except NotADirectoryError:
        raise TileStoreError(f"{files} is a file, not a tile store. Give the folder that [tiles] of a pipeline writes.") from None


def _number(field: str, value: Any, *, none: bool = False) -> Any:
    if not (none and value is None) and (type(value) is not int or abs(value) > 2**61):  # no wheel reaches further
        raise TypeError(f"its {field} is {value!r}, not a number that a store writes")
    return value


def _text_of(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"its {field} is {value!r}, not text")
    return value


def _checksum(document: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=8).hexdigest()


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
