"""Stored formats are promises: the files of every version can be read, and give the answers they gave when they were written."""

import json
import shutil

import pytest

from tests.golden import contents

VERSIONS = sorted(p.name for p in contents.HERE.iterdir() if (p / "answers.json").exists())
ANSWERS = {version: json.loads((contents.HERE / version / "answers.json").read_text()) for version in VERSIONS}


def files(kind):
    return [(version, path.stem) for version in VERSIONS for path in sorted((contents.HERE / version / kind).glob("*.bin"))]


def test_there_are_files_of_every_kind():
    assert {kind: len(files(kind)) >= 7 for kind in ("windows", "wheels")} == {"windows": True, "wheels": True}
    assert {version: sorted(p.name for p in (contents.HERE / version / "states").iterdir()) for version in VERSIONS} == {
        version: sorted(contents.QUERIES) for version in VERSIONS
    }


@pytest.mark.parametrize(("version", "name"), files("windows"))
def test_a_window_of_an_earlier_version_goes_on(version, name):
    window = contents.window_of(name, (contents.HERE / version / "windows" / f"{name}.bin").read_bytes())
    assert contents.asked_of_a_window(window, name) == ANSWERS[version][name]


@pytest.mark.parametrize(("version", "name"), files("lives"))
def test_a_live_one_of_an_earlier_version_goes_on(version, name):
    live = contents.live_of(name, (contents.HERE / version / "lives" / f"{name}.bin").read_bytes())
    assert contents.asked_of_a_live(live) == ANSWERS[version][f"live {name}"]


def test_there_is_a_file_of_every_class_and_of_what_is_stored_since():
    for version in VERSIONS:
        of = {kind: {name for v, name in files(kind) if v == version} for kind in ("windows", "wheels", "lives")}
        assert {name.split("-")[0] for name in of["windows"]} == set(contents.CLASSES)
        assert {name for name, _ in contents.windows()} <= of["windows"]
        assert {name for name, _ in contents.wheels()} <= of["wheels"]
        assert set(contents.LIVE) <= of["lives"]


@pytest.mark.parametrize(("version", "name"), files("wheels"))
def test_a_wheel_of_an_earlier_version_goes_on(version, name):
    wheel = contents.wheel_of(name, (contents.HERE / version / "wheels" / f"{name}.bin").read_bytes())
    assert contents.asked_of_a_wheel(wheel) == ANSWERS[version][name]


@pytest.mark.parametrize("name", sorted(contents.QUERIES))
@pytest.mark.parametrize("version", VERSIONS)
def test_the_state_of_an_earlier_version_goes_on(version, name):
    stored = {path.stem: path.read_bytes() for path in (contents.HERE / version / "states" / name).glob("*.bin")}
    bucket = contents.state_of(name, stored)
    assert contents.feed(contents.QUERIES[name], bucket, 200, 280) == ANSWERS[version][f"state {name}"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tile_store_of_an_earlier_version_answers(version, tmp_path):
    shutil.copytree(contents.HERE / version / "tiles", tmp_path / "tiles")
    assert contents.asked_of_tiles(tmp_path / "tiles") == ANSWERS[version]["tiles"]
