"""What is recorded has the name and shape it is listed with, and is what the pass computed with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import lookback as lb
from lookback.errors import InputError
from lookback.inspection import Trace, activations, cost, record
from lookback.inspection.names import sizes
from lookback.models import LanguageModel, build, configure
from lookback.nn.mask import Padding

SHAPES = {
    "gpt": {},
    "gpt2": {"style": "gpt2"},
    "qwen3 grouped": {"style": "qwen3", "heads": 4, "kv_heads": 2},
    "window": {"sliding_window": 3},
    "no positions": {"style": "gpt2", "positions": "none"},
    "bert": {"family": "bert"},
    "rnn": {"family": "rnn"},
    "lstm": {"family": "lstm"},
    "gru": {"family": "gru"},
}


def model_of(name: str) -> LanguageModel:
    wishes = {"family": "gpt", "preset": "tiny", **SHAPES[name]}
    return build(configure(wishes.pop("family"), 40, **wishes), seed=1, dtype=torch.float64).eval()


def text(batch: int = 2, length: int = 7) -> Tensor:
    return torch.randint(0, 40, (batch, length), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", SHAPES)
def test_every_name_is_recorded_with_its_shape(name: str) -> None:
    model = model_of(name)
    trace = record(model, text(), ["*"])
    letters = sizes(model, 2, 7)
    assert list(trace) == [one.name for one in activations(model)]
    for one in activations(model):
        assert list(trace[one.name].shape) == [letters[letter] for letter in one.shape.split()], one
    assert cost(model, activations(model), 2, 7) == sum(t.numel() * t.element_size() for t in trace.values())


@pytest.mark.parametrize("name", SHAPES)
def test_recording_changes_nothing(name: str) -> None:
    model = model_of(name)
    logits, _ = model(text())
    torch.testing.assert_close(record(model, text(), ["*"])["logits"], logits, atol=1e-12, rtol=0)
    assert torch.equal(record(model, text(), ["logits"])["logits"], logits)


@pytest.mark.parametrize("name", ["gpt", "gpt2", "qwen3 grouped", "window", "bert"])
def test_attention_follows_from_its_parts(name: str) -> None:
    """softmax(q·k/√H where readable) times v, through the output matrix, is what the layer adds."""
    model = model_of(name)
    trace = record(model, text(), ["layers.1.attention.*"])
    part = {key.rpartition(".")[2]: value for key, value in trace.items()}
    q, k = (part.get(f"{letter}_rotated", part[letter]) for letter in "qk")
    group = q.shape[1] // k.shape[1]
    scores = torch.einsum("bnth,bnsh->bnts", q, k.repeat_interleave(group, 1)) / q.shape[-1] ** 0.5
    torch.testing.assert_close(part["scores"], scores)
    weights = part["masked_scores"].exp() / part["masked_scores"].exp().sum(-1, keepdim=True)
    torch.testing.assert_close(part["weights"], weights)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    assert bool((part["weights"][part["masked_scores"] == -torch.inf] == 0).all())
    heads = weights @ part["v"].repeat_interleave(group, 1)
    torch.testing.assert_close(part["heads"], heads)
    output = model.get_submodule("blocks.1.attention.output")(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(part["output"], output)


@pytest.mark.parametrize("name", ["gpt", "gpt2", "window", "lstm"])
def test_a_cached_step_records_what_the_whole_pass_does(name: str) -> None:
    model = model_of(name)
    whole = record(model, text(), ["layers.*.output", "layers.*.hidden", "hidden"][0 if name != "lstm" else 1 :])
    state = model.start(2)
    with torch.inference_mode():
        model(text()[:, :6], state=state)
        step = record(model, text()[:, 6:], list(whole), state=state)
    for key, value in step.items():
        torch.testing.assert_close(value, whole[key][:, 6:], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["gpt2", "bert", "gru"])
def test_padding_is_recorded_beside_the_same_values(name: str) -> None:
    model = model_of(name)
    alone = record(model, text(1, 5), ["hidden"])["hidden"]
    padded = torch.cat((torch.zeros(1, 2, dtype=torch.long), text(1, 5)), dim=1)
    beside = record(model, padded, ["hidden"], padding=Padding(7, left=(2,), right=(0,)))["hidden"]
    torch.testing.assert_close(beside[:, 2:], alone, atol=1e-10, rtol=0)


def test_gradients_flow_through_what_is_recorded() -> None:
    trace = record(model_of("gpt"), text(), ["layers.0.output", "logits"])
    (gradient,) = torch.autograd.grad(trace["logits"][:, -1].sum(), trace["layers.0.output"])
    assert bool((gradient.abs().sum(-1) > 0).all())


def test_an_unknown_name_and_a_budget_are_refused() -> None:
    model = model_of("lstm")
    with pytest.raises(InputError, match=r"no activation of this model is called layers\.0\.attention\.weights"):
        record(model, text(), ["layers.0.attention.weights"])
    with pytest.raises(InputError, match="more than the budget of 0 MB"):
        record(model, text(), ["*"], budget=100)


def test_from_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKBACK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text("床前明月光，疑是地上霜。" * 20, encoding="utf-8")
    session = lb.train(tmp_path / "a.txt", out=tmp_path / "run", preset="tiny", steps=1, batch=2, length=8)
    trace = session.trace("床前明月光", record=["layers.*.attention.weights"])
    assert isinstance(trace, Trace)
    assert len(trace) == 2
    assert trace["layers.0.attention.weights"].shape == (1, 2, 5, 5)
    assert bool((trace["layers.0.attention.weights"].triu(1) == 0).all())
