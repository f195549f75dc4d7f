"""The server: how long one client waits for look-backs of a key of many, and what sixteen clients get together."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sash.bench.experiments import Finding
from sash.bench.machine import say
from sash.bench.tables import columns
from sash.bench.tiles import DAY, write_store

__all__ = ["findings", "load", "measure", "plot", "table"]

LOOKBACKS: Final = "back=1h&back=24h&back=7d"
LIMIT: Final = 0.005  # seconds, of p99 of one client
CLIENTS: Final = 16
MOST_GROWTH: Final = 1.05  # of the server's memory under load


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Serve a store of many keys by 30 days of minutes, and ask for three look-backs of random keys."""
    keys = options.keys or (500 if options.quick else 10_000)
    rounds, seconds = (300, 2.0) if options.quick else (5_000, 30.0)
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as temporary:
        store = write_store(Path(temporary) / "many", keys, 30, DAY, 168)[0]
        with _served(Path(temporary) / "many") as (port, process):
            opened = _opened(port)
            say(f"{name:10} {'opened':28} {opened:12,.1f} s")
            _asked(port, keys, 1, rounds=rounds)  # warm: the levels of a key are made when it is first asked about
            one = _asked(port, keys, 1, rounds=rounds)
            _asked(port, keys, CLIENTS, seconds=seconds / 10)
            before = _memory(process)
            many = _asked(port, keys, CLIENTS, seconds=seconds)
            after = _memory(process)
    cells = [
        {"experiment": name, "clients": 1, "keys": keys, "slices": len(store), "opened": opened, **one},
        {"experiment": name, "clients": CLIENTS, "keys": keys, "slices": len(store), "memory": before, "memory_after": after, **many},
    ]
    for cell in cells:
        say(f"{name:10} {cell['clients']:2} clients {cell['rate']:10,.0f} requests/s, p99 {cell['p99'] * 1e3:8.2f} ms")
    return cells


@contextlib.contextmanager
def _served(path: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "sash.cli", "serve", str(path), "--listen", "0", "--memory", "16G"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().split(":")[3].split("/")[0]), process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _opened(port: int) -> float:
    """Ask until the wheels of all keys are there."""
    begun = time.perf_counter()
    with _Connection(port) as connection:
        while (status := connection.ask("/api/stores/many/top?agg=fare&n=1")[0]) != 200:
            assert status == 503
    return time.perf_counter() - begun


class _Connection:
    """One client: plain HTTP over one socket, so that little of what is measured is its own."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = b""

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._socket.close()

    def ask(self, target: str) -> tuple[int, bytes]:
        self._socket.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        got = self._left
        while b"\r\n\r\n" not in got:
            got += self._more()
        head, _, body = got.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        while len(body) < length:
            body += self._more()
        self._left = body[length:]
        return int(head[9:12]), body[:length]

    def _more(self) -> bytes:
        found = self._socket.recv(65536)
        if not found:
            raise ConnectionError("the server hung up")
        return found


def _asked(port: int, keys: int, clients: int, *, rounds: int = 0, seconds: float = 0.0) -> dict[str, Any]:
    """Ask from another process, so that its work is not the server's nor this one's."""
    code = f"from sash.bench.serve import load; load({port}, {keys}, {clients}, {rounds}, {seconds})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def load(port: int, keys: int, clients: int, rounds: int, seconds: float) -> None:
    """Ask from so many threads, so often or so long; print rate, latencies and errors as JSON."""
    end = time.perf_counter() + seconds
    spent: list[list[float]] = [[] for _ in range(clients)]
    errors = [0] * clients

    def work(n: int) -> None:
        rng = random.Random(n + os.getpid())
        with _Connection(port) as connection:
            while len(spent[n]) < rounds if rounds else time.perf_counter() < end:
                target = f"/api/stores/many/lookback?agg=fare&key=zone-{rng.randrange(keys):05d}&{LOOKBACKS}"
                begun = time.perf_counter()
                status, body = connection.ask(target)
                spent[n].append(time.perf_counter() - begun)
                errors[n] += status != 200 or b"fare_24h" not in body

    begun = time.perf_counter()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    every = sorted(one for mine in spent for one in mine)
    at = {f"p{share:g}": every[min(int(len(every) * share / 100), len(every) - 1)] for share in (50, 99, 99.9)}
    print(json.dumps({"rate": len(every) / took, "requests": len(every), "errors": sum(errors), **at, "greatest": every[-1]}))


def _memory(process: subprocess.Popen[str]) -> int:
    """The bytes that the server holds."""
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def table(name: str, cells: list[dict[str, Any]]) -> str:
    """Lay the cells out as text: a line per number of clients."""
    head = ["clients", "keys", "slices", "requests", "per second", "p50 ms", "p99 ms", "p99.9 ms", "errors", "memory after / before"]
    rows = [
        [
            c["clients"], c["keys"], c["slices"], c["requests"], c["rate"], *(c[p] * 1e3 for p in ("p50", "p99", "p99.9")), c["errors"],
            c["memory_after"] / c["memory"] if "memory" in c else "",
        ]
        for c in cells
    ]  # fmt: skip
    return columns(head, rows)


def plot(name: str, cells: list[dict[str, Any]], figure: Any) -> None:
    """Draw the latencies of one client and of many."""
    axes = figure.subplots()
    shares = ["p50", "p99", "p99.9"]
    for i, cell in enumerate(cells):
        axes.bar([x + 0.35 * i for x in range(len(shares))], [cell[p] * 1e3 for p in shares], 0.33, label=f"{cell['clients']} clients")
    axes.set_xticks([x + 0.17 for x in range(len(shares))], shares)
    axes.set(ylabel="milliseconds", title=f"Three look-backs of one of {cells[0]['keys']:,} keys, over HTTP")
    axes.legend()


def findings(name: str, cells: list[dict[str, Any]]) -> list[Finding]:
    """Check what is promised of the server."""
    one, many = cells
    growth = many["memory_after"] / many["memory"]
    return [
        Finding(
            f"serve: p99 of one client is under {LIMIT * 1e3:.0f} ms",
            one["p99"] < LIMIT,
            f"{one['p99'] * 1e3:.2f} ms of {one['requests']:,} requests to {one['slices']:,} slices",
        ),
        Finding(
            f"serve: {many['clients']} clients get no error",
            many["errors"] == one["errors"] == 0,
            f"{many['rate']:,.0f} requests/s, p99 {many['p99'] * 1e3:.1f} ms, {many['errors']} errors",
        ),
        Finding("serve: memory stays flat under load", growth < MOST_GROWTH, f"{growth:.3f} times after {many['requests']:,} requests"),
    ]
