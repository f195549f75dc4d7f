"""What is asked wrongly is a 4xx with a sentence; who may not ask is refused; nothing that is asked changes anything."""

import dataclasses
import hashlib
import hmac
import json
import random
import re

import pytest

from sash.serve import app
from sash.serve.limits import Limits
from tests.serve import malformed
from tests.serve.streams import ZONES

SENTENCE = re.compile(r".{15,}[.?]$", re.S)


def check_refusal(answer, why, trips):
    text = answer.body.decode()
    assert 400 <= answer.status < 500, f"{why}: {answer.status} {text[:300]}"
    error = json.loads(text)["error"]
    assert SENTENCE.match(error), f"{why}: {error}"
    assert len(error) < 600, why
    for leak in ("Traceback", 'File "', str(trips), str(trips.parent), "site-packages", ".py"):
        assert leak not in error.replace("guard.py", ""), f"{why}: {error}"  # a path that was asked for may be said again


@pytest.mark.parametrize("seed", range(4))
def test_500_malformed_requests_get_a_sentence_each(client, trips, seed):
    description = client.get("/openapi.json").json()
    seen = {}
    for why, method, path, query, body, headers in malformed.requests(description, seed, 500):
        answer = client.send(method, path, query, body, headers)
        check_refusal(answer, f"{method} {path} {query[:80]} {body[:80]}: {why}", trips)
        seen[answer.status] = seen.get(answer.status, 0) + 1
    assert {400, 404, 405, 422} <= set(seen)


def test_random_requests_never_fail_the_server(client, trips):
    rng = random.Random(7)
    names = list(malformed.GOOD)
    texts = ["", "1h", "now", "soho", "trips", "auto", "0", "-1", "2024-01-01", "9999-12-31", "0001-01-01", "1000000w", "true", "a,b", '"']
    texts += ["\ud800", "NaN", "1e309"]
    statuses = set()
    for _ in range(1000):
        path = "/api/stores/trips" + rng.choice(["", "/keys", "/lookback", "/range", "/top", "/plan"])
        pairs = [(rng.choice(names), rng.choice(texts)) for _ in range(rng.randrange(5))]
        query = "&".join(f"{n}={t}" for n, t in pairs).encode("utf-8", "surrogatepass")
        answer = client.send("GET", path, query)
        statuses.add(answer.status)
        if answer.status != 200:
            check_refusal(answer, f"{path} {query}", trips)
    assert 200 in statuses


def test_no_request_changes_the_store(client, trips):
    def digest():
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in trips.rglob("*") if p.is_file()}

    before = digest()
    for _, method, path, query, body, headers in malformed.requests(client.get("/openapi.json").json(), 99, 200):
        client.send(method, path, query, body, headers)
    for path in ("range", "lookback", "top", "plan", "keys"):
        client.get(f"/api/stores/trips/{path}")
    assert digest() == before


def test_a_request_without_the_token_is_refused(ask, trips):
    client = ask(trips, token="correct-horse")
    assert client.get("/api/stores").status == 200
    client._token = None
    for path in ("/api/stores", "/api/stores/trips/range", "/metrics", "/api/pipelines", "/nowhere"):
        for headers in ([], [(b"authorization", b"Bearer wrong")], [(b"authorization", b"Basic correct-horse")], [(b"authorization", b"")]):
            answer = client.send("GET", path, headers=headers)
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "token" in answer.json()["error"]
    assert client.get("/").status == 200  # the page itself holds no data
    assert client.get("/static/page.css").status == 200


def test_one_of_several_tokens_will_do(ask, trips):
    client = ask(trips, token=["first-token", "second-token"])
    for token, status in (("first-token", 200), ("second-token", 200), ("third-token", 401), ("first-toke", 401), ("", 401)):
        client._token = token
        assert client.get("/api/stores").status == status


