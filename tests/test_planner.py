"""The planner: what it picks, what it rejects, and that it says why."""

import pytest

from sash import agg, window
from sash.swag import DabaLite, Recalc


@pytest.mark.parametrize(
    ("aggregation", "needs", "picked"),
    [
        (agg.max(), {}, "TwoStacksLite"),
        (agg.max(), {"worst_case": True}, "DabaLite"),
        (agg.sum(), {}, "TwoStacksLite"),  # the items may be floats, and floats never subtract unless asked
        (agg.sum(dtype="float64"), {}, "TwoStacksLite"),
        (agg.sum(dtype="int64"), {}, "SubtractOnEvict"),
        (agg.count(), {}, "SubtractOnEvict"),
        (agg.var(dtype="int64"), {}, "TwoStacksLite"),  # its inverse rounds
        (agg.max(), {"ranges": True}, "BlockFiba"),
        (agg.max(), {"bulk": True}, "BlockFiba"),
        (agg.max(), {"in_order": False}, "BlockFiba"),
        (agg.max(), {"max_delay": 10}, "BlockFiba"),
        (agg.max(), {"max_delay": 10, "worst_case": True}, "Reordered"),
        (agg.define(lift=lambda x: x, combine=lambda a, b: (a + b) / 2, identity=0, associative=False), {}, "Recalc"),
    ],
)
def test_choices(aggregation, needs, picked):
    chosen = window(aggregation, **needs)
    assert type(chosen).__name__ == picked
    assert f": {picked}" in chosen.explain().splitlines()[0]
    assert "<- chosen" in chosen.explain()


def test_explain_names_what_was_rejected_and_why():
    text = window(agg.max(), worst_case=True).explain()
    assert "TwoStacksLite    up to n combines at a flip" in text
    assert "SubtractOnEvict  has no inverse" in text


def test_a_window_named_by_the_caller_explains_itself_too():
    w = DabaLite(agg.sum())
    w.insert(3)
    assert "named by the caller" in w.explain()
    assert "holds 1 entries of int64 items" in w.explain()


def test_non_associative_aggregations_are_for_recalc_alone():
    mean_of_two = agg.define(lift=lambda x: x, combine=lambda a, b: (a + b) / 2, identity=0.0, associative=False)
    w = Recalc(mean_of_two)
    w.bulk_insert([4.0, 2.0, 1.0])
    assert w.query() == 2.0
    with pytest.raises(TypeError, match="only Recalc"):
        DabaLite(mean_of_two)
    with pytest.raises(TypeError, match="only Recalc"):
        window(mean_of_two, in_order=False)


def test_a_reordered_window_answers_like_one_in_order():
    w = window(agg.collect(), max_delay=5, worst_case=True)
    for t in (3, 1, 2, 9, 7, 8):
        w.insert(t, t)
    assert w.query() == [1, 2, 3, 7, 8, 9]
    w.bulk_evict(2)
    assert w.query() == [3, 7, 8, 9]
    with pytest.raises(ValueError, match="max_delay"):
        w.insert(0, 2)
