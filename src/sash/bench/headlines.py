"""The figures of the README, taken from the report's page: `sash bench report` writes both, so that they can't disagree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

__all__ = ["BEGIN", "END", "figures", "picture", "race", "update", "written"]

BEGIN: Final = "<!-- figures: written by sash bench report -->"
END: Final = "<!-- end of figures -->"
PICTURE: Final = Path("pictures") / "spark-and-sash.svg"
Rows = list[list[str]]


def update(folder: Path) -> bool:
    """Write the figures of folder/benchmarks.md into the README above the folder, and draw its picture; False where there is no place."""
    readme, page = folder.parent / "README.md", (folder / "benchmarks.md").read_text()
    if not readme.exists() or BEGIN not in readme.read_text():
        return False
    before, _, rest = readme.read_text().partition(BEGIN)
    readme.write_text(before + BEGIN + "\n" + figures(page) + END + rest.partition(END)[2])
    if race(page):
        (folder / PICTURE).parent.mkdir(exist_ok=True)
        picture(page, folder / PICTURE)
    return True


def written(readme: str) -> str:
    """The figures as a README has them."""
    return readme.partition(BEGIN + "\n")[2].partition(END)[0]


def rows(page: str, experiment: str) -> Rows:
    """The lines of an experiment's table, cut into cells; none where the experiment is not on the page."""
    found = re.search(rf"^## {re.escape(experiment)}\n.*?```\n(.*?)```", page, re.S | re.M)
    return [re.split(r"\s{2,}", line.strip()) for line in found[1].splitlines()] if found else []


def _one(page: str, experiment: str, *start: str) -> list[str] | None:
    """The line of a table that begins with these cells."""
    return next((row for row in rows(page, experiment) if row[: len(start)] == list(start)), None)


def _command(page: str, experiment: str) -> str:
    found = re.search(rf"^## {re.escape(experiment)}\n\n.*?`(sash bench [^`]+)`", page, re.M)
    return found[1] if found else f"sash bench {experiment}"


def _beside(times: str) -> str:
    """A ratio in words."""
    return f"{float(times):.2g} times" if float(times) < 10 else f"{float(times):.0f} times"


def race(page: str) -> dict[str, float]:
    """Rows per second of streaming windows of ten minutes every second, by contender: those of Spark follow from their ratios.

    >>> race("## spark-windows\\n\\n```\\n 100  600/1  400,000  spark rocksdb 80.0  two steps 20.0\\n```\\n")
    {'Sash': 400000.0, "Spark's window() on RocksDB": 5000.0, "Spark's window() of slices, windowed again": 20000.0}
    """
    names = {
        "spark rocksdb": "Spark's window() on RocksDB",
        "spark hdfs": "Spark's window(), state in memory",
        "two steps": "Spark's window() of slices, windowed again",
    }
    row = _one(page, "spark-windows", "100", "600/1")
    if row is None:
        return {}
    ours = float(row[2].replace(",", ""))
    ratios = [re.fullmatch(r"(.*) ([\d.]+)", cell) for cell in row[3:]]
    return {"Sash": ours} | {names.get(found[1], found[1]): ours / float(found[2]) for found in ratios if found}


def figures(page: str) -> str:
    """Lay the figures out as Markdown: what, how much, and the command that repeats it."""
    lines = []

    def add(what: str, found: str | None, experiment: str) -> None:
        if found:
            lines.append(f"| {what} | {found} | `{_command(page, experiment)}` |")

    raced = race(page)
    if raced:
        best = max(rate for name, rate in raced.items() if name != "Sash")
        said = f"{raced['Sash']:,.0f} rows/s; Spark's own `window()` {min(raced.values()):,.0f}, its best form {best:,.0f}"
        add("streaming windows of 10 minutes every second, 100 keys, 2 cores", said, "spark-windows")
    for experiment, what, rival in (
        ("spark-batch", "the same call in batch, windows of an hour every minute", "Spark's `window()`"),
        ("spark-rolling", "rolling features in batch", "Spark's frames with the segment tree on"),
    ):
        row = next((row for row in rows(page, experiment)[1:] if len(row) > 3), None)
        times = re.search(r"(?:spark|segment tree) ([\d.]+)", " ".join(row[3:])) if row else None
        add(what, f"{row[2]} rows/s, {_beside(times[1])} {rival}" if row and times else None, experiment)
    for race_, what in (
        ("sum by count, 100", "`slide`, sums of 100 items"),
        ("max by time, 10,000", "`slide`, maxima by time, 10,000 items"),
    ):
        row = _one(page, "slide", race_)
        rivals = re.findall(r"(pandas|polars|bottleneck) ([\d.]+)", " ".join(row[2:])) if row else []
        said = ", ".join(f"{_beside(times)} {name}" for name, times in rivals)
        add(what, f"{row[1]} million items/s: {said}" if row else None, "slide")
    fifo = {name: row[3] for name in ("two_stacks_lite", "daba_lite") if (row := _one(page, "fifo", name, "sum", "16,384"))}
    if fifo:
        said = ", ".join(f"{name} {rate}" for name, rate in zip(("TwoStacksLite", "DabaLite"), fifo.values(), strict=False))
        add("evict, insert and query of a window of 16,384 sums", f"{said} million rounds/s", "fifo")
    for name, called in (("fiba", "Fiba"), ("block_fiba", "BlockFiba")):
        found = [row[3] for d in ("0", "1,024") if (row := _one(page, "ooo", name, d, "fixed"))]
        scattered = _one(page, "ooo", name, "1,024", "scattered")
        if len(found) == 2 and scattered:
            said = f"{found[0]}, {found[1]}, {scattered[3]} million rounds/s"
            add(f"{called}, 4 million entries: in order, 1,024 places late, up to 1,024 late at random", said, "ooo")
    for start, what in (
        ("open one key", "open the history of one key of a tile store of 5 million slices"),
        ("any range of a year", "ask any range of a year of minutes"),
        ("sash query, cold", "`sash query` from the shell, start of Python included"),
    ):
        row = _one(page, "tiles", start)
        add(what, f"{float(row[3]):.3g} ms" if row else None, "tiles")
    machine = re.search(r"^Made by .*? on (.*?), (\d+) cores", page, re.M)
    where = f"Measured on {machine[2]} cores of an {machine[1]}; other machines differ." if machine else "Machines differ."
    return f"\n{where}\n\n| what | figure | command |\n|---|---|---|\n" + "\n".join(lines) + "\n\n"


