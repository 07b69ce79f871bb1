"""The distribution of the next token, against a plain reference, and the draw from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.generation import Sampling, probabilities, sample

INF = math.inf
LOGIT = st.one_of(
    st.sampled_from([-INF, INF, 0.0, 1.0, -1.0, 1e300, -1e300]),
    st.integers(-3, 3).map(float),  # ties
    st.floats(-50, 50, width=32, allow_subnormal=False),  # some libraries switch subnormal numbers off
)
LOGITS = st.lists(LOGIT, min_size=1, max_size=12).filter(lambda row: max(row) > -INF)
SAMPLING = st.builds(
    Sampling,
    temperature=st.one_of(st.just(0.0), st.sampled_from([5e-324, 1e-200, 1e-9, 1.0, 1e9, 1e308]), st.floats(0.1, 5)),
    top_k=st.none() | st.integers(1, 15),
    top_p=st.none() | st.floats(0.01, 1),
    min_p=st.none() | st.floats(0, 1),
    repetition_penalty=st.just(1.0) | st.floats(0.2, 5) | st.sampled_from([5e-324, 1e308]),
)


def plain(logits: list[float], sampling: Sampling, previous: list[int]) -> list[float]:
    """The same by lists and loops; finite logits and ordinary temperatures only."""
    z = list(logits)
    for token in set(previous):
        z[token] = z[token] / sampling.repetition_penalty if z[token] > 0 else z[token] * sampling.repetition_penalty
    order = sorted(range(len(z)), key=lambda token: -z[token])
    if sampling.temperature == 0:
        return [float(token == order[0]) for token in range(len(z))]
    weights = {token: math.exp((z[token] - z[order[0]]) / sampling.temperature) for token in order}
    kept = order[: sampling.top_k]
    if sampling.top_p is not None:
        whole = sum(weights[token] for token in kept)
        smallest: list[int] = []
        while sum(weights[token] for token in smallest) < sampling.top_p * whole and len(smallest) < len(kept):
            smallest.append(kept[len(smallest)])
        kept = smallest
    if sampling.min_p is not None:
        kept = [token for token in kept if weights[token] >= sampling.min_p * weights[order[0]]]
    whole = sum(weights[token] for token in kept)
    return [weights[token] / whole if token in kept else 0.0 for token in range(len(z))]


@given(LOGITS, SAMPLING, st.lists(st.integers(0, 11), max_size=5))
def test_always_a_distribution(logits: list[float], sampling: Sampling, previous: list[int]) -> None:
    seen = [token for token in previous if token < len(logits)]
    p = probabilities(torch.tensor([logits]), sampling, [seen])[0]
    assert not p.isnan().any() and (p >= 0).all()
    assert p.sum().item() == pytest.approx(1, abs=1e-12)
    assert all(p[token] == 0 for token, logit in enumerate(logits) if logit == -INF)


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=10, unique=True),
    st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    st.none() | st.integers(1, 12),
    st.none() | st.floats(0.01, 1),
    st.none() | st.floats(0, 1),
    st.sampled_from([1.0, 0.5, 1.3]),
    st.lists(st.integers(0, 9), max_size=4),
)
def test_equals_the_plain_reference(
    logits: list[float],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
    penalty: float,
    previous: list[int],
) -> None:
    sampling = Sampling(temperature, top_k, top_p, min_p, penalty)
    seen = [token for token in previous if token < len(logits)]
    unfiltered = plain(logits, Sampling(temperature or 1.0, top_k, None, None, penalty), seen)
    ranked = np.sort(unfiltered)[::-1]
    # Where a sum or a ratio meets its bound to the last bit, either answer is right.
    assume(top_p is None or np.abs(np.cumsum(ranked) - top_p).min() > 1e-9)
    assume(min_p is None or np.abs(ranked - min_p * ranked[0]).min() > 1e-9 or min_p in (0.0, 1.0))
    got = probabilities(torch.tensor([logits], dtype=torch.float64), sampling, [seen])[0]
    assert got.tolist() == pytest.approx(plain(logits, sampling, seen), abs=1e-9)


@given(LOGITS, st.floats(0.01, 0.99))
def test_top_p_keeps_the_smallest_set_that_reaches_p(logits: list[float], top_p: float) -> None:
    whole = probabilities(torch.tensor([logits]), Sampling())[0]
    kept = probabilities(torch.tensor([logits]), Sampling(top_p=top_p))[0] > 0
    assert whole[kept].sum() >= top_p - 1e-12
    assert whole[kept].sum() - whole[kept].min() < top_p + 1e-12
    assert whole[kept].min() >= whole[~kept].max() if (~kept).any() else True


def test_top_k_keeps_k_of_equal_logits_lower_ids_first() -> None:
    p = probabilities(torch.tensor([[1.0, 2.0, 2.0, 2.0]]), Sampling(top_k=2))
    assert p.tolist() == [[0.0, 0.5, 0.5, 0.0]]


def test_top_p_that_is_met_exactly_is_enough() -> None:
    assert probabilities(torch.zeros(1, 2), Sampling(top_p=0.5)).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("sampling", "right"),
    [
        (Sampling(top_p=0.3), [1 / 3, 1 / 3, 1 / 3, *[0] * 7]),
        (Sampling(top_p=1.0), [0.1] * 10),
        (Sampling(min_p=1.0), [0.1] * 10),
        (Sampling(temperature=0), [1.0, *[0] * 9]),
        (Sampling(temperature=5e-324), [0.1] * 10),
    ],
)
def test_all_tied(sampling: Sampling, right: list[float]) -> None:
    assert probabilities(torch.zeros(1, 10), sampling)[0].tolist() == pytest.approx(right)


@given(LOGITS)
def test_a_temperature_near_0_is_argmax_among_the_best(logits: list[float]) -> None:
    nearly = probabilities(torch.tensor([logits], dtype=torch.float64), Sampling(temperature=1e-300))[0]
    best = [token for token, logit in enumerate(logits) if min(logit, 1e308) == min(max(logits), 1e308)]
    assume(len(best) == logits.count(max(logits)))
    assert nearly.nonzero()[:, 0].tolist() == best
    assert probabilities(torch.tensor([logits], dtype=torch.float64), Sampling(temperature=0))[0, best[0]] == 1


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits_once() -> None:
    p = probabilities(torch.tensor([[2.0, -2.0, 2.0, -2.0]]), Sampling(repetition_penalty=2.0), [[0, 1, 0, 0]])
    assert p[0].log().tolist() == pytest.approx(torch.tensor([1.0, -4.0, 2.0, -2.0]).log_softmax(-1).tolist())


def test_rows_do_not_touch_each_other() -> None:
    logits = torch.randn(5, 30, generator=torch.Generator().manual_seed(1))
    sampling = Sampling(0.8, 9, 0.7, 0.05, 1.2)
    previous = [[1, 2], [3], [], [29], [0, 0]]
    together = probabilities(logits, sampling, previous)
    for row in range(5):
        assert torch.equal(probabilities(logits[row : row + 1], sampling, [previous[row]])[0], together[row])


@pytest.mark.parametrize("row", [[math.nan, 1.0], [-INF, -INF]])
def test_logits_that_allow_nothing_are_an_error(row: list[float]) -> None:
    with pytest.raises(InputError, match="diverged"):
        probabilities(torch.tensor([[0.0, 1.0], row]), Sampling(temperature=0))


@pytest.mark.parametrize(
    "option",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": INF},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": math.nan},
        {"min_p": -0.1},
        {"min_p": 1.5},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": INF},
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_sentence(option: dict[str, float]) -> None:
    with pytest.raises(InputError) as error:
        Sampling(**option)  # type: ignore[arg-type]
    assert str(error.value).count(". ") == 0 and "must be" in str(error.value)


def test_draws_follow_the_probabilities_and_never_take_what_is_ruled_out() -> None:
    p = torch.tensor([0.0, 0.5, 0.0, 0.2, 0.3, 0.0], dtype=torch.float64)
    rows = 20_000
    generator = np.random.default_rng(3)
    drawn = sample(p.expand(rows, -1).contiguous(), [generator] * rows)
    counts = torch.bincount(drawn, minlength=6) / rows
    assert (counts[p == 0] == 0).all()
    assert (counts - p).abs().max() < 0.015  # over four standard deviations


class Fixed:
    """A generator that always gives the same number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


@given(LOGITS, SAMPLING, st.sampled_from([0.0, 1e-300, 0.5, 1 - 2**-53]))
def test_even_the_first_and_the_last_number_draw_a_possible_token(
    logits: list[float], sampling: Sampling, number: float
) -> None:
    p = probabilities(torch.tensor([logits]), sampling)
    assert p[0, sample(p, [Fixed(number)])] > 0  # type: ignore[list-item]
