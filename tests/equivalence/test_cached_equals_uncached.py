"""A text read in chunks through a state gives the logits of the text read at once (design rules 2, 3 and 13)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import (
    DTYPES,
    Ragged,
    assert_near,
    causal_configs,
    chunkings,
    logits_of,
    ragged_batches,
    random_ids,
    random_model,
    recurrent_configs,
    seeds,
    transformer_configs,
)
from recorder import Editor
from torch import Tensor

from lookback.models import LanguageModel, build, configure
from lookback.models.language_model import Config
from lookback.models.state import State

families = pytest.mark.parametrize("configs", [transformer_configs(), recurrent_configs], ids=["gpt", "recurrent"])
precisions = pytest.mark.parametrize("dtype", DTYPES, ids=["fp64", "fp32"])


def in_chunks(model: LanguageModel, ids: Tensor, sizes: list[int], capacity: int) -> tuple[Tensor, State]:
    state = model.start(ids.shape[0], capacity=capacity)
    logits = [model(chunk, state=state)[0] for chunk in ids.split(sizes, dim=1)]
    return torch.cat(logits, dim=1), state


def check_chunks(data: st.DataObject, config: Config, seed: int, dtype: torch.dtype) -> None:
    model = random_model(config, seed, dtype)
    batch, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 18))
    ids = random_ids(seed, batch, length)
    logits, state = in_chunks(model, ids, data.draw(chunkings(length)), data.draw(st.integers(1, 20)))
    assert_near(logits, model(ids)[0])
    assert state.lengths == (length,) * batch


@families
@precisions
@given(data=st.data(), seed=seeds)
def test_any_chunking_from_any_capacity(
    configs: st.SearchStrategy[Config], dtype: torch.dtype, data: st.DataObject, seed: int
) -> None:
    check_chunks(data, data.draw(configs), seed, dtype)


@pytest.mark.slow
@families
@settings(max_examples=250)
@given(data=st.data(), seed=seeds)
def test_any_chunking_from_any_capacity_at_length(
    configs: st.SearchStrategy[Config], data: st.DataObject, seed: int
) -> None:
    check_chunks(data, data.draw(configs), seed, torch.float64)


def check_ragged(config: Config, batch: Ragged, capacity: int, seed: int, dtype: torch.dtype) -> None:
    model = random_model(config, seed, dtype)
    state = model.start(len(batch.rows), capacity=capacity)
    outputs = [
        model(ids, state=state, padding=padding)[0] for ids, padding in zip(batch.chunks(), batch.paddings, strict=True)
    ]
    assert all(out.isfinite().all() for out in outputs)
    for row, logits in zip(batch.rows, batch.unpad(outputs), strict=True):
        assert_near(logits, logits_of(model, row))
    assert state.lengths == tuple(len(row) for row in batch.rows)


@families
@precisions
@given(data=st.data(), batch=ragged_batches(), capacity=st.integers(1, 20), seed=seeds)
def test_rows_of_different_lengths_in_padded_chunks(
    configs: st.SearchStrategy[Config],
    dtype: torch.dtype,
    data: st.DataObject,
    batch: Ragged,
    capacity: int,
    seed: int,
) -> None:
    check_ragged(data.draw(configs), batch, capacity, seed, dtype)


@pytest.mark.slow
@families
@settings(max_examples=250)
@given(data=st.data(), batch=ragged_batches(), capacity=st.integers(1, 20), seed=seeds)
def test_rows_of_different_lengths_in_padded_chunks_at_length(
    configs: st.SearchStrategy[Config], data: st.DataObject, batch: Ragged, capacity: int, seed: int
) -> None:
    check_ragged(data.draw(configs), batch, capacity, seed, torch.float64)


@families
@given(data=st.data(), batch=ragged_batches(steps=1), seed=seeds)
def test_unpadded_steps_after_a_padded_prefill(
    configs: st.SearchStrategy[Config], data: st.DataObject, batch: Ragged, seed: int
) -> None:
    """What generation does: prompts of different lengths, then the same number of tokens for every row."""
    model = random_model(data.draw(configs), seed)
    rows = len(batch.rows)
    more = random_ids(seed, rows, data.draw(st.integers(1, 9)))
    sizes = data.draw(chunkings(more.shape[1]))
    state = model.start(rows, capacity=data.draw(st.integers(1, 4)))
    model.encode(batch.chunks()[0], state=state, padding=batch.paddings[0])
    logits = torch.cat([model(chunk, state=state)[0] for chunk in more.split(sizes, dim=1)], dim=1)
    for row, ids in enumerate(batch.rows):
        assert_near(logits[row], logits_of(model, torch.cat((ids, more[row])))[len(ids) :])


@families
@given(data=st.data(), batch=ragged_batches(steps=1), seed=seeds)
def test_selected_rows_go_on_and_leave_the_old_state_as_it_was(
    configs: st.SearchStrategy[Config], data: st.DataObject, batch: Ragged, seed: int
) -> None:
    model = random_model(data.draw(configs), seed)
    old = model.start(len(batch.rows), capacity=data.draw(st.integers(1, 8)))
    model.encode(batch.chunks()[0], state=old, padding=batch.paddings[0])
    chosen = data.draw(st.lists(st.integers(0, len(batch.rows) - 1), min_size=1, max_size=6))
    new = old.select(chosen)
    assert new.lengths == tuple(len(batch.rows[row]) for row in chosen)
    for state, rows, salt in ((new, chosen, 1), (old, list(range(len(batch.rows))), 2)):
        more = random_ids(seed + salt, len(rows), 3)
        logits, _ = model(more, state=state)
        for place, row in enumerate(rows):
            ids = batch.rows[row]
            assert_near(logits[place], logits_of(model, torch.cat((ids, more[place])))[len(ids) :])


@given(config=causal_configs, seed=seeds)
def test_a_state_under_inference_mode(config: Config, seed: int) -> None:
    model = random_model(config, seed)
    ids = random_ids(seed, 2, 9)
    with torch.inference_mode():
        logits, _ = in_chunks(model, ids, [4, 1, 1, 3], capacity=1)
    assert_near(logits.clone(), model(ids)[0])


def test_a_forward_that_broke_off_can_be_repeated() -> None:
    """Ctrl-C in the middle of a chunk leaves a sliding window's state as it was."""

    def breaks(value: Tensor) -> Tensor:
        raise KeyboardInterrupt

    model = build(configure("gpt", 30, preset="tiny", sliding_window=4), seed=1, dtype=torch.float64).eval()
    ids = torch.randint(0, 30, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        whole, _ = model(ids)
        state = model.start(2)
        model(ids[:, :9], state=state)
        with pytest.raises(KeyboardInterrupt):
            model(ids[:, 9:15], state=state, tap=Editor("layers.1.output", breaks))
        again, _ = model(ids[:, 9:15], state=state)
    torch.testing.assert_close(again, whole[:, 9:15], atol=1e-10, rtol=0)
