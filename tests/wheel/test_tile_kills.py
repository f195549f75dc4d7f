"""A process that changes a tile store is killed between any two steps that change the disk: the store is as before, or as after."""

import contextlib
import functools
import multiprocessing
import os
import pathlib
import shutil

import pytest

from sash import agg
from sash.wheel import NotRetained, TileStore
from tests.wheel.tile_batches import AGGS, MINUTE, made, random_batches, tiles

STEPS = ("mkdir", "open", "replace", "unlink")  # of pathlib.Path: what changes the disk, and what opens a file to be written


class Killed(BaseException):
    pass


def die_hard():
    os._exit(9)


def die_softly():
    raise Killed


@contextlib.contextmanager
def dying_at(step, die=die_softly):
    """Let no more than `step` steps happen."""
    taken = 0
    real = {name: getattr(pathlib.Path, name) for name in STEPS}

    def counted(name):
        @functools.wraps(real[name])
        def call(self, *args, **kwargs):
            nonlocal taken
            mode = args[0] if args else kwargs.get("mode", "r")
            if name != "open" or "w" in str(mode):
                if taken == step:
                    die()
                taken += 1
            return real[name](self, *args, **kwargs)

        return call

    for name in STEPS:
        setattr(pathlib.Path, name, counted(name))
    try:
        yield
    finally:
        for name in STEPS:
            setattr(pathlib.Path, name, real[name])


BATCHES = random_batches(3, 8, zones=3)
LAST = ([("z0", 56, [3]), ("z1", 57, [4, 5])], 58)


def write(path):
    TileStore(path).write(tiles(LAST[0]), query="q", batch=8, watermark=LAST[1] * MINUTE)


def write_and_merge(path):
    for batch in range(8, 16):  # the last one makes eight of a level
        rows, upto = (LAST[0], 58) if batch == 8 else ([("z0", batch + 50, [1])], batch + 51)
        TileStore(path).write(tiles(rows), query="q", batch=batch, watermark=upto * MINUTE)


def compact(path):
    TileStore(path).compact()


def expire(path):
    TileStore(path).expire(30 * MINUTE)


def expire_everything(path):
    TileStore(path).expire("0s")


def extend(path):
    TileStore.create(path, aggs=AGGS | {"least": agg.min("v")}, grain="1m", key="zone")


def create(path):
    made(path)


CHANGES = {f.__name__: f for f in (write, write_and_merge, compact, expire, expire_everything, extend, create)}


def prepared(path, change):
    if change != "create":
        made(path, [(rows, upto) for rows, upto in BATCHES][: 8 if change.startswith("write") else 7])
        if change == "write_and_merge":
            return
        if change.startswith("write"):
            TileStore(path).compact()


def answers(path):
    """What a reader is told: by minutes where the store keeps them, and of everything from the start."""
    if not (path / "_sash" / "manifest.json").exists():
        return "no store"
    store = TileStore(path)
    if store.watermark is None:
        return "nothing written"
    first, upto = store.kept_from or 0, store.watermark
    kept = {name: store.wheels(name, start=first).group_by_all(first, upto, "1m") for name in ("n", "total", "worst")}
    try:
        whole = store.wheels("total", start=0).query_all(0, upto)
    except NotRetained:
        whole = "not retained"
    return store.watermark, store.kept_from, sorted(store.aggs), kept, whole


@pytest.mark.parametrize("name", CHANGES)
def test_killed_between_any_two_steps_a_store_answers_as_before_or_as_after(tmp_path, name):
    change = CHANGES[name]
    prepared(tmp_path / "ready", name)
    before = answers(tmp_path / "ready")

    def copied(to):
        if (tmp_path / "ready").exists():
            shutil.copytree(tmp_path / "ready", tmp_path / to)
        return tmp_path / to

    change(copied("whole"))
    after = answers(tmp_path / "whole")
    between = {repr(before), repr(after)}
    if name == "write_and_merge":  # several batches: as after each of them
        each = copied("each")
        for batch in range(8, 16):
            rows, upto = (LAST[0], 58) if batch == 8 else ([("z0", batch + 50, [1])], batch + 51)
            TileStore(each).write(tiles(rows), query="q", batch=batch, watermark=upto * MINUTE)
            between.add(repr(answers(each)))
    seen = set()
    for step in range(1000):
        path = copied(f"at{step}")
        try:
            with dying_at(step):
                change(path)
        except Killed:
            pass
        else:
            break
        found = repr(answers(path))
        assert found in between, f"killed at step {step}"
        seen.add(found)
        change(path)  # whoever comes next
        assert repr(answers(path)) == repr(after), f"again after a kill at step {step}"
        if name != "create":
            TileStore(path).release()  # any later change deletes what was left behind
            left = {p.name for p in path.rglob("*") if p.is_file()} - {"lock", "manifest.json"}
            named = {p.stem for p in TileStore(path).files()}
            assert left == {f"{stem}.parquet" for stem in named} | {f"{stem}.index" for stem in named}, f"killed at step {step}"
        shutil.rmtree(path)
    assert step >= 2
    assert repr(before) in seen


def _change_and_die(name, path, step):
    with dying_at(step, die_hard):
        CHANGES[name](path)


@pytest.mark.parametrize("name", ["write", "expire"])
def test_a_process_killed_for_good_leaves_the_store_as_before_or_as_after(tmp_path, name):
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__, "sash.wheel", "pyarrow.parquet"])
    prepared(tmp_path / "ready", name)
    before = answers(tmp_path / "ready")
    CHANGES[name](shutil.copytree(tmp_path / "ready", tmp_path / "whole"))
    after = answers(tmp_path / "whole")
    codes = []
    for step in range(0, 1000, 5):  # a process each is slow: the test above takes every step
        path = shutil.copytree(tmp_path / "ready", tmp_path / f"at{step}")
        process = server.Process(target=_change_and_die, args=(name, path, step))
        process.start()
        process.join()
        codes.append(process.exitcode)
        if process.exitcode == 0:
            break
        assert process.exitcode == 9
        assert answers(path) in (before, after), f"killed at step {step}"
        CHANGES[name](path)
        assert answers(path) == after
    assert len(codes) > 1
