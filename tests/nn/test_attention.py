"""Attention: forbidden weights are 0 whatever the scores, heads are shared in groups, and only one place does it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import lookback
from lookback.nn.attention import Attention, attention, attention_scores, attention_weights, mix
from lookback.nn.mask import At, Causal, Padding, Present, Readable, SlidingWindow
from lookback.nn.position import Rotation

SOURCE = Path(lookback.__file__).parent


def dense(length: int) -> Readable:
    positions = torch.arange(length)[None]
    return Readable((Causal(),), At(positions, positions, dense=True))


def with_gaps() -> Readable:
    """Queries 0 and 1 at nothing and at position 5; keys at 0, nothing, 5 and 7."""
    return Readable((Present(), Causal(), SlidingWindow(4)), At(torch.tensor([[-1, 5]]), torch.tensor([[0, -1, 5, 7]])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e4, 1e30])
def test_forbidden_weights_are_exactly_0_whatever_the_scores(size: float, dtype: torch.dtype) -> None:
    for forbidden in (size, -size):
        scores = torch.full((1, 2, 2, 4), forbidden, dtype=dtype)
        scores[..., 2] = -forbidden
        weights = attention_weights(scores, with_gaps())
        assert torch.equal(weights[0, :, 0], torch.zeros(2, 4, dtype=dtype))
        assert torch.equal(weights[0, :, 1], torch.tensor([[0, 0, 1, 0]] * 2, dtype=dtype))


@given(
    scores=st.lists(st.floats(-1e30, 1e30) | st.sampled_from([1e30, -1e30, 0.0]), min_size=25, max_size=25),
    window=st.integers(1, 5),
    blank=st.integers(0, 4),
)
def test_rows_sum_to_1_or_0(scores: list[float], window: int, blank: int) -> None:
    positions = torch.arange(5)[None].clone()
    positions[0, blank] = -1
    readable = Readable((Present(), Causal(), SlidingWindow(window)), At(positions, positions))
    weights = attention_weights(torch.tensor(scores, dtype=torch.float64).view(1, 1, 5, 5), readable)[0, 0]
    assert torch.equal(weights[~readable.tensor[0, 0]], torch.zeros(int((~readable.tensor).sum()), dtype=torch.float64))
    for t, row in enumerate(weights):
        assert row.sum().item() == (0.0 if t == blank else pytest.approx(1.0, abs=1e-12))


@pytest.mark.parametrize("size", [1e4, 1e18])
def test_the_fast_form_gives_forbidden_keys_nothing_either(size: float) -> None:
    """Scores of ±size² reach the kernel; the values of forbidden keys would show at once."""
    q, k = torch.full((1, 1, 2, 1), size), torch.full((1, 1, 4, 1), size)
    k[0, 0, 2] = -size
    v = torch.tensor([1e6, 1e6, 3.0, 1e6]).view(1, 1, 4, 1)
    assert attention(q, k, v, with_gaps(), scale=1.0).flatten().tolist() == [0.0, 3.0]


def test_the_kernel_never_sees_an_empty_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it makes of one differs by device and version: zeros, NaN, or NaN in the gradients only."""
    masks = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def watched(*heads: Tensor, **options: object) -> Tensor:
        masks.append(options["attn_mask"])
        return kernel(*heads, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    assert with_gaps().tensor.any(-1).flatten().tolist() == [False, True]
    out = attention(torch.ones(1, 1, 2, 1), torch.ones(1, 1, 4, 1), torch.ones(1, 1, 4, 1), with_gaps(), scale=1.0)
    assert masks[0].any(-1).all()
    assert out.flatten().tolist() == [0.0, 1.0]


def test_query_heads_share_key_heads_in_consecutive_groups() -> None:
    """With 4 heads on 2: heads 0 and 1 read head 0, heads 2 and 3 read head 1 (Ainslie et al. 2023)."""
    q, k = torch.zeros(1, 4, 3, 2), torch.zeros(1, 2, 3, 2)
    v = torch.stack((torch.full((3, 2), 10.0), torch.full((3, 2), 20.0)))[None]
    weights = attention_weights(attention_scores(q, k, scale=1.0), dense(3))
    for out in (attention(q, k, v, dense(3), scale=1.0), mix(weights, v)):
        assert out[0, :, 0, 0].tolist() == [10.0, 10.0, 20.0, 20.0]


def build(**options: object) -> Attention:
    torch.manual_seed(0)
    return Attention(6, 2, 2, 4, **options).double().eval()  # type: ignore[arg-type]


X = torch.randn(2, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_tied_queries_and_keys_give_symmetric_scores() -> None:
    tied, separate = build(tied_qk=True), build()
    assert tied.key is None
    assert sum(p.numel() for p in separate.parameters()) - sum(p.numel() for p in tied.parameters()) == 6 * 8 + 8
    for layer, symmetric in ((tied, True), (separate, False)):
        q, k, _ = layer.project(X)
        scores = attention_scores(q, k, scale=layer.scale)
        assert torch.allclose(scores, scores.mT, rtol=0, atol=1e-12) is symmetric


def test_scores_are_divided_by_the_root_of_the_head_width_unless_unscaled() -> None:
    assert build().scale == 0.5
    assert build(scaled=False).scale == 1.0
    q, k = torch.ones(1, 1, 1, 4), torch.ones(1, 1, 1, 4)
    assert attention_scores(q, k, scale=build().scale).item() == 2.0


def test_normed_queries_and_keys_have_unit_mean_square() -> None:
    q, k, _ = build(normed_qk=1e-12).project(X)
    for t in (q, k):
        torch.testing.assert_close(t.square().mean(-1), torch.ones(2, 2, 5, dtype=torch.float64))


def test_the_norm_comes_before_the_rotation() -> None:
    layer = build(normed_qk=1e-6)
    rotation = Rotation.at(torch.arange(5)[None], 4, 10.0, torch.float64)
    (q, k, _), (turned_q, turned_k, _) = layer.project(X), layer.project(X, rotation)
    assert torch.equal(turned_q, rotation(q))
    assert torch.equal(turned_k, rotation(k))


def test_keys_and_values_at_padding_are_zero_before_they_are_kept() -> None:
    layer, kept = build(), []
    padding = Padding(5, (1, 0), (0, 2))

    def keep(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        kept.extend((k, v))
        return k, v

    x = X.masked_fill(~padding.real()[:, :, None], torch.nan)
    positions = torch.where(padding.real(), torch.arange(5), -1)
    out = layer(x, Readable((Present(), Causal()), At(positions, positions)), real=padding.real(), keep=keep)
    for t in kept:
        assert not t.transpose(1, 2)[~padding.real()].any()
        assert t.transpose(1, 2)[padding.real()].all()
    assert out.isfinite().all()


def test_dropout_is_for_training_only() -> None:
    layer = build(dropout=0.5)
    assert torch.equal(layer(X, dense(5)), layer(X, dense(5)))
    layer.train()
    assert not torch.equal(layer(X, dense(5)), layer(X, dense(5)))


def calls_in(path: Path) -> list[tuple[str, str]]:
    """(function around it, name called) for every call in a file."""
    found: list[tuple[str, str]] = []

    def walk(node: ast.AST, inside: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                name = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
                found.append((inside, name))
            walk(child, child.name if isinstance(child, ast.FunctionDef) else inside)

    walk(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def test_attention_is_computed_in_one_place() -> None:
    """No second softmax, no second kernel, and no mask that hangs on T (design rules 1 and 2)."""
    files = sorted(p for room in ("nn", "models") for p in (SOURCE / room).rglob("*.py"))
    assert len(files) > 10
    calls = [(path.name, *call) for path in files for call in calls_in(path)]

    def places(*names: str) -> set[tuple[str, str]]:
        return {(file, inside) for file, inside, name in calls if name.lower() in names}

    assert places("softmax", "_softmax", "softmin", "log_softmax", "logsumexp", "exp") == {
        ("attention.py", "attention_weights")
    }
    assert [c for c in calls if "softmax" in c[2].lower()] == [("attention.py", "attention_weights", "softmax")]
    assert places("scaled_dot_product_attention") == {("attention.py", "attention")}
    assert not places("multiheadattention", "multi_head_attention_forward", "flex_attention", "transformerencoderlayer")
    assert not places("tril", "triu", "tril_indices", "triu_indices", "register_buffer")
