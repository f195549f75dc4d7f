"""Damaged bytes of everything that is loaded: flips, cuts, and nonsense under a right seal.

A damaged input loads, or it raises the error that is documented for it; nothing else, and never a crash. What loads is then put to
use: a checksum that fits says nothing of who made it, so ``check()`` may name what is broken, but no call may fail otherwise.

``soak(seed, seconds)`` damages inputs from the seed on until the time is over, and gives their number.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sash import agg, codec, swag
from sash.engine import Query
from sash.wheel import KeyedWheels, Wheel
from tests.golden import contents

ENVELOPE = struct.Struct("<4sHB")
INTERESTING = [0, 1, -1, 2, 7, 8, 9, 63, 64, 255, 2**31 - 1, -(2**31), 2**32, 2**48, 2**62, 2**63 - 1, -(2**63)]


class Subject(NamedTuple):
    """Bytes that were stored, what loads them, and what is asked of them then."""

    name: str
    data: bytes
    load: Callable[[bytes], Any]
    use: Callable[[Any], None]


class Wrong(AssertionError):
    """A damaged input met something else than it should."""


# --- what is stored


def _of_a_window(name: str, window: Any) -> Subject:
    cls, aggregation = type(window), window.aggregation
    return Subject(f"window {name}", window.to_bytes(), lambda data: cls.from_bytes(data, aggregation), use_window)


def _more_windows() -> Iterator[tuple[str, Any]]:
    """What the golden files do not have: ties kept, small arities, float times, a reorder buffer, exact sums, windows left empty."""
    for aggregation in (agg.sum(), agg.collect(), agg.sum(exact=True), agg.std(exact=True), agg.minmax(), agg.m4(), agg.linreg()):
        for made in (
            swag.Fiba(aggregation, min_arity=2, ties="keep"),
            swag.BlockFiba(aggregation, ties="keep"),
            swag.Reordered(aggregation, max_delay=5),
            swag.DabaLite(aggregation),
            swag.FlatFat(aggregation),
            swag.Daba(aggregation),
        ):
            made.bulk_insert([i * 5 % 13 / 4 for i in range(40)], [i / 2 for i in range(40)])
            made.bulk_evict(7.5)
            yield f"{type(made).__name__}-{aggregation!r}", made
    yield "DabaLite-empty", swag.DabaLite(agg.sum())
    yield "Fiba-empty", swag.Fiba(agg.sum())


def use_window(window: Any) -> None:
    options = {"arg": 3} if window.aggregation.name == "bloom" else {}
    for step in (
        window.check,
        lambda: window.query(**options),
        lambda: (len(window), window.oldest, window.youngest),
        lambda: window.insert(3, (window.youngest or 0) + 1),
        lambda: window.bulk_insert([4, 5], [(window.youngest or 0) + 1, (window.youngest or 0) + 2]),
        lambda: window.evict() if len(window) else None,
        lambda: window.bulk_evict(window.oldest) if len(window) else None,
        lambda: window.query(**options),
        window.to_bytes,
        window.clear,
    ):
        asked(step)


def use_wheel(wheel: Any) -> None:
    keyed = isinstance(wheel, KeyedWheels)
    end = min(wheel.watermark + 60, 2**62)
    for step in (
        wheel.check,
        (lambda: wheel.landmark_all()) if keyed else wheel.landmark,
        lambda: wheel.insert(*(("a",) if keyed else ()), 3, wheel.watermark),
        lambda: wheel.advance_to(end),
        lambda: wheel.query(*(("a",) if keyed else ()), wheel.start, wheel.watermark),
        wheel.to_bytes,
    ):
        asked(step)


def _wheels() -> Iterator[tuple[str, Any]]:
    yield from contents.wheels()
    for retention, layout in (("drop", "plain"), (100, "plain"), ("keep", "prefix")):
        w = Wheel(agg.sum(), unit="s", grain="1s", levels=("1m", "1h"), retention=retention, layout=layout)
        w.window(session="9s")
        w.insert_many(range(300), [i * 3 for i in range(300)])
        w.advance_to(800)
        yield f"Wheel-{retention}-{layout}", w
    k = KeyedWheels(agg.collect(), unit="s", grain="1m", levels=("1h",))
    k.insert_many([(1, "a"), (2.5, None)] * 20, list(range(40)), [i * 40 for i in range(40)])
    yield "KeyedWheels-collect", k


def _states() -> Iterator[Subject]:
    """The meta value of a bucket with its blobs, each blob with its meta value."""
    for name, files in contents.states():
        query = contents.QUERIES[name]
        for part, data in files.items():

            def load(damaged: bytes, name: str = name, part: str = part, files: dict[str, bytes] = files) -> Any:
                return contents.state_of(name, {**files, part: damaged})

            yield Subject(
                f"state {name} {'meta' if part == 'meta' else 'blob'}", data, load, lambda bucket, query=query: use_bucket(query, bucket)
            )
    for name, query in contents.QUERIES.items():
        packed = next(iter(contents.Slicer(query, 1).pack(contents.rows(0, 40)))).blob

        def add(damaged: bytes, query: Query = query) -> Any:
            bucket = contents.bucket_of(query)(query)
            bucket.add(damaged)
            return bucket

        yield Subject(f"packed slices of {name}", packed, add, lambda bucket, query=query: use_bucket(query, bucket))


def use_bucket(query: Query, bucket: Any) -> None:
    at = 200 if bucket.watermark is None else min(bucket.watermark + 100, 2**62)
    for step in (lambda: bucket.advance(at), bucket.commit, lambda: list(bucket.flush())):
        asked(step)


def subjects() -> list[Subject]:
    """Everything that is loaded from bytes in memory."""
    out = [_of_a_window(name, w) for made in (contents.windows, _more_windows) for name, w in made()]
    for name, w in _wheels():
        cls, aggregation = type(w), w.aggregation
        out.append(Subject(f"wheel {name}", w.to_bytes(), lambda data, cls=cls, a=aggregation: cls.from_bytes(data, a), use_wheel))
    return out + list(_states())


# --- damage


def flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return rng.choice((data[:a], data[a:], data[:a] + data[b:], data + data[a:b], data[:b] + data[a:], data[:a] + bytes(b - a) + data[b:]))


def _apart(data: bytes) -> tuple[str, bytes, bytes]:
    """An envelope's kind, fingerprint and payload."""
    _, _, length = ENVELOPE.unpack_from(data)
    at = ENVELOPE.size + length
    return data[ENVELOPE.size : at].decode(), data[at : at + 16], data[at + 20 :]


