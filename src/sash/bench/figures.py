"""The cells of each figure, named by what it varies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sash.bench.cells import Cell

__all__ = ["FIGURES"]

IN_ORDER: Final = (
    "plain_ring",
    "subtract_on_evict",
    "two_stacks_lite",
    "two_stacks",
    "daba_lite",
    "daba",
    "flat_fit",
    "flat_fat",
    "b_int",
    "amta",
    "fiba",
    "block_fiba",
)
ANY_ORDER: Final = ("b_tree", "fiba", "block_fiba")
SIZES: Final = (1 << 4, 1 << 10, 1 << 14, 1 << 18, 1 << 22)
LARGE: Final = 1 << 22


def _fifo(quick: bool) -> list[Cell]:
    sizes, rounds = (SIZES[2::2], 2_000_000) if quick else (SIZES, 10_000_000)
    inverse = ("plain_ring", "subtract_on_evict")
    cells = [Cell("fifo", name, "sum", size, rounds=rounds) for name in IN_ORDER for size in sizes]
    cells += [Cell("fifo", name, "max", 1 << 14, rounds=rounds) for name in (*IN_ORDER, "monotonic_deque") if name not in inverse]
    return cells + [Cell("fifo", name, "geomean", 1 << 14, rounds=rounds // 4) for name in IN_ORDER]


def _dynamic(quick: bool) -> list[Cell]:
    rounds = 1_000_000 if quick else 10_000_000
    return [Cell("dynamic", name, "sum", size, rounds=rounds) for name in IN_ORDER if name != "plain_ring" for size in (1 << 10, 1 << 18)]


def _latency(quick: bool) -> list[Cell]:
    rounds = 1_000_000 if quick else 10_000_000
    names = ("subtract_on_evict", "two_stacks_lite", "daba", "daba_lite", "flat_fit", "fiba", "block_fiba")
    return [Cell("latency", name, "sum", 1 << 14, rounds=rounds, repeats=1) for name in names]


def _ooo(quick: bool) -> list[Cell]:
    rounds = 500_000 if quick else 2_000_000
    distances = (0, 16, 1 << 10, 1 << 20)
    fixed = [Cell("ooo", name, "sum", LARGE, d, rounds=rounds) for name in ANY_ORDER for d in distances]
    return fixed + [Cell("ooo", name, "sum", LARGE, d, rounds=rounds, delays="scattered") for name in ANY_ORDER for d in distances[1:]]


def _bulk(kind: str) -> Callable[[bool], list[Cell]]:
    def cells(quick: bool) -> list[Cell]:
        bulks = (1, 16, 1 << 10, 1 << 16)
        distances = (0, 1 << 10, 1 << 20) if kind == "bulk" else (0,)
        items = 1 << (20 if quick else 23)
        names = ANY_ORDER[1:]
        return [Cell(kind, name, "sum", LARGE, d, m, max(4, items // m)) for name in names for m in bulks for d in distances]

    return cells


FIGURES: Final[dict[str, tuple[str, Callable[[bool], list[Cell]]]]] = {
    "fifo": ("throughput in order, by window size (DABA fig. 10, FiBA fig. 13)", _fifo),
    "dynamic": ("throughput of windows that grow and shrink (DABA fig. 11)", _dynamic),
    "latency": ("cycles of single rounds (DABA fig. 9, FiBA fig. 12)", _latency),
    "ooo": ("throughput by distance, fixed and scattered (FiBA fig. 11)", _ooo),
    "bulk-evict": ("throughput of bulk evictions, by bulk size (bulk FiBA fig. 7-9)", _bulk("bulk-evict")),
    "bulk": ("throughput of bulk evictions and insertions (bulk FiBA fig. 11-14)", _bulk("bulk")),
}
