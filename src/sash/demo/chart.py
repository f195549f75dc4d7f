"""The demo as a picture: the year, its worst day, the disorder of the stream, and how fast it went."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.commands.charts import pyplot
from sash.demo.flights import minutes_behind
from sash.demo.questions import DAY, worst_day
from sash.time import timestamp_text
from sash.wheel import TileStore

if TYPE_CHECKING:
    import pyarrow as pa

    from sash.demo.command import Streamed

__all__ = ["draw"]


def draw(file: Path, flights: pa.Table, tiles: Path, raced: dict[str, Streamed]) -> None:
    """Draw four panels from the tiles, the flights, and the race with Spark's own windows."""
    plt = pyplot()
    store = TileStore(tiles)
    delay, worst = (store.wheels(name) for name in ("delay", "worst"))
    assert store.span is not None
    first, last = -(-store.span[0] // DAY) * DAY, store.span[1] // DAY * DAY
    figure, panels = plt.subplots(2, 2, figsize=(14, 8.5), layout="constrained")
    day, value = worst_day(delay, *store.span)
    _year(panels[0, 0], delay, first, last, day, value)
    _day(panels[0, 1], day, delay, worst)
    _disorder(panels[1, 0], minutes_behind(flights))
    _speed(panels[1, 1], raced)
    figure.suptitle(
        f"{flights.num_rows:,} flights from New York in 2013, streamed out of order, checked, and asked from tiles", fontsize=14
    )
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _times(rows: list[tuple[int, Any]]) -> list[dt.datetime]:
    return [dt.datetime.fromisoformat(timestamp_text(at)) for at, _ in rows]


def _values(rows: list[tuple[int, Any]]) -> list[float]:
    return [float("nan") if value is None else value for _, value in rows]


def _year(panel: Any, delay: Any, first: int, last: int, day: int, value: float) -> None:
    from matplotlib.dates import ConciseDateFormatter

    days = delay.group_by_all(first, last, DAY)
    weeks = [(at, delay.query_all(at - 6 * DAY, at + DAY)) for at in range(first + 6 * DAY, last, DAY)]
    panel.plot(_times(days), _values(days), color="tab:blue", linewidth=0.9, alpha=0.7, label="of the day")
    panel.plot(_times(weeks), _values(weeks), color="black", linewidth=1.6, label="of the 7 days up to it")
    at = dt.datetime.fromisoformat(timestamp_text(day))
    panel.plot([at], [value], "o", color="tab:red")
    text = f"the worst day, {at.day} {at:%B}: {value:.0f} minutes"
    left = day - first > (last - first) / 2  # where there is room for the text
    side = {"xytext": (-8, 0), "ha": "right"} if left else {"xytext": (8, 0), "ha": "left"}
    panel.annotate(text, (at, value), textcoords="offset points", color="tab:red", va="center", **side)
    panel.xaxis.set_major_formatter(ConciseDateFormatter(panel.xaxis.get_major_locator()))
    panel.set(title="Mean departure delay over the year", xlabel="day they were scheduled for", ylabel="mean delay (minutes)")
    panel.margins(x=0.01, y=0.1)
    panel.grid(alpha=0.3)
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, -0.28), ncols=2, fontsize=9)


def _day(panel: Any, day: int, delay: Any, worst: Any) -> None:
    step = 1_800_000_000
    means, most = ([(at, v) for at, v in w.group_by_all(day, day + DAY, step) if v is not None] for w in (delay, worst))
    width = 30 / (24 * 60)
    panel.bar(_times(most), _values(most), width, align="edge", color="tab:orange", alpha=0.45, label="longest delay")
    panel.bar(_times(means), _values(means), width, align="edge", color="tab:blue", label="mean delay")
    hours = [dt.datetime.fromisoformat(timestamp_text(day + hour * 3_600_000_000)) for hour in range(0, 25, 3)]
    panel.set_xticks(hours, [f"{hour:02d}:00" for hour in range(0, 25, 3)])
    title = f"The worst day, {timestamp_text(day)[:10]}, by half hours"
    panel.set(title=title, xlabel="hour they were scheduled for", ylabel="delay (minutes)", xlim=(hours[0], hours[-1]))
    panel.grid(alpha=0.3)
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, -0.28), ncols=2, fontsize=9)


def _disorder(panel: Any, behind: Any) -> None:
    import numpy as np

    late = behind[behind > 0]
    edges = np.unique(np.round(np.geomspace(1, max(int(late.max()), 2) + 1, 40)).astype(int)) if len(late) else np.array([1, 2])
    counts, _ = np.histogram(late, edges)
    some = counts > 0
    panel.plot((edges[:-1] * edges[1:])[some] ** 0.5, counts[some], marker=".", color="tab:green")
    panel.set(xscale="log", yscale="log", xlabel="behind the latest schedule seen so far (logarithmic)", ylabel="flights (logarithmic)")
    marks = [mark for mark in (1, 5, 15, 60, 240, 720) if mark <= edges[-1]]
    panel.set_xticks(marks, ["1 min", "5 min", "15 min", "1 h", "4 h", "12 h"][: len(marks)])
    panel.minorticks_off()
    panel.set_title(f"Disorder: {len(late) / max(len(behind), 1):.0%} of the flights come after one scheduled later")
    panel.grid(alpha=0.3)


def _speed(panel: Any, raced: dict[str, Streamed]) -> None:
    names = list(raced)
    rates = [streamed.rows / streamed.seconds for streamed in raced.values()]
    bars = panel.barh(names, rates, height=0.5, color=["tab:blue" if name == "Sash" else "tab:red" for name in names])
    panel.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=4)
    rows = next(iter(raced.values())).rows if raced else 0
    panel.set(title=f"The same {rows:,} flights, windows of 1 h every 2 minutes", xlabel="flights per second, start of the query included")
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.margins(x=0.15)
    panel.grid(alpha=0.3, axis="x")
