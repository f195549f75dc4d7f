"""Tile stores on other file systems: S3 as a real server speaks it, and one that renames as HDFS does."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from sash import agg
from sash.wheel import NotRetained, TileStore, TileStoreError, tile_files
from sash.wheel.tile_manifest import exists
from tests.wheel.tile_batches import MINUTE, ONE, UTC, made, random_batches, tiles

STEPS = ("_write", "_move", "_remove")


class Killed(BaseException):
    pass


@contextlib.contextmanager
def dying_at(step, when="before"):
    """Let no more than `step` changes of a file system happen; with when="after", the last one happens and is not heard of."""
    taken = 0
    real = {name: getattr(tile_files.Elsewhere, name) for name in STEPS}

    def counted(name):
        def call(self, *args):
            nonlocal taken
            if taken > step or (taken == step and when == "before"):
                raise Killed
            taken += 1
            found = real[name](self, *args)
            if taken > step:
                raise Killed
            return found

        return call

    for name in STEPS:
        setattr(tile_files.Elsewhere, name, counted(name))
    try:
        yield
    finally:
        for name in STEPS:
            setattr(tile_files.Elsewhere, name, real[name])


class RenamesOntoFreeNames(pa.fs.FileSystemHandler):
    """A folder of this machine as a file system that renames only onto names that are free, as HDFS does."""

    def __init__(self, folder):
        self.inner = pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem())

    def __getattr__(self, name):
        raise AttributeError(name)

    def get_type_name(self):
        return "strict"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.inner.get_file_info(selector)

    def create_dir(self, path, recursive):
        self.inner.create_dir(path, recursive=recursive)

    def delete_file(self, path):
        self.inner.delete_file(path)

    def move(self, src, dest):
        if self.inner.get_file_info(dest).type != pa.fs.FileType.NotFound:
            raise OSError(f"{dest} is there")
        self.inner.move(src, dest)

    def open_input_file(self, path):
        return self.inner.open_input_file(path)

    def open_input_stream(self, path):
        return self.inner.open_input_stream(path)

    def open_output_stream(self, path, metadata):
        return self.inner.open_output_stream(path)

    def delete_dir(self, path):
        raise NotImplementedError

    delete_dir_contents = delete_root_dir_contents = copy_file = open_append_stream = delete_dir


RenamesOntoFreeNames.__abstractmethods__ = frozenset()


@pytest.fixture(scope="session")
def s3():
    """An S3 server of the package moto, started and stopped here, on the loopback."""
    pytest.importorskip("moto", reason="no S3 server: pip install 'moto[server]'")
    pytest.importorskip("flask", reason="no S3 server: pip install 'moto[server]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).read()
                break
            assert server.poll() is None, "the S3 server did not start"
            threading.Event().wait(0.1)
        with pytest.MonkeyPatch.context() as patched:
            for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"}.items():
                patched.setenv(name, value)
            pa.fs.S3FileSystem(
                endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
            ).create_dir("bucket")
            yield f"s3://bucket/%s?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def strict(tmp_path, monkeypatch):
    """The path of a new store on a file system that renames as HDFS does."""
    real = pa.fs.FileSystem.from_uri
    system = pa.fs.PyFileSystem(RenamesOntoFreeNames(tmp_path))

    def from_uri(uri):
        return (system, uri.removeprefix("strict://")) if uri.startswith("strict://") else real(uri)

    monkeypatch.setattr(tile_files, "_from_uri", from_uri)
    return "strict://some/tiles"


@pytest.fixture(params=["s3", "strict"])
def where(request):
    """The path of a new store elsewhere."""
    return (
        request.getfixturevalue("strict") if request.param == "strict" else request.getfixturevalue("s3") % f"tiles-{uuid.uuid4().hex[:8]}"
    )


def answers(path):
    if not exists(tile_files.files_of(path)):
        return "no store"
    store = TileStore(path)
    if store.watermark is None:
        return "nothing written"
    first, upto = store.kept_from or 0, store.watermark
    kept = {name: store.wheels(name, start=first).group_by_all(first, upto, "1m") for name in ("n", "total")}
    try:
        whole = store.wheels("total", start=0).query_all(0, upto)
    except NotRetained:
        whole = "not retained"
    return repr((upto, store.kept_from, kept, whole))


def test_a_store_elsewhere_answers_as_one_here(where, tmp_path):
    batches = random_batches(1, 20)
    here, there = made(tmp_path / "here", batches), made(where, batches)
    assert str(there.path) == where
    assert answers(where) == answers(tmp_path / "here")
    assert sorted(TileStore(where).keys()) == sorted(here.keys())
    one = TileStore(where).wheels("mean", keys=["z1"], start=0)
    assert one.query("z1", 0, 140 * MINUTE) == here.wheels("mean", start=0).query("z1", 0, 140 * MINUTE)
    assert TileStore(where).table("1h").equals(here.table("1h"))
    assert there.compact() == here.compact() > 1
    assert there.expire("1h") == here.expire("1h")
    assert answers(where) == answers(tmp_path / "here")
    with pytest.raises(NotRetained):
        there.wheels("n", start=0)
    reader = TileStore(where)
    wheels = reader.wheels("n")
    there.write(tiles([("z0", 150, [1])]), query="q", batch=20, watermark=160 * MINUTE)
    assert reader.refresh()
    assert wheels.query("z0", 150 * MINUTE, 151 * MINUTE) == 1


def test_a_few_keys_of_many_are_read_by_range(s3, monkeypatch):
    where = s3 % "ranges"
    store = TileStore.create(where, aggs={"n": agg.count()}, grain="1m", key="k")
    monkeypatch.setattr("sash.wheel.tile_segments._ROWS", 1000)
    count = 200_000
    rows = pa.table(
        {
            "k": [f"{i // 100:06d}" for i in range(count)],
            "slice_start": pa.array([i % 100 * MINUTE for i in range(count)]).cast(UTC),
            "n": list(range(count)),
        }
    )
    store.write(rows, query="q", batch=0, watermark=100 * MINUTE)
    read = 0
    real = tile_files.Elsewhere.open

    def counted(self, name):
        file = real(self, name)
        if not name.endswith(".parquet"):
            return file

        class Counted:
            size = staticmethod(file.size)

            def read_at(self, n, at):
                nonlocal read
                read += n
                return file.read_at(n, at)

            def seek(self, at):
                return file.seek(at)

            def read_buffer(self, n):
                nonlocal read
                read += n
                return file.read_buffer(n)

        return Counted()

    monkeypatch.setattr(tile_files.Elsewhere, "open", counted)
    wheels = TileStore(where).wheels("n", keys=["001234"])
    assert wheels.query("001234", 0, 100 * MINUTE) == sum(range(123_400, 123_500))
    (size,) = (segment.size for segment in store._manifest.segments)
    assert read < size / 5


KILLS = [(change, when) for change in ("create", "write", "compact", "expire") for when in ("before", "after")]


@pytest.mark.parametrize(("change", "when"), KILLS)
def test_killed_between_any_two_steps_a_store_that_renames_answers_as_before_or_as_after(strict, change, when, monkeypatch):
    _killed_at_every_step(strict, change, when, monkeypatch)


@pytest.mark.parametrize(
    ("change", "when"), [pytest.param(*kill, marks=() if kill == ("expire", "before") else pytest.mark.stress) for kill in KILLS]
)
def test_killed_between_any_two_steps_a_store_in_s3_answers_as_before_or_as_after(s3, change, when, monkeypatch):
    _killed_at_every_step(s3 % f"tiles-{change}-{when}", change, when, monkeypatch)


def _killed_at_every_step(where, change, when, monkeypatch):
    monkeypatch.setattr(tile_files, "LEASE", -1e9)  # a killed writer's lease has run out
    batches = random_batches(3, 3, zones=2)
    steps = {
        "create": lambda path: made(path),
        "write": lambda path: TileStore(path).write(tiles([("z0", 30, [1, 2])]), query="q", batch=3, watermark=31 * MINUTE),
        "compact": lambda path: TileStore(path).compact(),
        "expire": lambda path: TileStore(path).expire(10 * MINUTE),
    }

    def fresh(i):
        path = where.replace("tiles", f"tiles{i}", 1)
        if change != "create":
            made(path, batches)
        return path

    before = answers(fresh("b"))
    whole = fresh("a")
    steps[change](whole)
    after = answers(whole)
    for step in range(100):
        path = fresh(step)
        try:
            with dying_at(step, when):
                steps[change](path)
        except Killed:
            pass
        else:
            break
        assert answers(path) in (before, after), f"killed at step {step}"
        steps[change](path)
        assert answers(path) == after, f"again after a kill at step {step}"
    assert step > 2


def test_of_two_writers_at_once_one_is_refused(where, monkeypatch):
    store = made(where, ONE)
    monkeypatch.setattr(tile_files, "PATIENCE", 0.3)
    with store._files.changing():
        started = time.monotonic()
        with pytest.raises(TileStoreError, match="is being changed by another process"):
            TileStore(where).write(tiles([("a", 5, [1])]), query="q", batch=1, watermark=6 * MINUTE)
        assert time.monotonic() - started < 30
        assert TileStore(where).wheels("total").query("a", 0, 2 * MINUTE) == 13  # readers do not wait
    assert TileStore(where).write(tiles([("a", 5, [1])]), query="q", batch=1, watermark=6 * MINUTE)
    with pytest.raises(TileStoreError, match="is written by the query q, and this is other"):
        TileStore(where).write(tiles([("a", 7, [1])]), query="other", batch=0, watermark=8 * MINUTE)


def test_a_writer_that_lost_its_lease_changes_nothing(where, monkeypatch):
    """A writer is paused for long; another one takes over and writes; the first wakes up."""
    slow, fast = made(where, ONE), TileStore(where)
    real, now = tile_files.Elsewhere.put, time.monotonic
    taken = iter([True])

    def paused(self, name, data):
        real(self, name, data)
        if name.endswith(".parquet") and next(taken, False):
            monkeypatch.setattr(tile_files, "LEASE", -1e9)  # long after
            fast.write(tiles([("a", 2, [100])]), query="q", batch=1, watermark=3 * MINUTE)
            monkeypatch.setattr(tile_files, "LEASE", 60.0)
            monkeypatch.setattr(tile_files.time, "monotonic", lambda: now() + 1000)

    monkeypatch.setattr(tile_files.Elsewhere, "put", paused)
    with pytest.raises(TileStoreError, match="was taken over by another process"):
        slow.write(tiles([("a", 2, [1])]), query="q", batch=1, watermark=3 * MINUTE)
    assert TileStore(where).wheels("total").query("a", 0, 3 * MINUTE) == 113


def test_writers_that_race_lose_no_batch(where):
    """Four threads, each a writer of its own, try each batch: every batch is written once."""
    made(where, ONE)
    wrote, failed = [], []

    def race():
        store = TileStore(where)
        for batch in range(1, 7):
            try:
                if store.write(tiles([("a", batch + 1, [1])]), query="q", batch=batch, watermark=(batch + 2) * MINUTE):
                    wrote.append(batch)
            except TileStoreError as error:
                failed.append(str(error))

    threads = [threading.Thread(target=race) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(wrote) == [1, 2, 3, 4, 5, 6]
    assert TileStore(where).wheels("total").query("a", 0, 8 * MINUTE) == 13 + 6


def test_other_engines_read_a_store_in_s3(s3, capsys):
    from sash import cli

    where = s3 % "engines"
    batches = random_batches(2, 9)
    store = made(where, batches)
    total = sum(x for rows, _ in batches for _, _, v in rows for x in v)
    system, root = pa.fs.FileSystem.from_uri(where)
    files = [f"{root}/{str(path).rpartition('/')[2].partition('?')[0]}" for path in store.files()]
    tiles_table = pq.ParquetDataset(files, filesystem=system).read()
    duckdb = pytest.importorskip("duckdb", reason="the extra bench is not installed")
    assert tiles_table.num_rows == len(store)
    assert duckdb.sql("select sum(mean.sum) from tiles_table").fetchall() == [(total,)]
    assert cli.main(["query", where, "--agg", "total", "--format", "json"]) == 0
    assert f'"total": {total}' in capsys.readouterr().out


def test_an_s3a_path_is_s3(s3):
    made((s3 % "hadoop").replace("s3://", "s3a://"), ONE)
    assert len(TileStore(s3 % "hadoop")) == 3
    assert os.path.exists("s3a:") is False