def test_tokens_are_compared_in_constant_time(ask, trips, monkeypatch):
    compared = []
    real = hmac.compare_digest

    def counted(a, b):
        compared.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr("sash.serve.guard.hmac.compare_digest", counted)
    client = ask(trips, token=["first-token", "second-token", "third-token"])
    for token in ("x", "first-token", "third-token", "y" * 10_000, "first-tokem"):
        client._token = token
        client.get("/api/stores")
        # All of the tokens are looked at whatever was sent, each as a digest: what is compared has one length.
        assert compared == [(32, 32)] * 3, token
        compared.clear()


def test_a_token_must_be_one(ask, trips):
    for wrong in ("", "with space", "tä", [], ["ok-token", ""]):
        with pytest.raises(ValueError, match="token"):
            app(trips, wrong)


def test_other_host_names_are_refused_where_only_some_are_told(ask, trips):
    client = ask(trips, hosts=["localhost", "127.0.0.1", "::1"])
    for host, status in ((b"localhost:8017", 200), (b"127.0.0.1", 200), (b"[::1]:80", 200), (b"evil.example:8017", 421), (b"", 421)):
        answer = client.send("GET", "/api/stores", headers=[(b"host", host)])
        assert answer.status == status, host


def test_limits_hold(ask, trips):
    few = dataclasses.replace(Limits(), keys=3, steps=10, lookbacks=2, cells=20, range=3600 * 10**6, body=200, text=20)
    client = ask(trips, limits=few)
    wide = {"from": "2024-01-01T00:00:00Z", "to": "2024-01-01T01:00:00Z"}
    refused = [
        client.get("/api/stores/trips/range", key=ZONES[:4]),
        client.get("/api/stores/trips/range", step="1m", **wide),
        client.get("/api/stores/trips/range", step="10m", key=ZONES[:2], **wide),  # 2 keys, 4 aggregations, 6 steps
        client.get("/api/stores/trips/range", step="2h"),
        client.get("/api/stores/trips/lookback", back=["1m", "2m", "3m"]),
        client.get("/api/stores/trips/lookback", back="2h"),
        client.get("/api/stores/trips/top", agg="trips", n=4),
    ]
    assert [answer.status for answer in refused] == [422] * len(refused), [answer.body for answer in refused]
    assert client.get("/api/stores/trips/range", agg="a" * 21).status == 400
    assert client.post("/api/stores/trips/range", {"key": ["x" * 200]}).status == 413
    assert client.get("/api/stores/trips/range", step="10m", key=ZONES[:2], agg="trips", **wide).status == 200


def test_a_request_that_takes_too_long_is_broken_off(ask, trips):
    client = ask(trips)
    assert client.get("/api/stores/trips/range").status == 200  # open
    slow = ask(trips, limits=dataclasses.replace(Limits(), seconds=1e-9))
    answer = slow.get("/api/stores/trips/range", key=ZONES, step="1m")
    assert answer.status in (408, 503)
    assert SENTENCE.match(answer.json()["error"])


def test_answers_tell_browsers_to_trust_nothing_else(client):
    for path in ("/", "/api/stores", "/nowhere", "/static/page.js"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in headers["content-security-policy"]


def test_the_description_names_every_route_and_parameter(client):
    found = client.get("/openapi.json").json()
    assert found["openapi"].startswith("3.")
    assert set(found["paths"]) == {
        "/api/stores", "/api/stores/{store}", "/api/stores/{store}/keys", "/api/stores/{store}/lookback", "/api/stores/{store}/range",
        "/api/stores/{store}/top", "/api/stores/{store}/plan", "/api/pipelines", "/metrics",
    }  # fmt: skip
    for method, path, names in malformed.operations(found):
        values = {name: malformed.GOOD[name] for name in names}
        path = path.replace("{store}", "trips")
        answer = client.get(path, **values) if method == "GET" else client.post(path, values)
        assert answer.status == 200, (method, path, answer.body)