# --- the picture of the first screen


def picture(page: str, file: Path) -> None:
    """Draw what becomes of one event, and how many of them that lets through: as SVG, the figures also as text in its description."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    raced = race(page)
    with rc_context({"svg.hashsalt": "sash", "font.size": 11, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(11.5, 4.1), facecolor="white")
        _event(figure.add_axes((0.01, 0.03, 0.47, 0.85)))
        _rates(figure.add_axes((0.70, 0.17, 0.255, 0.60)), raced)
        figure.text(0.015, 0.93, "One event, windows of 10 minutes every second", fontsize=13, weight="bold")
        figure.text(0.535, 0.93, "Events per second in a stream (100 keys, 2 cores)", fontsize=13, weight="bold")
        said = ", ".join(f"{name} {rate:,.0f}" for name, rate in raced.items())
        figure.savefig(file, metadata={"Date": None, "Creator": None, "Title": "Spark and Sash", "Description": said})
    # matplotlib ends lines of paths with blanks, which every editor would take away again.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")


SPARK, OURS, INK, PALE = "#c0504d", "#1f6f9f", "#222222", "#d9d9d9"


def _event(axes: Any) -> None:
    from matplotlib.patches import FancyArrowPatch, Rectangle

    axes.set(xlim=(0, 100), ylim=(0, 100))
    axes.axis("off")

    def arrow(start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, color=colour, linewidth=1.1, shrinkA=0, shrinkB=0))

    axes.text(1, 94, "Spark copies it into 600 windows", color=SPARK, weight="bold", va="center")
    axes.plot([13], [73], "o", color=INK, markersize=9)
    axes.text(13, 64, "event", ha="center", va="center", fontsize=10)
    for i in range(7):
        y = 85 - 4.4 * i
        axes.add_patch(Rectangle((36 + 5 * i, y - 1.3), 32, 2.6, facecolor=SPARK, alpha=0.85, linewidth=0))
        arrow((16, 73), (36 + 5 * i, y), SPARK)
    axes.text(74, 88, "… 600 rows to aggregate\nand 600 states to change", fontsize=9.5, va="top", color=INK)
    axes.plot([1, 99], [50, 50], color=PALE, linewidth=1)
    axes.text(1, 43, "Sash adds it to one slice", color=OURS, weight="bold", va="center")
    axes.plot([13], [26], "o", color=INK, markersize=9)
    axes.text(13, 17, "event", ha="center", va="center", fontsize=10)
    for i in range(12):
        filled = i == 4
        axes.add_patch(Rectangle((36 + 4.4 * i, 22.5), 3.8, 7, facecolor=OURS if filled else "white", edgecolor=OURS, linewidth=1.1))
    arrow((16, 26), (35.2, 26), OURS)
    axes.text(90, 26, "one slice\na second", fontsize=9.5, va="center", color=INK)
    axes.annotate("", (36, 14), (88, 14), arrowprops={"arrowstyle": "<->", "color": INK, "linewidth": 1})
    axes.text(
        62,
        6,
        "every window is a few combined slices:\nthe next one has one more and one less",
        fontsize=9.5,
        ha="center",
        va="center",
        color=INK,
    )


def _rates(axes: Any, raced: dict[str, float]) -> None:
    ours = {"Sash"}
    names = sorted(raced, key=lambda name: raced[name])
    axes.barh(range(len(names)), [raced[name] for name in names], color=[OURS if name in ours else SPARK for name in names], height=0.62)
    most = max(raced.values())
    for i, name in enumerate(names):
        axes.text(raced[name] + most * 0.02, i, f"{raced[name]:,.0f}", va="center", weight="bold" if name in ours else "normal")
    axes.set_yticks(range(len(names)), [name.replace("() ", "()\n").replace(", ", ",\n") for name in names])
    axes.set_xticks([])
    axes.set_xlim(0, most * 1.25)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(length=0, labelsize=9.5)
