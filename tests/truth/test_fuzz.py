"""A slice of the soak: damaged bytes of everything that is loaded, each refused in words or loaded, and never a crash."""

import random

import pytest

from sash import agg, codec, swag
from sash.wheel import Wheel
from tests.truth import fuzz


def test_every_kind_of_stored_bytes_is_damaged():
    kinds = {subject.name.split("-")[0] for subject in fuzz.subjects()}
    assert {f"window {name}" for name in (*fuzz.contents.CLASSES, "Reordered")} <= kinds
    assert {"wheel Wheel", "wheel KeyedWheels", "state windows meta", "state windows blob", "state sessions blob"} <= kinds
    assert {"state rolling meta", "state rolling blob", "packed slices of windows", "packed slices of rolling"} <= kinds


@pytest.mark.parametrize("how", fuzz.DAMAGES)
def test_damaged_bytes_are_refused_in_words_or_load(how):
    rng, refused, subjects = random.Random(f"slice {how}"), 0, fuzz.subjects()
    for subject in subjects:
        for _ in range(4):
            refused += fuzz.run(rng, subject, how)
    assert refused > len(subjects)  # of the sealed ones, some load


def test_drawn_damage_is_refused_in_words_or_loads():
    for seed in range(500):
        fuzz.damage(seed)


def test_damaged_files_and_requests_are_refused_in_words(tmp_path):
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    from tests.truth import fuzz_files

    files = fuzz_files.Files(tmp_path)
    try:
        seen = {files.damage(seed) for seed in range(250)}
    finally:
        files.close()
    assert seen == {"tiles", "manifest", "pipeline", "request"}


# --- what the soak found once


def test_a_wheel_whose_windows_lost_their_names_goes_on():
    wheel = Wheel(agg.sum(), unit="s", grain="1s", levels=())
    wheel.window("9s")
    wheel.insert_many([1, 2], [0, 5])
    kind, print_, payload = fuzz._apart(wheel.to_bytes())
    options, _, state = codec.decode(payload)
    again = Wheel.from_bytes(codec.seal(kind, print_, codec.encode((options, [], state))), agg.sum())
    assert [(r.name, r.value) for r in again.advance_to(9)] == [("", 3)]


def test_slices_that_a_window_of_a_wheel_lacks_are_missed_when_it_is_loaded():
    wheel = Wheel(agg.sum(), unit="s", grain="1s", levels=())
    wheel.window("9s", "3s")
    wheel.insert_many(range(30), range(30))
    wheel.advance_to(20)
    kind, print_, payload = fuzz._apart(wheel.to_bytes())
    refused = 0
    for seed in range(300):
        options, names, state = codec.decode(payload)
        changed = (*state[:3], fuzz.numbers(random.Random(seed), state[3]), state[4])
        try:
            again = Wheel.from_bytes(codec.seal(kind, print_, codec.encode((options, names, changed))), agg.sum())
        except ValueError:
            refused += 1
            continue
        fuzz.use_wheel(again)
    assert refused > 100


@pytest.mark.parametrize("nonsense", [b"", b"x", codec.encode(7), codec.encode(()), b"(" * 100_000, b"S\1\0\0\0[\0\0\0\0", b"c\1\0\0\0x"])
def test_a_sealed_payload_of_nonsense_is_a_value_error(nonsense):
    good = swag.DabaLite(agg.sum()).to_bytes()
    kind, print_, _ = fuzz._apart(good)
    with pytest.raises(ValueError, match="damaged"):
        swag.DabaLite.from_bytes(codec.seal(kind, print_, nonsense), agg.sum())