def sealed(rng: random.Random, data: bytes) -> bytes:
    """Nonsense under a right seal: the payload is damaged, or what it says is changed in one place."""
    kind, print_, payload = _apart(data)
    try:
        said = codec.decode(payload)
    except ValueError:  # a payload of another layout
        said = None
    if said is None or rng.random() < 0.3:
        damaged = rng.choice((flip, cut, numbers))(rng, payload) if payload else b"x"
    else:
        damaged = codec.encode(changed(rng, said))
    return codec.seal(kind, print_, damaged)


def numbers(rng: random.Random, data: bytes) -> bytes:
    """One of its 64-bit numbers is another one."""
    if len(data) < 8:
        return data + b"\0"
    at = rng.randrange(len(data) // 8) * 8
    (old,) = struct.unpack_from("<q", data, at)
    new = rng.choice([*INTERESTING, old + 1, old - 1, old * 2, -old])
    return data[:at] + struct.pack("<q", (new + 2**63) % 2**64 - 2**63) + data[at + 8 :]


def changed(rng: random.Random, value: Any) -> Any:
    """Plain data with one place changed."""
    if isinstance(value, tuple | list) and value and rng.random() < 0.93:
        at = rng.randrange(len(value))
        step = rng.random()
        items = list(value)
        if step < 0.8:
            items[at] = changed(rng, items[at])
        elif step < 0.9:
            del items[at]
        else:
            items.insert(at, items[rng.randrange(len(items))])
        return type(value)(items)
    if isinstance(value, dict) and value and rng.random() < 0.93:
        name = rng.choice(list(value))
        if rng.random() < 0.85:
            return {**value, name: changed(rng, value[name])}
        return {k: v for k, v in value.items() if k != name}
    if isinstance(value, bytes) and value and rng.random() < 0.9:
        return rng.choice((flip, cut, numbers, numbers))(rng, value)
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.7:
        return rng.choice([*INTERESTING, value + 1, value - 1, value + rng.randrange(-50, 50)])
    return rng.choice(
        [None, True, False, 0, -1, 10**30, 1.5, float("nan"), "", "x", b"", b"\xff" * 9, (), [], [None], {}, {"a": 1}, (1, 2, 3)]
    )


DAMAGES: dict[str, Callable[[random.Random, bytes], bytes]] = {"flip": flip, "cut": cut, "sealed": sealed}


# --- what may happen

LEAKS = ("std::", "nanobind", "bad_alloc", "bad_cast", "vector::", "basic_string")


def asked(step: Callable[[], Any]) -> None:
    """Ask something of what was loaded under a right seal: an error in words is an answer, an accident of the core is none."""
    try:
        step()
    except (SystemError, MemoryError, RecursionError):
        raise
    except Exception as error:
        if any(leak in str(error) for leak in LEAKS):
            raise


def run(rng: random.Random, subject: Subject, how: str) -> bool:
    """Damage one input and load it; whether it was refused."""
    data = DAMAGES[how](rng, subject.data)
    if data == subject.data:
        return False
    try:
        loaded = subject.load(data)
    except ValueError as error:
        if any(leak in str(error) for leak in LEAKS):
            raise Wrong(f"{subject.name}, {how}: the error is not in words: {error!r}") from error
        return True
    except Exception as error:
        raise Wrong(f"{subject.name}, {how}: {type(error).__name__}: {error}") from error
    if how != "sealed" and data and _apart(data)[2] != _apart(subject.data)[2]:  # no bytes at all are no slices, which is right
        raise Wrong(f"{subject.name}, {how}: damaged bytes were taken for good")
    try:
        subject.use(loaded)
    except Exception as error:
        raise Wrong(f"{subject.name}, {how}, once it was loaded: {type(error).__name__}: {error}") from error
    return False


_known: list[Subject] = []


def damage(seed: Any) -> str:
    """Damage one input that the seed draws; tell which."""
    if not _known:
        _known.extend(subjects())
    rng = random.Random(str(seed))
    subject, how = rng.choice(_known), rng.choice(("flip", "cut", "sealed", "sealed", "sealed"))
    try:
        run(rng, subject, how)
    except Wrong as wrong:
        raise Wrong(f"seed {seed!r}: {wrong}") from wrong.__cause__
    return subject.name


def soak(seed: int, seconds: float) -> int:
    """Damage inputs for a time, and count them."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        damage(f"{seed}/{count}")
        count += 1
    return count
