"""The open and the fast form of attention and of the recurrent cells agree, and gradients with them (rule 1).

Attention has a third witness: sums written out with Python numbers, which share nothing with either form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import seeds
from torch import Tensor

from lookback.nn.attention import attention, attention_scores, attention_weights, mix
from lookback.nn.mask import At, Causal, Padding, Present, Readable, Rule, SameDocument, SlidingWindow
from lookback.nn.recurrent import Carried, CellKind, Recurrence, Segments

BOUND = {torch.float64: 1e-12, torch.float32: 1e-5}
precisions = pytest.mark.parametrize("dtype", list(BOUND), ids=["fp64", "fp32"])


def assert_equal_within(actual: Tensor, expected: Tensor) -> None:
    bound = BOUND[expected.dtype]
    torch.testing.assert_close(actual, expected, rtol=bound, atol=bound)


@dataclass(frozen=True)
class Heads:
    """Random queries, keys and values, and a direction in which the output is differentiated."""

    q: Tensor
    k: Tensor
    v: Tensor
    direction: Tensor
    scale: float

    @classmethod
    def draw(cls, seed: int, batch: int, heads: int, group: int, queries: int, keys: int, dtype: torch.dtype) -> Heads:
        generator = torch.Generator().manual_seed(seed)
        shapes = [(heads, queries), (heads // group, keys), (heads // group, keys), (heads, queries)]
        drawn = [torch.randn(batch, n, t, 4, generator=generator, dtype=dtype) for n, t in shapes]
        return cls(*(t.requires_grad_() for t in drawn[:3]), drawn[3], scale=0.7)

    def fast(self, readable: Readable) -> Tensor:
        return attention(self.q, self.k, self.v, readable, scale=self.scale)

    def opened(self, readable: Readable) -> Tensor:
        return mix(attention_weights(attention_scores(self.q, self.k, scale=self.scale), readable), self.v)

    def gradients(self, out: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((out * self.direction).sum(), (self.q, self.k, self.v))


@st.composite
def dense_masks(draw: st.DrawFn) -> Readable:
    """What a model without padding meets: the last T positions of S, or, without a causal rule, any."""
    keys = draw(st.integers(1, 9))
    queries = draw(st.just(1) | st.just(keys) | st.integers(1, keys))
    window = draw(st.none() | st.integers(1, 10))
    rules: tuple[Rule, ...] = () if window is None else (Causal(), SlidingWindow(window))
    rules = rules or draw(st.sampled_from([(), (Causal(),)]))
    positions = torch.arange(keys)[None]
    return Readable(rules, At(positions[:, keys - queries :], positions, dense=True))


@st.composite
def scattered_masks(draw: st.DrawFn, batch: int) -> Readable:
    """Any positions at all, holes, documents and rows with nothing to read among them."""
    queries, keys = draw(st.integers(1, 6)), draw(st.integers(1, 7))

    def numbers(count: int, low: int, high: int) -> Tensor:
        rows = st.lists(st.integers(low, high), min_size=count, max_size=count)
        return torch.tensor([draw(rows) for _ in range(batch)])

    window = draw(st.integers(1, 5))
    rules = draw(st.lists(st.sampled_from([Causal(), SlidingWindow(window), Present(), SameDocument()]), unique=True))
    at = At(numbers(queries, -1, 8), numbers(keys, -1, 8), numbers(queries, 0, 2), numbers(keys, 0, 2))
    return Readable(tuple(rules), at)


def may_read(rule: Rule, query: int, key: int, same_document: bool) -> bool:
    """The rules in words: the definition that masks are held to."""
    match rule:
        case Causal():
            return key <= query
        case SlidingWindow(width):
            return query - key < width
        case Present():
            return query != -1 and key != -1
        case SameDocument():
            return same_document
    raise AssertionError(rule)


def by_hand(heads: Heads, readable: Readable) -> tuple[Tensor, Tensor]:
    """Weights and output, one number at a time."""
    at = readable.at
    q, k, v = heads.q.detach(), heads.k.detach(), heads.v.detach()
    batch, count, queries, _ = q.shape
    keys, group = k.shape[2], count // k.shape[1]
    weights, out = q.new_zeros(batch, count, queries, keys), torch.zeros_like(q)
    for b, n, t in ((b, n, t) for b in range(batch) for n in range(count) for t in range(queries)):
        row = b if at.query.shape[0] > 1 else 0
        allowed = []
        for s in range(keys):
            same = at.query_document is None or bool(at.query_document[row, t] == at.key_document[row, s])
            query, key = int(at.query[row, t]), int(at.key[row, s])
            if all(may_read(rule, query, key, same) for rule in readable.rules):
                allowed.append(s)
        scores = {s: float(q[b, n, t] @ k[b, n // group, s]) * heads.scale for s in allowed}
        total = sum(math.exp(x) for x in scores.values())
        for s, x in scores.items():
            weights[b, n, t, s] = math.exp(x) / total
            out[b, n, t] += weights[b, n, t, s] * v[b, n // group, s]
    return weights, out


def check_attention(heads: Heads, readable: Readable) -> None:
    weights, expected = by_hand(heads, readable)
    opened, fast = heads.opened(readable), heads.fast(readable)
    actual = attention_weights(attention_scores(heads.q, heads.k, scale=heads.scale), readable)
    assert_equal_within(actual, weights)
    assert torch.equal(actual == 0, weights == 0)
    assert_equal_within(opened, expected)
    assert_equal_within(fast, expected)
    assert_equal_within(fast, opened)
    for one, other in zip(heads.gradients(opened), heads.gradients(fast), strict=True):
        assert one.isfinite().all()
        assert_equal_within(other, one)


grouped = st.sampled_from([(1, 1), (2, 1), (4, 2), (6, 3), (3, 3)])


@precisions
@given(readable=dense_masks(), batch=st.integers(1, 2), heads=grouped, seed=seeds)
def test_attention_in_dense_layouts(
    readable: Readable, batch: int, heads: tuple[int, int], seed: int, dtype: torch.dtype
) -> None:
    queries, keys = readable.at.query.shape[1], readable.at.key.shape[1]
    check_attention(Heads.draw(seed, batch, *heads, queries, keys, dtype), readable)


@precisions
@given(data=st.data(), batch=st.integers(1, 2), heads=grouped, seed=seeds)
def test_attention_under_any_mask(
    data: st.DataObject, batch: int, heads: tuple[int, int], seed: int, dtype: torch.dtype
) -> None:
    readable = data.draw(scattered_masks(batch))
    queries, keys = readable.at.query.shape[1], readable.at.key.shape[1]
    check_attention(Heads.draw(seed, batch, *heads, queries, keys, dtype), readable)


def check_cell(
    kind: CellKind, segments: Segments | None, seed: int, batch: int, length: int, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(seed)
    layer = Recurrence(5, kind).to(dtype)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.5, generator=generator)
    x, *begin = (
        torch.randn(*shape, 5, generator=generator, dtype=dtype).requires_grad_()
        for shape in ((batch, length), (batch,), (batch,))
    )
    carried = Carried(begin[0], begin[1] if kind == "lstm" else None)
    inputs = [x, *(c for c in carried if c is not None), *layer.parameters()]
    results = []
    for form in (layer.steps, layer.forward):
        out, after = form(x, carried, segments)
        ends = [out, *(c for c in after if c is not None)]
        # Each output weighs differently in the loss, so that a mix-up among them shows in the gradients.
        weights = [torch.linspace(0.5, 1.5, e.numel(), dtype=dtype).view_as(e) for e in ends]
        loss = sum((e * w).sum() for e, w in zip(ends, weights, strict=True))
        gradients = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
        results.append([*ends, *gradients])
    for opened, fast in zip(*results, strict=True):
        assert opened.isfinite().all()
        assert_equal_within(fast, opened)


cells = pytest.mark.parametrize("kind", ["rnn_tanh", "rnn_relu", "lstm", "gru"])


@st.composite
def segmentations(draw: st.DrawFn) -> tuple[Segments | None, int, int]:
    """None, padding on either side (empty rows among them), or documents; with the batch size and the length."""
    batch, length = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    padding = documents = None
    match draw(st.sampled_from(["plain", "padding", "documents"])):
        case "plain":
            return None, batch, length
        case "padding":
            left = tuple(draw(st.integers(0, length)) for _ in range(batch))
            padding = Padding(length, left, tuple(draw(st.integers(0, length - n)) for n in left))
        case "documents":
            flags = st.lists(st.integers(0, 1), min_size=length, max_size=length)
            documents = torch.tensor([draw(flags) for _ in range(batch)])
    return Segments.of(batch, length, padding, documents, torch.device("cpu")), batch, length


@cells
@given(segmented=segmentations(), seed=seeds)
def test_recurrent_cells(kind: CellKind, segmented: tuple[Segments | None, int, int], seed: int) -> None:
    check_cell(kind, *segmented[:1], seed, *segmented[1:], torch.float64)


@cells
def test_recurrent_cells_in_fp32(kind: CellKind) -> None:
    padding = Padding(6, (0, 2, 6), (1, 0, 0))
    check_cell(kind, Segments.of(3, 6, padding, None, torch.device("cpu")), 1, 3, 6, torch.float32)


@pytest.mark.slow
@settings(max_examples=250)
@given(data=st.data(), segmented=segmentations(), seed=seeds)
def test_both_at_length(data: st.DataObject, segmented: tuple[Segments | None, int, int], seed: int) -> None:
    readable = data.draw(dense_masks() | scattered_masks(2))
    queries, keys = readable.at.query.shape[1], readable.at.key.shape[1]
    check_attention(Heads.draw(seed, 2, *data.draw(grouped), queries, keys, torch.float64), readable)
    kind = data.draw(st.sampled_from(["rnn_tanh", "rnn_relu", "lstm", "gru"]))
    check_cell(kind, *segmented[:1], seed, *segmented[1:], torch.float64)
