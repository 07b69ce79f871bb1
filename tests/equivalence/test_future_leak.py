"""Changing what comes later moves nothing earlier: not by rounding, by exactly 0 (rules 2 and 11)."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import (
    VOCABULARY,
    bidirectional_configs,
    causal_configs,
    random_ids,
    random_model,
    seeds,
)
from recorder import Recorder
from torch import Tensor

from lookback.models import RecurrentConfig
from lookback.models.language_model import Config
from lookback.nn.mask import Padding


def changed_after(ids: Tensor, place: int) -> Tensor:
    """Every token from column ``place`` on replaced by another one."""
    changed = ids.clone()
    changed[:, place:] = (changed[:, place:] + 1) % VOCABULARY
    return changed


@given(data=st.data(), config=causal_configs, seed=seeds, dtype=st.sampled_from([torch.float32, torch.float64]))
def test_later_tokens_move_nothing_earlier(data: st.DataObject, config: Config, seed: int, dtype: torch.dtype) -> None:
    model = random_model(config, seed, dtype)
    batch, length = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 16))
    place = data.draw(st.integers(1, length - 1))
    ids = random_ids(seed, batch, length)
    options = [
        {},
        {"documents": torch.arange(length).expand(batch, length) // 5},
        {"padding": Padding(length, (1,) * batch, (0,) * batch)},
        {"padding": Padding(length, (0,) * batch, (length - place - 1,) * batch)},
        {"tap": Recorder()},
    ]
    for given_too in options:
        before, after = (model(x, **given_too)[0] for x in (ids, changed_after(ids, place)))
        assert torch.equal(before[:, :place], after[:, :place])
    dead = isinstance(config, RecurrentConfig) and config.cell == "rnn_relu"  # ReLUs may give 0 whatever they read
    assert dead or not torch.equal(before[:, place:], after[:, place:])


@given(config=causal_configs, seed=seeds, place=st.integers(1, 9))
def test_later_tokens_move_nothing_in_a_chunk_after_a_state(config: Config, seed: int, place: int) -> None:
    model = random_model(config, seed)
    prompt, ids = random_ids(seed, 2, 7), random_ids(seed + 1, 2, 10)
    outputs = []
    for chunk in (ids, changed_after(ids, place)):
        state = model.start(2)
        model.encode(prompt, state=state)
        outputs.append(model(chunk, state=state)[0][:, :place])
    assert torch.equal(*outputs)


@given(config=causal_configs, seed=seeds)
def test_no_gradient_flows_back_from_the_future(config: Config, seed: int) -> None:
    """∂output_t/∂input_s is exactly 0 for every s > t."""
    model = random_model(config, seed)
    ids = random_ids(seed, 1, 8)
    embedded: list[Tensor] = []

    def watch(_: object, __: object, out: Tensor) -> Tensor:
        embedded.append(out.requires_grad_())
        return out

    handle = model.tokens.register_forward_hook(watch)
    hidden, _ = model.encode(ids)
    handle.remove()
    for t in range(8):
        (gradient,) = torch.autograd.grad(hidden[0, t].sum(), embedded[0], retain_graph=True)
        assert not gradient[0, t + 1 :].any()


@given(config=bidirectional_configs, seed=seeds)
def test_a_model_that_reads_both_sides_does_move(config: Config, seed: int) -> None:
    """The check on the checks above: without the mask they would fail."""
    model = random_model(config, seed)
    ids = random_ids(seed, 1, 8)
    before, after = (model(x)[0] for x in (ids, changed_after(ids, 7)))
    assert not torch.equal(before[:, :7], after[:, :7])


@given(config=causal_configs | bidirectional_configs, seed=seeds)
def test_rows_of_a_batch_do_not_touch(config: Config, seed: int) -> None:
    model = random_model(config, seed)
    ids = random_ids(seed, 3, 9)
    other = ids.clone()
    other[1] = (other[1] + 1) % VOCABULARY
    padding = Padding(9, (0, 2, 1), (3, 0, 0))
    for given_too in ({}, {"padding": padding}):
        before, after = (model(x, **given_too)[0] for x in (ids, other))
        assert torch.equal(before[[0, 2]], after[[0, 2]])


@given(data=st.data(), config=causal_configs | bidirectional_configs, seed=seeds)
def test_nan_in_padding_stays_there(data: st.DataObject, config: Config, seed: int) -> None:
    model = random_model(config, seed)
    ids = random_ids(seed, 3, 8) % (VOCABULARY - 1)
    left = tuple(data.draw(st.integers(0, 4)) for _ in range(3))
    right = tuple(data.draw(st.integers(0, 4)) for _ in range(3))
    padding = Padding(8, left, right)
    real = padding.real()
    ids[~real] = VOCABULARY - 1  # the id whose embedding becomes NaN; it stands in padding only
    clean, _ = model.encode(ids, padding=padding)
    model.tokens.weight[VOCABULARY - 1] = torch.nan
    for tap in (None, Recorder()):
        hidden, _ = model.encode(ids, padding=padding, tap=tap)
        torch.testing.assert_close(hidden[real], clean[real], rtol=0, atol=1e-12)


@given(data=st.data(), config=causal_configs, seed=seeds)
def test_nan_in_padding_never_enters_the_state(data: st.DataObject, config: Config, seed: int) -> None:
    model = random_model(config, seed)
    model.tokens.weight[VOCABULARY - 1] = torch.nan
    ids = random_ids(seed, 2, 6) % (VOCABULARY - 1)
    padding = Padding(6, (2, 0), (data.draw(st.integers(0, 4)), data.draw(st.integers(0, 6))))
    ids[~padding.real()] = VOCABULARY - 1
    state = model.start(2, capacity=data.draw(st.integers(1, 12)))
    model.encode(ids, state=state, padding=padding)
    more = random_ids(seed, 2, 3) % (VOCABULARY - 1)
    hidden, _ = model.encode(more, state=state)
    for row in range(2):
        whole = torch.cat((ids[row][padding.real()[row]], more[row]))
        alone, _ = model.encode(whole[None])
        torch.testing.assert_close(hidden[row], alone[0, -3:], rtol=0, atol=1e-10)
