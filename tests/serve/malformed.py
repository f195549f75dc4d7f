"""Requests that are wrong by construction: a right one, made from the OpenAPI description, with one thing broken."""

import json
import random
from urllib.parse import quote, urlencode

GOOD = {
    "agg": ["trips"],
    "key": ["soho"],
    "back": ["1h"],
    "at": "watermark",
    "from": "6h",
    "to": "2024-01-01T22:00:00Z",
    "step": "1h",
    "points": 10,
    "n": 5,
    "prefix": "s",
    "offset": 1,
    "explain": "true",
    "provisional": "false",
    "format": "json",
}
BAD_TIMES = [
    "yesterday",
    "2024-13-01",
    "2024-01-01T25:00",
    "12",
    "1 month",
    "2024-01-01 00:00:30",
    "9" * 30 + "w",
    "nan",
    "-",
    "\x00",
    "1h 2x",
]
BAD_STEPS = ["0s", "-1h", "30s", "1 fortnight", "1.5.2h", "", "61s", "1us", "abc", "ınf", "0x10m", "9" * 400 + "h"]
BAD_NUMBERS = ["-1", "1.5", "1e3", "", "ten", "0x10", "٣", "9" * 25, "NaN", "null", "+5", " "]
BAD_TRUTHS = ["yes", "TRUE ", "2", "", "null", "[]"]
BAD_FORMATS = ["xml", "JSON", "", "../json", "arrow\x00"]


def operations(description):
    """(method, path, names of the parameters) of all that takes some."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            names = [p["name"] for p in operation["parameters"] if p["in"] == "query"] or list(body.get("properties", ()))
            yield method.upper(), path, names


def requests(description, seed, count):
    """So many wrong requests: (what is wrong, method, path, query, body, headers)."""
    rng = random.Random(seed)
    known = list(operations(description))
    of_store = [one for one in known if "{store}" in one[1] and one[2]]
    breaks = [
        _unknown_name,
        _wrong_value,
        _wrong_method,
        _no_such_store,
        _no_such_path,
        _twice,
        _too_long,
        _too_many,
        _bad_body,
        _bad_agg,
        _odd_bytes,
    ]
    for _ in range(count):
        method, path, names = rng.choice(of_store)
        values = {name: GOOD[name] for name in names if name == "back" or (name in ("agg",) and "top" in path) or rng.random() < 0.4}
        yield rng.choice(breaks)(rng, method, path.replace("{store}", "trips"), names, values)


def _request(why, method, path, values, body=None, headers=None):
    if method == "POST":
        body = json.dumps(values).encode() if body is None else body
        return why, method, path, b"", body, [(b"content-type", b"application/json")] if headers is None else headers
    return why, method, path, urlencode(values, doseq=True).encode(), b"", headers or []


def _unknown_name(rng, method, path, names, values):
    name = rng.choice(["foo", "aggs", "Key", "from_", "", "__proto__", "to ", "n[]", "\x00"])
    return _request(f"unknown name {name!r}", method, path, {**values, name: "1"})


def _wrong_value(rng, method, path, names, values):
    pool = {
        "at": BAD_TIMES, "from": BAD_TIMES, "to": BAD_TIMES, "step": BAD_STEPS, "back": BAD_STEPS, "points": BAD_NUMBERS, "n": BAD_NUMBERS,
        "offset": BAD_NUMBERS, "explain": BAD_TRUTHS, "provisional": BAD_TRUTHS, "format": BAD_FORMATS,
    }  # fmt: skip
    name = rng.choice([name for name in names if name in pool] or ["n"])
    wrong = rng.choice(pool[name])
    if name == "at" and wrong == "2024-01-01 00:00:30":
        wrong = "noon"  # a time within a slice is cut for look-backs
    if method == "POST" and rng.random() < 0.5:
        wrong = rng.choice([None, {}, {"a": 1}, [[]], -1.5, [{}], [None, 1]])
    return _request(f"{name}={wrong!r}", method, path, {**values, name: wrong})


def _wrong_method(rng, method, path, names, values):
    taken = path.endswith(("lookback", "range"))
    method = rng.choice(["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "PUT" if taken else "POST"])
    return f"method {method}", method, path, b"", b"", []


def _no_such_store(rng, method, path, names, values):
    name = rng.choice(["nope", "..", "%2e%2e", "TRIPS", "trips%00", "a" * 500, "_sash", "trips;ls", "{store}", "'", "<script>"])
    return _request(f"store {name!r}", method, path.replace("trips", name), values)


PATHS = ["/api", "/api/", "/api/stores/", "//", "/../../etc/passwd", "/static/../guard.py", "/static/%2e%2e/guard.py", "/static/", "/\x00"]


def _no_such_path(rng, method, path, names, values):
    wrong = rng.choice([*PATHS, path + "/x"])
    return _request(f"path {wrong!r}", method, wrong, values)


def _twice(rng, method, path, names, values):
    single = [name for name in names if name not in ("agg", "key", "back")]
    name = rng.choice(single)
    if method == "POST":
        return _request(f"{name} as a list", method, path, {**values, name: [GOOD[name], GOOD[name]]})
    return _request(f"{name} twice", method, path, {**values, name: [GOOD[name], GOOD[name]]})


def _too_long(rng, method, path, names, values):
    name = rng.choice([name for name in names if name in ("agg", "key", "back", "at", "from", "to", "step", "prefix")])
    return _request(f"{name} is long", method, path, {**values, name: rng.choice("x1é") * rng.choice([301, 5000])})


def _too_many(rng, method, path, names, values):
    kinds = {"back": [f"{i}m" for i in range(1, 40)], "key": [f"k{i}" for i in range(1001)], "n": 100_000, "points": 10**6}
    name = rng.choice([name for name in names if name in kinds] or ["n"])
    return _request(f"too many {name}", method, path, {**values, name: kinds[name]})


BODIES = [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"{" * 5000, b"[" * 200_000, b'{"key": ' + b"1" * 5000 + b"}"]
BODIES += [b'{"back": ["1h"]}' + b" " * 2_000_000, b'{"key": [["a", "b"]]}', b'{"key": [[]]}', b'{"key": [[["a"]]]}']
KINDS = [b"application/json"] * 4 + [b"", b"text/plain", b"application/x-www-form-urlencoded"]


def _bad_body(rng, method, path, names, values):
    path = "/api/stores/trips/" + rng.choice(["lookback", "range"])
    body = rng.choice(BODIES)
    return _request("body " + repr(body[:20]), "POST", path, {}, body, [(b"content-type", rng.choice(KINDS))])


def _bad_agg(rng, method, path, names, values):
    wrong = rng.choice(["nope", "trip", "trips,nope", "TRIPS", "trips;", "*", ",", "__class__", "trips\x00"])
    name = "agg" if "agg" in names else "foo"
    return _request(f"{name}={wrong!r}", method, path, {**values, name: wrong})


def _odd_bytes(rng, method, path, names, values):
    junk = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40)))
    return "odd bytes", "GET", path, b"q" + quote(junk).encode() + b"=1&" + junk, b"", []
