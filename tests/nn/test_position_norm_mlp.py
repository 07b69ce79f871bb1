"""Positions, norms and the MLP against their formulas, with numbers worked out by hand or by `math`."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from lookback.nn.mlp import MLP
from lookback.nn.norm import norm
from lookback.nn.position import Rotation, sinusoidal


def test_sinusoidal_positions_are_the_papers() -> None:
    place = sinusoidal(torch.tensor([0, 1, 50]), 6)
    for row, p in zip(place, (0, 1, 50), strict=True):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)
    assert sinusoidal(torch.tensor([[3]]), 5).shape == (1, 1, 5)


def test_a_rotation_turns_entry_i_with_entry_i_plus_half() -> None:
    x = torch.tensor([1.0, 0.0, 0.0, 2.0]).view(1, 1, 1, 4)
    turned = Rotation.at(torch.tensor([[3]]), 4, 100.0, torch.float32)(x).flatten().tolist()
    slow = 3 / math.sqrt(100)
    expected = [math.cos(3), -2 * math.sin(slow), math.sin(3), 2 * math.cos(slow)]
    assert turned == pytest.approx(expected, abs=1e-6)


@given(at=st.integers(0, 500), distance=st.integers(0, 100), shift=st.integers(0, 500), seed=st.integers(0, 99))
def test_rotated_scores_depend_on_the_distance_only(at: int, distance: int, shift: int, seed: int) -> None:
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

    def score(query: int, key: int) -> float:
        turned = (Rotation.at(torch.tensor([[p]]), 8, 10_000.0, torch.float64) for p in (query, key))
        return sum((next(turned)(q) * next(turned)(k)).flatten().tolist())

    # Angles are fp32 numbers, as in the reference implementations: hence the bound.
    assert score(at + distance, at) == pytest.approx(score(at + distance + shift, at + shift), abs=2e-3)
    assert score(0, 0) == pytest.approx((q * k).sum().item(), abs=1e-12)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_are_their_formulas(kind: str) -> None:
    x = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    layer = norm(kind, 5, 0.1).double()  # type: ignore[arg-type]
    with torch.no_grad():
        layer.weight.copy_(torch.arange(5.0))
    if kind == "layer":
        mean = x.mean(-1, keepdim=True)
        expected = (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 0.1).sqrt() * torch.arange(5.0)
    else:
        expected = x / (x.square().mean(-1, keepdim=True) + 0.1).sqrt() * torch.arange(5.0)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)


def test_mlps_are_their_formulas() -> None:
    x = torch.randn(1, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for kind in ("gelu", "gelu_tanh", "swiglu"):
        layer = MLP(3, 4, kind).double()  # type: ignore[arg-type]
        into = F.linear(x, layer.input.weight, layer.input.bias)
        if kind == "swiglu":
            gate = F.linear(x, layer.gate.weight, layer.gate.bias)
            hidden = gate / (1 + (-gate).exp()) * into
        elif kind == "gelu":
            hidden = into * 0.5 * (1 + (into / math.sqrt(2)).erf())
        else:
            hidden = 0.5 * into * (1 + (math.sqrt(2 / math.pi) * (into + 0.044715 * into**3)).tanh())
        expected = F.linear(hidden, layer.output.weight, layer.output.bias)
        torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)
    assert MLP(3, 4, "swiglu", bias=False).gate.bias is None
