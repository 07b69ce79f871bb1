"""Looking changes nothing: no tap, an idle one and one that records everything give the same numbers (rule 4)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import (
    CONTEXT,
    VOCABULARY,
    all_configs,
    assert_near,
    causal_configs,
    random_ids,
    random_model,
    recurrent_configs,
    seeds,
    transformer_configs,
)
from recorder import Editor, Recorder, idle
from torch import Tensor

from lookback.models import RecurrentConfig, TransformerConfig, configure
from lookback.models.language_model import Config
from lookback.nn.mask import Padding

BOUND = {torch.float64: 1e-10, torch.float32: 1e-5}
PADDING = Padding(7, (0, 2, 0), (3, 0, 7))


@given(config=all_configs, seed=seeds, dtype=st.sampled_from(list(BOUND)), padded=st.booleans())
def test_recording_everything(config: Config, seed: int, dtype: torch.dtype, padded: bool) -> None:
    model = random_model(config, seed, dtype)
    ids, padding = random_ids(seed, 3, 7), PADDING if padded else None
    plain, _ = model(ids, padding=padding)
    tapped, _ = model(ids, padding=padding, tap=Recorder())
    scale = max(1.0, plain.abs().max().item())  # a bound relative to the logits: rnn_relu has no upper limit
    assert_near(tapped, plain, BOUND[dtype] * scale)


@given(config=all_configs, seed=seeds, padded=st.booleans())
def test_an_idle_tap_changes_no_bit(config: Config, seed: int, padded: bool) -> None:
    model = random_model(config, seed, torch.float32)
    ids, padding = random_ids(seed, 3, 7), PADDING if padded else None
    plain, _ = model(ids, padding=padding)
    tap = idle()
    assert torch.equal(model(ids, padding=padding, tap=tap)[0], plain)
    assert not tap.seen


@given(config=causal_configs, seed=seeds)
def test_recording_with_a_state(config: Config, seed: int) -> None:
    model = random_model(config, seed)
    ids = random_ids(seed, 2, 8)
    plain, idly, tapped = (model.start(2) for _ in range(3))
    for chunk in ids.split([5, 1, 2], dim=1):
        logits = model(chunk, state=plain)[0]
        assert_near(model(chunk, state=tapped, tap=Recorder())[0], logits)
        assert torch.equal(model(chunk, state=idly, tap=idle())[0], logits)


@settings(max_examples=10)
@given(config=all_configs, seed=seeds)
def test_replacing_an_activation_by_itself(config: Config, seed: int) -> None:
    """Any one name: the value goes out and comes back."""
    model = random_model(config, seed)
    ids = random_ids(seed, 2, 6)
    everything = Recorder()
    plain, _ = model(ids, tap=everything)
    for name in everything.names:
        edited, _ = model(ids, tap=Editor(name, lambda value: value.clone()))
        assert_near(edited, plain)


def names_of(config: Config) -> set[str]:
    """What a forward pass must offer to a tap, by the architecture."""
    per_layer: set[str]
    if isinstance(config, RecurrentConfig):
        gates = {
            "lstm": {"input_gate", "forget_gate", "candidate", "output_gate", "cell"},
            "gru": {"reset_gate", "update_gate", "candidate"},
        }
        per_layer = gates.get(config.cell, set()) | {"hidden"}
        names = {"embedding", "hidden", "logits"}
    else:
        assert isinstance(config, TransformerConfig)
        inner = ["input", "q", "k", "v", "scores", "masked_scores", "weights", "heads", "output"]
        inner += ["q_rotated", "k_rotated"] if config.positions == "rotary" else []
        per_layer = {f"attention.{part}" for part in inner}
        per_layer |= {"middle", "mlp.input", "mlp.hidden", "mlp.output", "output"}
        names = {"embedding.tokens", "embedding", "hidden", "logits"}
        names |= {"embedding.positions"} if config.positions in ("learned", "sinusoidal") else set()
    return names | {f"layers.{layer}.{part}" for layer in range(config.layers) for part in per_layer}


@given(config=all_configs, seed=seeds)
def test_every_name_is_offered(config: Config, seed: int) -> None:
    tap = Recorder()
    random_model(config, seed)(random_ids(seed, 1, 3), tap=tap)
    assert tap.names == names_of(config)


@given(config=transformer_configs(), seed=seeds)
def test_what_a_transformers_tap_sees(config: TransformerConfig, seed: int) -> None:
    model, tap = random_model(config, seed), Recorder()
    length = 9
    ids = random_ids(seed, 1, length)
    logits, _ = model(ids, tap=tap)
    assert torch.equal(tap.values("logits")[0], logits)
    hidden = tap.values("hidden")[0]
    assert torch.equal(model.unembed(hidden), logits)
    for layer in range(config.layers):
        weights, masked = (tap.values(f"layers.{layer}.attention.{part}")[0] for part in ("weights", "masked_scores"))
        reach = config.window(layer) or CONTEXT
        allowed = torch.tensor([[0 <= t - s < reach for s in range(length)] for t in range(length)])
        assert weights.shape == (1, config.heads, length, length)
        assert torch.equal(weights != 0, allowed.expand_as(weights))
        assert torch.equal(masked == -torch.inf, ~allowed.expand_as(weights))
        torch.testing.assert_close(weights.sum(-1), torch.ones(1, config.heads, length, dtype=torch.float64))
        keys = tap.values(f"layers.{layer}.attention.k")[0]
        assert keys.shape == (1, config.kv_heads, length, config.head_width)


@given(config=recurrent_configs, seed=seeds)
def test_what_a_recurrent_models_tap_sees(config: RecurrentConfig, seed: int) -> None:
    model, tap = random_model(config, seed), Recorder()
    state = model.start(2)
    model(random_ids(seed, 2, 5), state=state, tap=tap)
    steps = [step for name, step, _ in tap.seen if name == "layers.0.hidden"]
    assert steps == [0, 1, 2, 3, 4]
    last = f"layers.{config.layers - 1}.hidden"
    assert torch.equal(torch.stack(tap.values(last), dim=1), tap.values("hidden")[0])
    assert torch.equal(tap.values(last)[-1], state.layers[-1].hidden)
    if config.cell == "lstm":
        assert torch.equal(tap.values("layers.0.cell")[-1], state.layers[0].cell)


@pytest.mark.parametrize("family", ["gpt", "bert", "rnn", "lstm", "gru"])
def test_an_edit_reaches_the_logits(family: str) -> None:
    model = random_model(configure(family, VOCABULARY, preset="tiny"), 3)
    ids = random_ids(1, 1, 6)
    everything = Recorder()
    plain, _ = model(ids, tap=everything)

    def halve(value: Tensor) -> Tensor:
        return value / 2

    unused = {name for name in everything.names if name.endswith("masked_scores")}  # shown only: weights come after it
    for name in everything.names:
        edited, _ = model(ids, tap=Editor(name, halve))
        assert torch.allclose(edited, plain, rtol=0, atol=1e-9) is (name in unused), name
