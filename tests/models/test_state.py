"""The slot that a KV cache and a hidden vector both fill: its bytes, its growth, its copies."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.models import HiddenState, KVCache, LanguageModel, build, configure
from lookback.nn.mask import Padding


def gpt(**changes: object) -> LanguageModel:
    return build(configure("gpt", 20, preset="tiny", heads=4, context=64, **changes), seed=1).eval()


def ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, 20, (batch, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("kv_heads", [4, 2, 1], ids=["multi-head", "grouped-query", "multi-query"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_bytes_of_the_tokens_follow_the_formula(kv_heads: int, dtype: torch.dtype) -> None:
    """2 · layers · key/value heads · head width · bytes a number, for each token."""
    model = gpt(kv_heads=kv_heads).to(dtype)
    state = model.start(2, capacity=3)
    assert isinstance(state, KVCache)
    assert state.nbytes_used == 0
    a_token = 2 * 2 * kv_heads * 8 * dtype.itemsize
    for length in (5, 1, 6):
        model.encode(ids(2, length), state=state)
        assert state.nbytes_used == a_token * sum(state.lengths)
        assert state.nbytes >= state.nbytes_used
    model.encode(ids(2, 4), state=state, padding=Padding(4, (0, 1), (4, 1)))
    assert state.lengths == (12, 14)
    assert state.nbytes_used == a_token * 26


def test_a_window_bounds_the_bytes_of_its_layers() -> None:
    model = gpt(sliding_window=5, windowed_layers=(1,))
    state = model.start(1)
    assert isinstance(state, KVCache)
    for length in (3, 9, 1, 20):
        model.encode(ids(1, length), state=state)
        tokens = state.lengths[0] + min(5, state.lengths[0])
        assert state.nbytes_used == tokens * 2 * 4 * 8 * 4
    assert [keys.shape[2] for keys in state.keys] == [64, 5]


def test_capacity_doubles_up_to_the_context() -> None:
    model = gpt()
    state = model.start(1, capacity=1)
    assert isinstance(state, KVCache)
    seen = []
    for _ in range(64):
        model.encode(ids(1, 1), state=state)
        seen.append(state.keys[0].shape[2])
    assert sorted(set(seen)) == [1, 2, 4, 8, 16, 32, 64]
    assert all(slots < 2 * (length + 1) for length, slots in enumerate(seen, start=1))
    with pytest.raises(InputError):
        model.encode(ids(1, 1), state=state)
    assert model.start(1, capacity=1000).keys[0].shape[2] == 64
    other = model.start(1, capacity=1)
    model.encode(ids(1, 33), state=other)
    assert other.keys[0].shape[2] == 33


@pytest.mark.parametrize("capacity", [1, 20])
def test_slots_not_used_hold_zeros(capacity: int) -> None:
    """From the start and after growing."""
    model = gpt()
    state = model.start(3, capacity=capacity)
    assert isinstance(state, KVCache)
    model.encode(ids(3, 6), state=state, padding=Padding(6, (0, 2, 6), (1, 0, 0)))
    model.encode(ids(3, 1), state=state)
    assert state.keys[0].shape[2] > max(state.lengths)
    for buffer in (*state.keys, *state.values):
        for row, length in enumerate(state.lengths):
            assert buffer[row, :, :length].any(dim=-1).all()
            assert not buffer[row, :, length:].any()


@pytest.mark.parametrize(("family", "vectors"), [("rnn", 1), ("gru", 1), ("lstm", 2)])
def test_a_hidden_state_never_grows(family: str, vectors: int) -> None:
    model = build(configure(family, 20, preset="tiny"), seed=1).eval()
    state = model.start(3, capacity=1)
    assert isinstance(state, HiddenState)
    for length in (1, 7, 100):
        assert state.nbytes == 3 * 2 * vectors * 32 * 4  # rows · layers · vectors · width · bytes
        model.encode(ids(3, length), state=state)
    assert state.lengths == (108,) * 3
    assert state.nbytes == 3 * 2 * vectors * 32 * 4


@pytest.mark.parametrize("family", ["gpt", "rnn", "lstm", "gru"])
@given(rows=st.lists(st.integers(0, 2), max_size=5))
def test_select_copies_rows(family: str, rows: list[int]) -> None:
    model = build(configure(family, 20, preset="tiny"), seed=1).eval()
    state = model.start(3, capacity=2)
    model.encode(ids(3, 4), state=state, padding=Padding(4, (0, 1, 2), (0, 0, 0)))
    before = [tensor.clone() for tensor in tensors(state)]
    chosen = state.select(rows)
    assert chosen.lengths == tuple((4, 3, 2)[row] for row in rows)
    for old, new in zip(tensors(state), tensors(chosen), strict=True):
        assert torch.equal(new, old[torch.tensor(rows, dtype=torch.long)])
        new.fill_(7.0)
    assert all(torch.equal(old, new) for old, new in zip(before, tensors(state), strict=True))
    assert state.nbytes * len(rows) == chosen.nbytes * 3


def tensors(state: object) -> list[torch.Tensor]:
    if isinstance(state, KVCache):
        return [*state.keys, *state.values]
    assert isinstance(state, HiddenState)
    return [t for layer in state.layers for t in layer if t is not None]


@pytest.mark.parametrize("family", ["gpt", "rnn", "lstm", "gru"])
def test_a_forward_that_breaks_off_counts_nothing(family: str) -> None:
    """So the same chunk can be given again."""

    class Breaks:
        def __call__(self, name: str, value: torch.Tensor, step: int | None = None) -> torch.Tensor:
            if name == "hidden":
                raise InterruptedError
            return value

        def wants(self, name: str) -> bool:
            return False

        def inside(self, prefix: str) -> Breaks:
            return self

    model = build(configure(family, 20, preset="tiny"), seed=1).eval()
    state, whole = model.start(1), ids(1, 9)
    model.encode(whole[:, :5], state=state)
    with pytest.raises(InterruptedError):
        model.encode(whole[:, 5:], state=state, tap=Breaks())
    assert state.lengths == (5,)
    hidden, _ = model.encode(whole[:, 5:], state=state)
    torch.testing.assert_close(hidden, model.encode(whole)[0][:, 5:], rtol=0, atol=1e-5)
