"""The recipe: one end, a learning rate for every moment, and refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.training import Recipe


def recipe(**changes: Any) -> Recipe:
    return Recipe(**{"length": 8, "batch": 4, "steps": 100, **changes})


fractions = st.floats(0, 1)
decays = st.sampled_from(["cosine", "linear", "none"])


@given(warmup=fractions, final_rate=fractions, decay=decays, at=st.lists(fractions, min_size=2, max_size=2))
def test_the_rate_rises_and_then_falls(warmup: float, final_rate: float, decay: Any, at: list[float]) -> None:
    plan = recipe(rate=0.5, warmup=warmup, final_rate=final_rate, decay=decay)
    early, late = sorted(at)
    before, after = plan.rate_at(early), plan.rate_at(late)
    assert 0 <= before <= 0.5
    if late < warmup:
        assert before <= after
    elif early >= warmup:
        assert before >= after - 1e-12
    assert after >= min(final_rate, 0.01) * 0.5 - 1e-12


def test_the_rate_at_known_points() -> None:
    plan = recipe(rate=1.0, warmup=0.2, final_rate=0.1, decay="cosine")
    known = {0.0: 0.01, 0.1: 0.5, 0.2: 1.0, 0.4: 0.1 + 0.9 * (1 + math.sqrt(0.5)) / 2, 0.6: 0.55, 1.0: 0.1}
    assert {at: plan.rate_at(at) for at in known} == pytest.approx(known)
    plan = recipe(rate=1.0, warmup=0.2, final_rate=0.1, decay="linear")
    assert [plan.rate_at(at) for at in (0.2, 0.6, 1.0)] == pytest.approx([1.0, 0.55, 0.1])
    plan = recipe(rate=1.0, warmup=0.2, final_rate=0.1, decay="none")
    assert [plan.rate_at(at) for at in (0.1, 0.2, 0.6, 1.0)] == pytest.approx([0.5, 1.0, 1.0, 1.0])
    plan = recipe(rate=1.0, warmup=0.0, decay="linear", final_rate=0.0)
    assert [plan.rate_at(at) for at in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.5, 0.0])
    plan = recipe(rate=1.0, warmup=1.0)
    assert [plan.rate_at(at) for at in (0.0, 0.5, 1.0)] == pytest.approx([0.01, 0.5, 1.0])


def test_each_end_measures_the_run() -> None:
    assert [recipe().fraction(step, 1e9) for step in (0, 50, 100, 101)] == [0, 0.5, 1, 1]
    by_tokens = recipe(steps=None, tokens=1000)  # 32 tokens a step: the 32nd step passes 1000
    assert [by_tokens.fraction(step, 1e9) for step in (0, 31, 32)] == [0, pytest.approx(0.992), 1]
    by_minutes = recipe(steps=None, minutes=2)
    assert [by_minutes.fraction(10**9, seconds) for seconds in (0.0, 30.0, 120.0, 121.0)] == [0, 0.25, 1, 1]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"steps": None}, "none was given"),
        ({"minutes": 1.0}, "steps and minutes given"),
        ({"tokens": 5, "minutes": 1.0}, "steps and tokens and minutes given"),
    ],
)
def test_exactly_one_end(ends: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"{said}: set exactly one"):
        recipe(**ends)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"steps": -1},
        {"steps": None, "tokens": 0},
        {"steps": None, "minutes": 0.0},
        {"steps": None, "minutes": math.nan},
        {"length": 0},
        {"batch": 0},
        {"micro_batch": 0},
        {"evaluate_every": 0},
        {"evaluate_tokens": 0},
        {"save_every": -5},
        {"clip": 0.0},
        {"clip": math.nan},
        {"rate": -1e-3},
        {"rate": math.nan},
        {"rate": math.inf},
        {"final_rate": 1.5},
        {"warmup": -0.1},
        {"warmup": 1.1},
        {"weight_decay": -1.0},
        {"beta1": 1.0},
        {"beta2": 1.0},
        {"mask_rate": 1.1},
        {"decay": "exponential"},
        {"seed": -1},
        {"seed": 1 << 64},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    name, value = list(wrong.items())[-1]
    with pytest.raises(InputError) as caught:
        recipe(**wrong)
    assert name in str(caught.value)
    assert str(value) in str(caught.value)


def test_the_largest_and_smallest_that_can_be() -> None:
    recipe(seed=(1 << 64) - 1, rate=0.0, warmup=0.0, final_rate=0.0, weight_decay=0.0, beta1=0.0, mask_rate=0.0)
    recipe(warmup=1.0, final_rate=1.0, clip=math.inf, steps=1, length=1, batch=1)
