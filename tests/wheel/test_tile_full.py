"""A disk that is full: a change of a tile store ends with the system's error, and the store is as before, or as after."""

import errno
import os
import shutil

import pytest

from tests.wheel.test_tile_kills import CHANGES, answers, dying_at, prepared


def full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["write", "compact", "expire", "extend"])
def test_on_a_full_disk_a_store_is_as_before_or_as_after_and_goes_on_when_there_is_room(tmp_path, name):
    prepared(tmp_path / "ready", name)
    before = answers(tmp_path / "ready")
    CHANGES[name](shutil.copytree(tmp_path / "ready", tmp_path / "whole"))
    after = answers(tmp_path / "whole")
    met = 0
    for step in range(100):
        path = shutil.copytree(tmp_path / "ready", tmp_path / f"at{step}")
        try:
            with dying_at(step, full):
                CHANGES[name](path)
        except OSError as error:
            met += error.errno == errno.ENOSPC
            assert answers(path) in (before, after), step
            CHANGES[name](path)
            assert answers(path) == after, step
        else:
            break
    assert met > 1
