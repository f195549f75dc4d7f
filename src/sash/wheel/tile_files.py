"""The files of a tile store, on this machine or on any file system that PyArrow knows: S3, GCS, Azure, HDFS.

A file is put whole or not at all, and its name is never used again; the manifest alone is put again and again. One process at a
time changes a store: on this machine by a lock, elsewhere by a lease. Readers need neither.

What is required elsewhere: a put is whole or not at all, and what was put is listed and read at once. S3, GCS, Azure and HDFS say
so of themselves.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlparse

from sash.wheel.errors import TileStoreError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

__all__ = ["FOLDER", "Elsewhere", "Files", "Here", "files_of"]

FOLDER: Final = "_sash"  # of what is not tiles
LEASE: Final = 60.0  # seconds that a writer elsewhere may take between two signs of life
PATIENCE: Final = 90.0  # seconds that a writer elsewhere waits for another one: longer than a killed one's lease
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_PUT_OVER: Final = ("s3", "gcs", "abfs")  # a put replaces an object in one step, and there are no folders to make


class Files(Protocol):
    """What a store asks of a file system; names are relative to the store's folder."""

    def path(self, name: str) -> Path | str:
        """The file as other engines name it."""

    def kind(self) -> str:
        """What is at the store's path: nothing, a file, or a folder."""

    def make(self) -> None:
        """Make the store's folders."""

    def read(self, name: str) -> bytes:
        """All of a file; FileNotFoundError where it is missing."""

    def open(self, name: str) -> pa.NativeFile:
        """A file to be read in pieces; FileNotFoundError where it is missing."""

    def size(self, name: str) -> int:
        """The bytes of a file; FileNotFoundError where it is missing."""

    def put(self, name: str, data: Any) -> None:
        """Write a file so that it is there whole or not at all."""

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone is no error."""

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder of the store."""

    def changing(self) -> contextlib.AbstractContextManager[Lease]:
        """Let one process at a time change the store."""


class Lease(Protocol):
    """The right to change a store."""

    def keep(self) -> None:
        """Make sure that it is still held, right before the manifest is put; TileStoreError where it was lost."""


def files_of(path: str | os.PathLike[str]) -> Files:
    """The file system of a store's path: a path of this machine, file:///..., s3://bucket/..., gs://..., abfs://..., hdfs://..."""
    text = os.fspath(path)
    if isinstance(path, Path) or not _SCHEME.match(text):
        return Here(Path(text))
    parsed = urlparse(text)
    if parsed.scheme == "file":
        if parsed.netloc:
            raise TileStoreError(f"{text!r} names a host. Write file:///path, with three slashes, or a plain path.")
        return Here(Path(unquote(parsed.path)))
    import pyarrow as pa

    try:
        system, root = _from_uri(re.sub(r"^s3[an]://", "s3://", text))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TileStoreError(
            f"{text!r} is on no file system that can be reached: {error}. Use a plain path, s3://, gs://, abfs:// or hdfs://."
        ) from None
    if system.type_name == "mock":
        raise TileStoreError(f"{text!r} is on no file system. Use a plain path, s3://, gs://, abfs:// or hdfs://.")
    return Elsewhere(system, root, text)


def _from_uri(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    import pyarrow.fs as fs

    return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]


