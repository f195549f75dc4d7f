"""The table: every container, type and entry point at least once, with drawn aggregations and kinds of time, against the plain model."""

from __future__ import annotations

import pytest

from sash import agg, swag
from tests.truth import held, model, table


@pytest.mark.parametrize("container", table.CONTAINERS)
def test_every_container_gives_every_entry_point_the_same_items(container):
    ran = 0
    for entry in table.ENTRIES:
        for kind in held.KINDS:
            ran += table.run(f"table/{container}/{entry}/{kind}", entry, container, kind)
    assert ran > 0  # some type it holds


@pytest.mark.parametrize("entry", table.ENTRIES)
def test_drawn_cases_agree_with_the_model(entry):
    ran = sum(table.run(f"drawn/{entry}/{i}", entry) for i in range(150))
    assert ran > 75


@pytest.mark.parametrize("name", [*table.FOR_ALL, *table.FOR_NUMBERS])
def test_every_aggregation_agrees_with_the_model_at_every_entry_point(name):
    for entry in table.ENTRIES:
        for kind in ("int64", "float64", "text"):
            many = 60 if (entry, kind) == ("slide", "int64") else 4  # slides have most ways of their own to run
            assert sum(table.run(f"each/{name}/{entry}/{kind}/{i}", entry, "list", kind, name) for i in range(many)) == many


def test_every_entry_point_refuses_unequal_columns_and_what_int64_does_not_hold():
    assert sum(table.refusals(f"refusals/{i}") for i in range(12)) > 500


@pytest.mark.parametrize("name", [*held.TIMES, *(f"floats: {name}" for name in held.FLOAT_TIMES)])
def test_times_of_every_kind_are_told_alike(name):
    per, make = held.TIMES[name] if name in held.TIMES else (1, held.FLOAT_TIMES[name.removeprefix("floats: ")])
    at = [3 * per, 3 * per, 5 * per, 9 * per] if name in held.TIMES else [-1.5, 0.25, 0.25, 7.0]
    for make_window in (swag.DabaLite, lambda a: swag.Fiba(a, ties="keep"), swag.Recalc):
        w = make_window(agg.struct(low=agg.argmin(), high=agg.argmax(), corners=agg.m4(), n=agg.count()))
        w.bulk_insert([4, 1, 7, 7], times=make(at))
        found = w.query()
        assert (found["low"], found["high"], found["n"], w.oldest, w.youngest) == (at[1], at[2], 4, at[0], at[3])
        assert [corner.time for corner in found["corners"]] == [at[0], at[1], at[2], at[3]]


def test_every_aggregation_of_the_table_is_in_the_model():
    assert {*table.FOR_ALL, *table.FOR_NUMBERS} <= set(model.RESULTS) <= set(agg.__all__)


def test_every_aggregation_that_carries_time_is_in_the_table():
    made = {
        "top_k",
        "bottom_k",
        "first_k",
        "last_k",
        "ith_youngest",
        "ith_smallest",
        "histogram",
        "quantile",
        "approx_quantile",
        "define",
        "struct",
    }
    carry = set()
    for name in set(agg.__all__) - made - {"Aggregation"}:
        factory = getattr(agg, name)
        try:
            made_one = factory()
        except TypeError:  # asks for more
            continue
        if isinstance(made_one, agg.Aggregation) and made_one.reads_time:
            carry.add(name)
    assert carry <= {*table.FOR_ALL, *table.FOR_NUMBERS}
    assert {"argmin", "argmax", "m4", "linreg"} <= carry
