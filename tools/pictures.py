"""Draw the pictures of docs/algorithms.md: the structures run here on letters, and what they hold is drawn.

Every slot shows the letters that are combined in it. `make pictures` writes docs/pictures/*.svg anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
READY, ITEM, PART, PALE, INK, HOT = "#9ecae1", "#ffffff", "#c7e9c0", "#eeeeee", "#222222", "#fdae6b"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def canvas(width: float, height: float) -> tuple[Figure, Any]:
    """A figure whose unit is a slot."""
    figure = Figure(figsize=(width * 0.62, height * 0.42), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    return figure, axes


def slot(axes: Any, x: float, y: float, text: str, colour: str, width: float = 1.0) -> None:
    axes.add_patch(Rectangle((x, y), width, 1, facecolor=colour, edgecolor=INK, linewidth=0.9))
    axes.text(x + width / 2, y + 0.5, text, ha="center", va="center", fontsize=9 if len(text) < 7 else 7.5, color=INK)


def say(axes: Any, x: float, y: float, text: str, bold: bool = False, size: float = 9.5, ha: str = "left") -> None:
    axes.text(x, y, text, ha=ha, va="center", fontsize=size, color=INK, weight="bold" if bold else "normal")


def mark(axes: Any, x: float, y: float, text: str) -> None:
    """A place between two slots, named below them."""
    axes.plot([x, x], [y - 0.08, y + 0.22], color=INK, linewidth=1.1)
    say(axes, x, y + 0.5, text, size=8.5, ha="center")


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str = INK, style: str = "-|>") -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle=style, mutation_scale=10, color=colour, linewidth=1.2, shrinkA=1, shrinkB=1))


# --- Two-Stacks Lite


class TwoStacksLite:
    """The algorithm, on text."""

    def __init__(self) -> None:
        self.slots: list[str] = []
        self.turn = 0  # slots before it hold their suffix
        self.back = ""

    def insert(self, item: str) -> None:
        self.slots.append(item)
        self.back += item

    def insert_all(self, items: str) -> None:
        for item in items:
            self.insert(item)

    def evict(self) -> None:
        if self.turn == 0:
            for i in range(len(self.slots) - 2, -1, -1):
                self.slots[i] += self.slots[i + 1]
            self.turn, self.back = len(self.slots), ""
        self.slots.pop(0)
        self.turn -= 1

    def query(self) -> str:
        return (self.slots[0] if self.turn else "") + self.back


def two_stacks() -> Figure:
    figure, axes = canvas(15, 9.6)
    window = TwoStacksLite()
    say(axes, 0.3, 0.6, "Two-Stacks Lite: the window abc… is one ready suffix and one running total", bold=True, size=11)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("insert a, b, c, d", lambda: window.insert_all("abcd")),
        ("evict a: nothing is ready, so turn", window.evict),
        ("insert e, f", lambda: window.insert_all("ef")),
        ("evict b: it is ready, no combine", window.evict),
    ]
    for i, (text, step) in enumerate(steps):
        step()
        y, gone = 1.7 + 1.95 * i, sum(step == window.evict for _, step in steps[: i + 1])
        say(axes, 0.3, y + 0.5, text)
        for j, held in enumerate(window.slots):
            slot(axes, 6 + gone + j, y, held, READY if j < window.turn else ITEM)
        say(axes, 12.4, y + 0.25, f"back = {window.back or '–'}", size=9)
        say(axes, 12.4, y + 0.8, f"query = {window.query()}", size=9)
        mark(axes, 6 + gone + window.turn, y + 1, "turn")
    return figure


# --- DABA Lite


class DabaLite:
    """The algorithm, on text: places are counted from the first item ever."""

    def __init__(self) -> None:
        self.slots: list[str] = []
        self.items: list[str] = []
        self.F = self.L = self.R = self.A = self.B = 0
        self.aggRA = self.aggB = ""

    @property
    def E(self) -> int:
        return len(self.slots)

    def insert(self, item: str) -> None:
        self.slots.append(item)
        self.items.append(item)
        self.aggB += item
        self.fixup()

    def evict(self) -> None:
        self.F += 1
        self.fixup()

    def fixup(self) -> None:
        if self.F == self.B:  # one item, or none: all of it is back
            self.L = self.R = self.A = self.B = self.E
            self.aggB = self.aggRA = ""
            return
        if self.L == self.B:  # flip: the back becomes the part that is worked on
            self.L, self.R, self.A, self.B, self.aggRA, self.aggB = self.F, self.B, self.E, self.E, self.aggB, ""
        if self.L == self.R:  # shift
            self.L, self.R, self.A = self.L + 1, self.R + 1, self.A + 1
        else:  # shrink: one slot on each side is made ready
            self.slots[self.L] += self.aggRA
            self.L += 1
            self.A -= 1
            if self.A + 1 < self.B:
                self.slots[self.A] += self.slots[self.A + 1]

    def query(self) -> str:
        return (self.slots[self.F] if self.F < self.B else "") + self.aggB

    def check(self) -> None:
        whole = self.items
        for i in range(self.F, self.E):
            end = self.B if i < self.L or self.A <= i < self.B else self.R if i < self.R else i + 1
            assert self.slots[i] == "".join(whole[i:end]), (i, self.slots[i])
        assert self.query() == "".join(whole[self.F :])


def daba() -> Figure:
    figure, axes = canvas(18, 14.9)
    say(
        axes,
        0.3,
        0.6,
        "DABA Lite: the turn of Two-Stacks, spread over the steps; no step takes more than three combines",
        bold=True,
        size=11,
    )
    window, y, letters = DabaLite(), 1.6, iter(LETTERS)
    for _ in range(2):
        window.insert(next(letters))
    steps = ["insert"] * 4 + ["evict", "insert", "evict"]
    for step in steps:
        before = (window.L, window.B)
        text = step
        if step == "insert":
            item = next(letters)
            window.insert(item)
            text = f"insert {item}"
        else:
            text = f"evict {window.items[window.F]}"
            window.evict()
        window.check()
        done = "flip, shrink" if before[1] != window.B else "shift" if window.L == window.R else "shrink"
        say(axes, 0.3, y + 0.5, f"{text}: {done}")
        for i in range(window.F, window.E):
            colour = READY if i < window.L else PART if i < window.R else ITEM if i < window.A else READY if i < window.B else ITEM
            slot(axes, 3.6 + i * 1.12, y, window.slots[i], colour, 1.12)
        places: dict[int, str] = {}
        for name in ("F", "L", "R", "A", "B", "E"):
            places[getattr(window, name)] = places.get(getattr(window, name), "") + name
        for place, names in places.items():
            mark(axes, 3.6 + place * 1.12, y + 1, names)
        say(axes, 14.2, y + 0.2, f"aggRA = {window.aggRA or '–'}", size=8.5)
        say(axes, 14.2, y + 0.7, f"aggB = {window.aggB or '–'},  query = {window.query()}", size=8.5)
        y += 1.72
    for x, colour, text in ((3.6, READY, "ready: up to B"), (7.6, PART, "up to R; aggRA completes it"), (13.2, ITEM, "the item itself")):
        slot(axes, x, 13.75, "", colour, 0.6)
        say(axes, x + 0.8, 14.25, text, size=8.5)
    return figure


# --- FiBA


class Node(NamedTuple):
    """A box of a tree: where it is, what it says."""

    x: float
    y: float
    text: str
    width: float = 2.0


def box(axes: Any, node: Node, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (node.x - node.width / 2, node.y),
            node.width,
            0.9,
            boxstyle="round,pad=0.02,rounding_size=0.15",
            facecolor=colour,
            edgecolor=INK,
        )
    )
    say(axes, node.x, node.y + 0.45, node.text, size=9, ha="center")


def edge(axes: Any, parent: Node, child: Node, colour: str = INK, width: float = 0.9) -> None:
    axes.plot([parent.x, child.x], [parent.y + 0.9, child.y], color=colour, linewidth=width, zorder=0)


def fiba() -> Figure:
    figure, axes = canvas(18, 8.3)
    say(axes, 0.3, 0.6, "FiBA: a B-tree that is entered at its two ends, the fingers", bold=True, size=11)
    root = Node(9, 1.6, "f    o")
    inner = [Node(3.3, 3.4, "c"), Node(9, 3.4, "i    l"), Node(14.7, 3.4, "r    u")]
    texts = (("a  b", "d  e"), ("g  h", "j  k", "m  n"), ("p  q", "s  t", "v  w"))
    leaves = [
        [Node(parent.x + 1.85 * (i - (len(below) - 1) / 2), 5.2, text, 1.5) for i, text in enumerate(below)]
        for parent, below in zip(inner, texts, strict=True)
    ]
    for node in inner:
        edge(axes, root, node)
    for parent, below in zip(inner, leaves, strict=True):
        for leaf in below:
            edge(axes, parent, leaf)
    box(axes, root, HOT)
    for node, colour in zip(inner, (READY, ITEM, READY), strict=True):
        box(axes, node, colour)
    for below in leaves:
        for leaf in below:
            box(axes, leaf, READY if leaf is leaves[0][0] or leaf is leaves[2][2] else ITEM)
    say(axes, root.x + 1.2, root.y + 0.45, "holds f, g…n, o: all but its outer children", size=8.5)
    say(axes, 0.3, 6.6, "left finger", size=9)
    say(axes, leaves[2][2].x, 6.6, "right finger", size=9, ha="center")
    arrow(axes, (16.9, 5.15), (15.7, 4.3), "#d62728")
    arrow(axes, (13.9, 4.3), (12.7, 5.15), "#d62728")
    say(axes, 17.9, 2.6, "an item 7 places late, between p and q:", size=8.5, ha="right")
    say(axes, 17.9, 3.0, "one level up, one down", size=8.5, ha="right")
    say(
        axes,
        0.3,
        7.5,
        "White nodes hold the partial of their subtree; blue ones on the spines hold what lies between them and the root, so that",
        size=9,
    )
    say(
        axes,
        0.3,
        8.0,
        "query = left finger, root, right finger: two combines. The climb from a finger is as long as log d, whatever n is.",
        size=9,
    )
    return figure


# --- BlockFiba


def block_fiba() -> Figure:
    figure, axes = canvas(18, 14.6)
    say(axes, 0.3, 0.6, "BlockFiba: a third finger, the gap, stays where late items arrive", bold=True, size=11)
    first, third = [10, 20, 30, 40, 50, 60], [150, 160, 180, 200]
    rows = [
        ("The window: times in blocks of eight.", "The gap is closed, at the right end.", [70, 80, 90, 110, 130], None),
        (
            "100 comes late: climb from the right end, search the block, insert,",
            "fold the block and its parents again.",
            [70, 80, 90, 100, 110, 130],
            3,
        ),
        (
            "103 comes beside it: the gap opens here.",
            "What lies before it and after it is folded once.",
            [70, 80, 90, 100, 103, 110, 130],
            4,
        ),
        (
            "107 falls into the gap: shift the rest of the block,",
            "before ← before ⊗ 107: one combine, at any distance.",
            [70, 80, 90, 100, 103, 107, 110, 130],
            5,
        ),
    ]
    for i, (what, then, second, late) in enumerate(rows):
        y = 1.7 + 3.0 * i
        say(axes, 0.3, y - 0.1, what, size=8.8)
        say(axes, 0.3, y + 0.35, then, size=8.8)
        y += 0.75
        for block, times in enumerate((first, second, third)):
            for j in range(8):
                held = f"{times[j]}" if j < len(times) else ""
                hot = block == 1 and j == late
                slot(axes, 0.4 + block * 5.9 + j * 0.7, y, held, HOT if hot else ITEM if held else PALE, 0.7)
        if late is not None and i >= 2:
            place = 6.3 + (late + 1) * 0.7
            axes.plot([place, place], [y - 0.15, y + 1.15], color="#d62728", linewidth=2.2)
            for start, end, text in ((0.4, 5.9, "suffix"), (6.3, place - 0.08, "before"), (place + 0.08, 17.8, "after")):
                axes.annotate("", (start, y + 1.25), (end, y + 1.25), arrowprops={"arrowstyle": "<->", "color": INK})
                say(axes, (start + end) / 2, y + 1.6, text, size=8.5, ha="center")
    say(
        axes,
        0.3,
        14.0,
        "query = suffix ⊗ before ⊗ after. An eviction of the oldest moves one index: the first block keeps its suffixes.",
        size=9,
    )
    return figure


# --- wheels


def wheel() -> Figure:
    from sash import agg
    from sash.wheel import Wheel

    hour = 3600
    asked = (10 * hour + 15 * 60 + 23, 13 * hour + 20 * 60 + 50)
    index = Wheel(agg.max(), unit="s", grain="1s", levels=("1m", "1h", "1d"))
    index.advance_to(86_400)
    plan = str(index.explain(*asked))
    figure, axes = canvas(18, 8.2)
    say(axes, 0.3, 0.6, "A wheel: the range from 10:15:23 to 13:20:50 is 153 slots, not 11,127 seconds", bold=True, size=11)
    assert "152 combines for 11,127" in plan, plan

    def place(second: float) -> float:
        return 2.2 + (second - 10 * hour) / (4 * hour) * 15.2

    levels = (("hours", hour, 1.6), ("minutes", 60, 3.1), ("seconds", 1, 4.6))
    used = {
        "seconds": [(asked[0], 10 * hour + 16 * 60), (13 * hour + 20 * 60, asked[1])],
        "minutes": [(10 * hour + 16 * 60, 11 * hour), (13 * hour, 13 * hour + 20 * 60)],
        "hours": [(11 * hour, 13 * hour)],
    }
    counts = {"seconds": ("37", "50"), "minutes": ("44", "20"), "hours": ("2",)}
    for name, step, y in levels:
        say(axes, 0.3, y + 0.5, name)
        axes.add_patch(Rectangle((place(10 * hour), y), 15.2, 1, facecolor=PALE, edgecolor=INK, linewidth=0.9))
        for (start, end), count in zip(used[name], counts[name], strict=True):
            wide = max(place(end) - place(start), 0.14)
            axes.add_patch(Rectangle((place(start), y), wide, 1, facecolor=READY, edgecolor=INK, linewidth=0.9))
            left = name == "seconds" and start != asked[0]
            middle = place(start) + (wide / 2 if name != "seconds" else 0.35 if left else -0.35)
            say(axes, middle, y + 0.5, count, size=9.5, ha="center")
        if step >= 60:
            for tick in range(10 * hour, 14 * hour + 1, hour if step == hour else 600):
                axes.plot([place(tick)] * 2, [y, y + 1], color=INK, linewidth=0.5, alpha=0.5)
    for at in range(10, 15):
        say(axes, place(at * hour), 6.0, f"{at}:00", size=8.5, ha="center")
    for i, line in enumerate(plan.splitlines()[:2]):
        axes.text(0.3, 6.9 + 0.55 * i, line.rstrip(), family="monospace", fontsize=8.5, va="center", color=INK)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {"two-stacks": two_stacks, "daba": daba, "fiba": fiba, "block-fiba": block_fiba, "wheel": wheel}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    with rc_context({"svg.hashsalt": "sash", "font.family": "DejaVu Sans"}):
        for name, draw in PICTURES.items():
            file = FOLDER / f"{name}.svg"
            draw().savefig(file, metadata={"Date": None, "Creator": None, "Title": name})
            file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")
            print(file.relative_to(FOLDER.parents[1]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
