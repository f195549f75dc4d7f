"""All nets for a given time: ``make soak``, or ``python -m tests.truth.soak --minutes 60``.

Two processes take turns of a few seconds at each net. Every turn has a seed of its own; the first thing that goes wrong ends the soak,
names the net and the seed, and makes it fail. ``--net fuzz --seed 12`` runs that turn again. What each net covers is in
docs/reliability.md.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

TURN = 6.0  # seconds
STUCK = 300  # seconds after a turn should have ended


class Net(NamedTuple):
    """Where a net's ``soak(seed, seconds) -> count`` is, what it counts, and how many turns it takes."""

    module: str
    function: str
    counts: str  # "steps" or "damaged inputs"
    turns: int = 1


NETS = {
    "table": Net("table", "soak", "steps"),
    "faults": Net("faults", "soak", "steps"),
    "windows": Net("lockstep", "soak_windows", "steps", 2),
    "slides": Net("lockstep", "soak_slides", "steps", 2),
    "live": Net("engines", "soak", "steps", 2),
    "exact": Net("exact_orders", "soak", "steps"),
    "kills": Net("kills", "soak", "steps"),
    "fuzz": Net("fuzz", "soak", "damaged inputs", 4),
    "files": Net("fuzz_files", "soak", "damaged inputs"),
}


def turn(name: str, seed: int, seconds: float) -> int:
    """Run one net from a seed on."""
    net = NETS[name]
    count: int = getattr(importlib.import_module(f"tests.truth.{net.module}"), net.function)(seed, seconds)
    return count


def _work(number: int, first: int, names: list[str], end: float, out: Any) -> None:
    """Take turns until the end; tell before each what it is, so that a crash can be told."""
    seed = first * 1_000_003 + number
    while time.time() < end:
        for name in names:
            for _ in range(NETS[name].turns):
                seed += 2
                left = end - time.time()
                if left <= 0:
                    return
                out.put((number, "begins", name, seed, 0))
                faulthandler.dump_traceback_later(TURN + STUCK, exit=True)
                try:
                    count = turn(name, seed, min(TURN, left))
                except BaseException:
                    out.put((number, traceback.format_exc(), name, seed, 0))
                    return
                faulthandler.cancel_dump_traceback_later()
                out.put((number, "done", name, seed, count))


def soak(minutes: float, first: int, names: list[str], processes: int = 2, say: Callable[[str], None] = print) -> dict[str, int] | None:
    """Run the nets in some processes; what was counted by net, or None if something was wrong, which has been told."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    started, end = time.time(), time.time() + 60 * minutes
    workers = [context.Process(target=_work, args=(i, first, names, end, out)) for i in range(processes)]
    for worker in workers:
        worker.start()
    counts, at, told = dict.fromkeys(names, 0), {}, started
    wrong = None
    while wrong is None and (any(worker.is_alive() for worker in workers) or not out.empty()):
        try:
            number, said, name, seed, count = out.get(timeout=1)
        except Exception:  # nothing was said: is anyone gone?
            gone = [i for i, worker in enumerate(workers) if worker.exitcode not in (None, 0)]
            if gone:
                wrong = (*at.get(gone[0], ("no net", first)), f"its process ended with {workers[gone[0]].exitcode}")
            continue
        at[number] = (name, seed)
        if said == "done":
            counts[name] += count
        elif said != "begins":
            wrong = (name, seed, said)
        if time.time() - told > 60:
            told = time.time()
            say(f"{(told - started) / 60:.0f} min: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))
    for worker in workers:
        if wrong is not None and worker.is_alive():
            worker.terminate()
        worker.join()
    if wrong is not None:
        name, seed, said = wrong
        say(f"WRONG: {name}, seed {seed}\n{said}\nAgain: python -m tests.truth.soak --net {name} --seed {seed}")
        return None
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("SOAK_MINUTES", 60)))
    parser.add_argument("--seed", type=int, default=None, help="of the first turn; drawn by the clock unless given")
    parser.add_argument("--net", choices=sorted(NETS), action="append", help="only this one; may be given several times")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    names = args.net or list(NETS)
    if args.net and len(args.net) == 1 and args.seed is not None:
        print(f"{names[0]}, seed {args.seed}: {turn(names[0], args.seed, TURN):,} {NETS[names[0]].counts}, 0 wrong")
        return 0
    first = int(time.time()) if args.seed is None else args.seed
    print(f"soak of {args.minutes:g} minutes in {args.processes} processes, seed {first}: {', '.join(names)}", flush=True)
    started, used = time.time(), os.times()
    counts = soak(args.minutes, first, names, args.processes, lambda text: print(text, flush=True))
    if counts is None:
        return 1
    after = os.times()
    for name, count in counts.items():
        print(f"  {name:8} {count:>14,} {NETS[name].counts}")
    for kind in ("steps", "damaged inputs"):
        print(f"{sum(count for name, count in counts.items() if NETS[name].counts == kind):,} {kind}, 0 wrong")
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    print(f"{(time.time() - started) / 60:.1f} minutes, {cpu / 60:.1f} minutes of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
