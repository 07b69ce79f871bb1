"""Recurrent steps worked out by hand, and how a batch is cut into runs. (Open = fast is in tests/equivalence.)"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lookback.nn.mask import Padding
from lookback.nn.recurrent import Carried, Recurrence, Segments, gru_step, lstm_step, rnn_step

CPU = torch.device("cpu")


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def row(*numbers: float) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def test_an_rnn_step() -> None:
    x, h = row(0.5, -2.0), row(0.25, 1.0)
    assert rnn_step(x, h, "rnn_tanh").flatten().tolist() == pytest.approx([math.tanh(0.75), math.tanh(-1.0)])
    assert rnn_step(x, h, "rnn_relu").flatten().tolist() == [0.75, 0.0]


def test_an_lstm_step() -> None:
    i, f, g, o, c = 0.1, -0.4, 0.8, 1.2, 0.7
    hidden, cell = lstm_step(row(i, f, g, o), row(0.1, 0.1, 0.1, 0.1), row(c), None, 0)
    new = sigmoid(f + 0.1) * c + sigmoid(i + 0.1) * math.tanh(g + 0.1)
    assert cell.item() == pytest.approx(new, abs=1e-12)
    assert hidden.item() == pytest.approx(sigmoid(o + 0.1) * math.tanh(new), abs=1e-12)


def test_a_gru_step() -> None:
    r_x, z_x, n_x, r_h, z_h, n_h, h = 0.3, -0.6, 0.9, 0.2, 0.4, -0.5, 0.7
    r, z = sigmoid(r_x + r_h), sigmoid(z_x + z_h)
    expected = (1 - z) * math.tanh(n_x + r * n_h) + z * h
    actual = gru_step(row(r_x, z_x, n_x), row(r_h, z_h, n_h), row(h), None, 0)
    assert actual.item() == pytest.approx(expected, abs=1e-12)


def test_padding_is_left_out_and_documents_cut() -> None:
    padded = Segments.of(3, 4, Padding(4, (1, 0, 4), (0, 2, 0)), None, CPU)
    assert padded.order.tolist() == [1, 4, 2, 5, 3]  # row · 4 + column, step by step, the longer run first
    assert padded.sizes.tolist() == [2, 2, 1]
    assert padded.row.tolist() == [0, 1]
    assert padded.carries.flatten().tolist() == [True, True]
    assert padded.last.tolist() == [0, 1, -1]

    cut = Segments.of(1, 6, None, torch.tensor([[7, 7, 0, 7, 7, 7]]), CPU)
    assert cut.fresh.tolist() == [[False, False, True, True, False, False]]
    assert cut.order.tolist() == [3, 0, 2, 4, 1, 5]
    assert cut.sizes.tolist() == [3, 2, 1]
    assert cut.carries.flatten().tolist() == [False, True, False]
    assert cut.last.tolist() == [0]


@pytest.mark.parametrize("kind", ["rnn_tanh", "lstm", "gru"])
def test_a_row_without_tokens_keeps_its_state(kind: str) -> None:
    layer = Recurrence(3, kind)  # type: ignore[arg-type]
    before = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0))
    carried = Carried(before[0], before[1] if kind == "lstm" else None)
    for padding in (Padding(4, (4, 0), (0, 1)), Padding(4, (0, 2), (4, 0)), Padding(4, (4, 4), (0, 0))):
        segments = Segments.of(2, 4, padding, None, CPU)
        for form in (layer.forward, layer.steps):
            out, after = form(torch.ones(2, 4, 3), carried, segments)
            assert not out[~padding.real()].any()
            for old, new in zip(carried, after, strict=True):
                if old is not None:
                    assert torch.equal(old[0], new[0])
                    assert torch.equal(old[1], new[1]) is (padding.counts[1] == 0)
