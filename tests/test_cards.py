"""The card of every aggregation: complete, current, and true."""

from __future__ import annotations

import math
import pathlib

import pytest

from sash import agg
from sash.agg import cards
from sash.swag import DabaLite
from tests.oracles import close, ordered


def test_the_page_of_cards_is_current_and_complete():
    assert {a.example.split("(")[0] for a in cards.CARDS} == set(agg.__all__) - {"Aggregation", "define", "struct"}
    page = pathlib.Path(__file__).parent.parent / "docs" / "aggregations.md"
    assert page.read_text() == cards.page(), "write it anew: python -m sash.agg.cards > docs/aggregations.md"


@pytest.mark.parametrize("card", cards.CARDS, ids=lambda card: card.example)
def test_cards_tell_the_truth_about_nan(card):
    a = eval(f"agg.{card.example}")

    def result(x):
        w = DabaLite(a)
        for t, item in enumerate([1.0, x, 2.0, 1.5, 0.5]):
            w.insert(((item,), "label") if a.name == "naive_bayes" else item, t)
        return w.query()

    def numbers_in(found):
        return [x for part in found for x in numbers_in(part)] if isinstance(found, list | tuple) else [found]

    nan = math.nan
    match card.nan:
        case "is refused":
            with pytest.raises(TypeError):
                result(nan)
        case "propagates" | "gives NaN":
            assert any(x != x for x in numbers_in(result(nan)))
        case "is in no bin" | "is left out":
            assert result(nan) == result(None)
        case _:  # an item like any other: as 7 would be, which is the largest here, and true
            found, expected = numbers_in(result(nan)), [nan if x == 7 else x for x in numbers_in(result(7.0))]
            assert close(ordered(found), ordered(expected)) or (a.name == "quantile" and found[0] != found[0])


def test_cards_tell_the_truth_about_exactness():
    for card in cards.CARDS:
        a = getattr(agg, card.example.split("(")[0])
        assert (card.error == "exact") == eval(f"agg.{card.example}").exact, a
