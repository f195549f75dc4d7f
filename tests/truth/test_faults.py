"""A slice of the soak: windows and wheels beside a plain model, while callables raise at random."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.truth import faults


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_windows_hold_what_the_model_holds_or_say_that_they_are_broken(seed):
    faults.window_run(seed)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_wheels_hold_what_the_model_holds_and_lose_no_result_or_say_that_they_are_broken(seed):
    faults.wheel_run(seed)


@pytest.mark.parametrize("seed", [0])
def test_a_soak_counts_its_steps(seed):
    assert faults.soak(seed, 0.5) > 100
