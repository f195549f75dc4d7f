"""Charts of `sash query --plot`: what is drawn says what it is."""

import datetime as dt
from types import SimpleNamespace

import pytest

from sash import agg
from sash.commands import charts
from sash.commands.query import Answer

mpl = pytest.importorskip("matplotlib", reason="the extra demo is not installed")

HOUR = 3_600_000_000
T0 = 1_704_067_200_000_000  # 2024-01-01 00:00
AGGS = {"fare": agg.mean("fare"), "trips": agg.count(), "longest": agg.max("km")}


def drawn(monkeypatch, tmp_path, columns, rows, start, end, by=None):
    """Draw an answer; its figure, before it is closed."""
    plt = charts.pyplot()
    kept = []
    monkeypatch.setattr(plt, "close", kept.append)
    charts.chart(Answer(columns, rows, start, end, end, [], "", 0.0, 0.0), tmp_path / "c.png", "fares", AGGS, by)
    monkeypatch.undo()
    plt.close(kept[0])
    return kept[0]


def styles(axes):
    """(start, end, value, style) of the steps, in hours of the first of January."""
    out = []
    for line in axes.lines:
        (start, end), (low, high) = line.get_xdata(), line.get_ydata()
        if low == high and start != end:
            hours = [(at.replace(tzinfo=None) - dt.datetime(2024, 1, 1)).total_seconds() / 3600 for at in (start, end)]
            out.append((*hours, low, line.get_linestyle()))
    return out


def test_a_step_is_as_wide_as_it_lasts_and_one_that_is_cut_is_dotted(monkeypatch, tmp_path):
    rows = [["2024-01-01 03:30", 5.0], ["2024-01-01 06:00", 7.0], ["2024-01-01 12:00", None], ["2024-01-01 18:00", 9.0]]
    figure = drawn(monkeypatch, tmp_path, ["time", "fare"], rows, T0 + 7 * HOUR // 2, T0 + 20 * HOUR, "6h")
    assert styles(figure.axes[0]) == [(3.5, 6, 5.0, ":"), (6, 12, 7.0, "-"), (18, 20, 9.0, ":")]
    assert figure.axes[0].get_title(loc="left") == "mean fare by 6 hours"
    assert "dotted" in figure.axes[0].get_title(loc="right")


def test_a_day_of_a_time_zone_is_whole_from_midnight_to_midnight(monkeypatch, tmp_path):
    rows = [["2024-01-01 01:00+01:00", 5], ["2024-01-02 00:00+01:00", 7]]
    figure = drawn(monkeypatch, tmp_path, ["time", "trips"], rows, T0, T0 + 47 * HOUR, "1d")
    assert [style for *_, style in styles(figure.axes[0])] == [":", "-"]
    assert figure.axes[0].get_xlabel() == "start of the step (+01:00)"


def test_one_value_is_one_bar_with_its_number_and_room_around_it(monkeypatch, tmp_path):
    figure = drawn(monkeypatch, tmp_path, ["trips"], [[60_000]], T0, T0 + HOUR)
    axes = figure.axes[0]
    (bar,) = axes.patches
    low, high = sorted(axes.get_ylim())
    assert bar.get_height() < (high - low) / 3
    assert [text.get_text() for text in axes.texts] == ["60,000"]
    assert figure.get_figheight() < 3
    assert axes.get_title(loc="left") == "trips: count"


def test_a_legend_lies_beside_the_panels(monkeypatch, tmp_path):
    rows = [[key, f"2024-01-01 0{i}:00", i + len(key)] for key in ("north", "west") for i in range(3)]
    figure = drawn(monkeypatch, tmp_path, ["zone", "time", "longest"], rows, T0, T0 + 3 * HOUR, "1h")
    (legend,) = figure.legends
    figure.draw_without_rendering()
    assert legend.get_window_extent().x0 >= figure.axes[0].get_window_extent().x1
    assert [text.get_text() for text in legend.get_texts()] == ["north", "west"]
    assert figure.axes[0].get_title(loc="left") == "longest: max km by hour"


@pytest.mark.parametrize("kind", ["spark-windows", "spark-batch", "spark-latency"])
def test_figures_of_spark_have_no_bars_on_a_logarithmic_axis(kind):
    from matplotlib.figure import Figure

    from sash.bench import spark_races

    cell = {"keys": 100, "range": 600, "slide": 1, "rates": {"sash": {"median": 4e5}, "spark": {"median": 5e3}}}
    latency = {"contender": "sash", "p50": 0.5, "p99": 0.9}
    figure = Figure()
    spark_races.plot(kind, [latency] if kind == "spark-latency" else [cell], figure)
    axes = figure.axes[0]
    assert not ("log" in (axes.get_yscale(), axes.get_xscale()) and axes.patches)
    if kind != "spark-latency":
        assert {"400,000", "5,000"} <= {text.get_text() for text in axes.texts}


def test_a_file_of_another_kind_is_refused(tmp_path):
    from sash.errors import DefinitionError

    with pytest.raises(DefinitionError, match="a chart is PNG, SVG or PDF"):
        charts.chart(SimpleNamespace(columns=[], rows=[]), tmp_path / "c.doc", "x", AGGS)