class Here:
    """The file system of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    def path(self, name: str) -> Path:
        return self.root / name if name else self.root

    def kind(self) -> str:
        return "folder" if self.root.is_dir() else "file" if self.root.exists() else "nothing"

    def make(self) -> None:
        self._make_folder(self.root / FOLDER)

    def read(self, name: str) -> bytes:
        return self.path(name).read_bytes()

    def open(self, name: str) -> pa.NativeFile:
        import pyarrow as pa

        return pa.memory_map(str(self.path(name)))

    def size(self, name: str) -> int:
        return self.path(name).stat().st_size

    def put(self, name: str, data: Any) -> None:
        path = self.path(name)
        aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._write(aside, data)
        self._rename(aside, path)

    def delete(self, name: str) -> None:
        self._unlink(self.path(name))

    def names(self, folder: str = "") -> list[str]:
        return sorted(os.listdir(self.path(folder)))

    @contextlib.contextmanager
    def changing(self) -> Iterator[Lease]:
        import fcntl

        with self.path(f"{FOLDER}/lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield _Lock()
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    # Each is one step that changes the disk: a process can be killed between any two of them.

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def _write(self, path: Path, data: Any) -> None:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _rename(self, path: Path, to: Path) -> None:
        path.replace(to)

    def _unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)


class _Lock:
    """A lock of this machine is held until it is given back, or until its process ends."""

    def keep(self) -> None:
        """Nothing to do."""


class Elsewhere:
    """A file system that PyArrow knows."""

    def __init__(self, system: pyarrow.fs.FileSystem, root: str, uri: str) -> None:
        self.system, self.root, self.uri = system, root.rstrip("/"), uri
        self._puts_over = system.type_name in _PUT_OVER

    def __str__(self) -> str:
        return self.uri

    def path(self, name: str) -> str:
        base, mark, rest = self.uri.partition("?")
        return (f"{base.rstrip('/')}/{name}" if name else base) + mark + rest

    def kind(self) -> str:
        import pyarrow.fs as fs

        info = self.system.get_file_info(self.root)
        return {fs.FileType.NotFound: "nothing", fs.FileType.Directory: "folder"}.get(info.type, "file")

    def make(self) -> None:
        if not self._puts_over:
            self.system.create_dir(self._at(FOLDER), recursive=True)

    def read(self, name: str) -> bytes:
        try:
            with self.open(name) as file:
                return file.read()  # type: ignore[no-any-return]
        except FileNotFoundError:
            if self._puts_over:
                raise
            with self.open(f"{name}.next") as file:  # its writer is between two steps of _replace, or was killed there
                return file.read()  # type: ignore[no-any-return]

    def open(self, name: str) -> pa.NativeFile:
        return self.system.open_input_file(self._at(name))

    def size(self, name: str) -> int:
        info = self.system.get_file_info(self._at(name))
        if not info.is_file:
            raise FileNotFoundError(self.path(name))
        return int(info.size)

    def put(self, name: str, data: Any) -> None:
        if self._puts_over:
            self._write(self._at(name), data)
            return
        aside = self._at(f"{name}.{secrets.token_hex(4)}.tmp")
        self._write(aside, data)
        self._replace(aside, self._at(name))

    def _replace(self, aside: str, at: str) -> None:
        """Rename over what is there, on a file system that renames only onto free names. Readers take at.next where `at` is missing."""
        import pyarrow.fs as fs

        there, ahead = self.system.get_file_info([at, f"{at}.next"])
        if ahead.type == fs.FileType.File:  # a writer was killed below
            if there.type == fs.FileType.File:
                self._remove(f"{at}.next")
            else:
                self._move(f"{at}.next", at)
                there = self.system.get_file_info(at)
        if there.type != fs.FileType.File:
            self._move(aside, at)
            return
        self._move(aside, f"{at}.next")
        self._remove(at)
        self._move(f"{at}.next", at)

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._remove(self._at(name))

    def names(self, folder: str = "") -> list[str]:
        return [info.base_name for info in self._infos(folder)]

    @contextlib.contextmanager
    def changing(self) -> Iterator[Lease]:
        claim = _Claim(self)
        claim.take()
        try:
            yield claim
        finally:
            claim.give_back()

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _infos(self, folder: str) -> list[Any]:
        import pyarrow.fs as fs

        found = self.system.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True))
        return sorted(found, key=lambda info: info.base_name)

    # Each is one step that changes the file system: a process can be killed between any two of them.

    def _write(self, path: str, data: Any) -> None:
        with self.system.open_output_stream(path, compression=None) as file:
            file.write(data)

    def _move(self, path: str, to: str) -> None:
        self.system.move(path, to)

    def _remove(self, path: str) -> None:
        self.system.delete_file(path)


class _Claim:
    """A lease: a file that says who changes the store.

    A writer puts its claim, then lists all claims. Where it sees another, it takes its own back and tries again later. Of two that
    claim at once, at least one sees the other: two never hold the lease. A claim is dead when another one is LEASE seconds newer, by
    the clock of the file system alone; then others may delete it. A writer that was at work for half as long makes sure of its claim
    before it puts the manifest. What is required is that it is not paused for the other half before that put has ended.
    """

    def __init__(self, files: Elsewhere) -> None:
        self.files = files
        self.name = f"claim-{secrets.token_hex(8)}"
        self._put_at = 0.0

    def take(self) -> None:
        """Wait for the lease; TileStoreError where another keeps it."""
        waited = time.monotonic()
        while True:
            self._put()
            others = self._others()
            if not others:
                return
            self.give_back()
            if time.monotonic() - waited > PATIENCE:
                raise TileStoreError(
                    f"{self.files} is being changed by another process, which keeps {FOLDER}/{others[0]}. A store has one writer at a "
                    "time: stop the other one, or try again."
                )
            time.sleep(0.05 + secrets.randbelow(200) / 1000)

    def keep(self) -> None:
        """Make sure of the lease right before the manifest is put."""
        if time.monotonic() - self._put_at < LEASE / 2:
            return  # nobody takes it for dead
        try:
            self.files.size(f"{FOLDER}/{self.name}")
        except FileNotFoundError:
            lost = True
        else:
            self._put()
            lost = bool(self._others())
        if lost:
            raise TileStoreError(
                f"{self.files} was taken over by another process, because this one gave no sign of life for {LEASE:.0f} seconds. "
                "Nothing was changed: run the batch again."
            )

    def give_back(self) -> None:
        """Let others change the store."""
        self.files.delete(f"{FOLDER}/{self.name}")

    def _put(self) -> None:
        self.files.make()
        self._put_at = time.monotonic()
        self.files._write(self.files._at(f"{FOLDER}/{self.name}"), str(os.getpid()).encode())

    def _others(self) -> list[str]:
        """The claims of others that are alive; dead ones are deleted."""
        claims = [info for info in self.files._infos(FOLDER) if info.base_name.startswith("claim-")]
        mine = next((info.mtime_ns for info in claims if info.base_name == self.name), None)
        alive = []
        for info in claims:
            if info.base_name == self.name:
                continue
            if mine is not None and mine - info.mtime_ns > LEASE * 1e9:
                self.files.delete(f"{FOLDER}/{info.base_name}")
            else:
                alive.append(info.base_name)
        return alive
