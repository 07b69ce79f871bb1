"""Building a model: what a seed decides, what the parameters start as, and that nothing global is touched."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from lookback.models import FAMILIES, LanguageModel, Transformer, build, configure
from lookback.models.registry import STYLES, empty

FORMS = [("gpt", style) for style in STYLES] + [("bert", "bert"), ("rnn", None), ("lstm", None), ("gru", None)]
forms = pytest.mark.parametrize(("family", "style"), FORMS, ids=[f"{f}-{s}" for f, s in FORMS])


def tensors(model: LanguageModel) -> dict[str, Tensor]:
    return dict(model.named_parameters())


@forms
def test_a_seed_decides_every_parameter(family: str, style: str | None) -> None:
    config = configure(family, 50, preset="tiny", style=style)
    one, same, other = (tensors(build(config, seed=seed)) for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    drawn = [name for name, tensor in one.items() if tensor.ndim == 2]
    assert drawn
    assert all(not torch.equal(one[name], other[name]) for name in drawn)
    assert all(torch.equal(one[name], other[name]) for name in one if name not in drawn)
    assert all(tensor.isfinite().all() for tensor in one.values())


@forms
def test_the_generators_of_others_are_left_alone(family: str, style: str | None) -> None:
    before = torch.get_rng_state()
    build(configure(family, 50, preset="tiny", style=style), seed=1)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_importing_changes_no_global_setting() -> None:
    """Seen from a process of its own, as tests have imported the models long before."""
    code = """
import random, torch
def settings():
    generator = torch.get_rng_state().tolist(), random.getstate()
    modes = torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    threads = torch.get_num_threads(), torch.get_num_interop_threads()
    return generator, torch.get_default_dtype(), torch.get_default_device(), threads, modes
before = settings()
import lookback.models as models
assert settings() == before, "importing"
models.build(models.configure("gpt", 10, preset="tiny"), seed=3)
assert settings() == before, "building"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("family", FAMILIES)
def test_dtype_device_and_size(family: str) -> None:
    config = configure(family, 30, preset="tiny")
    model = build(config, dtype=torch.float64)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert model.device == torch.device("cpu")
    assert model.config is config
    assert model.parameters_count == sum(p.numel() for p in model.parameters()) == empty(config).parameters_count
    assert all(p.is_meta for p in empty(config).parameters())
    assert not list(model.buffers()), "nothing is kept per length or per layer"


def test_a_transformers_first_parameters_are_gpt2s() -> None:
    model = build(configure("gpt", 2000, style="gpt2", layers=8, heads=4, width=64, preset="small"))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert parameter.eq(1.0 if "norm" in name and name.endswith("weight") else 0.0).all(), name
        else:
            into_stream = name.endswith(("attention.output.weight", "mlp.output.weight"))
            deviation = 0.02 / 4 if into_stream else 0.02  # √(2 · 8 layers) = 4
            assert parameter.std().item() == pytest.approx(deviation, rel=0.05), name
            assert abs(parameter.mean().item()) < deviation / 10, name


@pytest.mark.parametrize("style", ["qwen3", "bert"])
def test_gains_start_at_1_wherever_they_stand(style: str) -> None:
    for name, parameter in build(configure("gpt", 9, preset="tiny", style=style)).named_parameters():
        if "norm" in name:
            assert parameter.eq(float(name.endswith("weight"))).all(), name


@pytest.mark.parametrize("forget_bias", [0.0, 1.0, 2.5])
def test_an_lstms_forget_gates_start_open(forget_bias: float) -> None:
    model = build(configure("lstm", 20, preset="tiny", forget_bias=forget_bias))
    for layer in range(2):
        b_x, b_h = (model.get_parameter(f"layers.{layer}.cell.bias_{part}_l0") for part in ("ih", "hh"))
        i, f, g, o = (b_x + b_h).chunk(4)
        assert f.eq(forget_bias).all()
        assert not torch.cat((i, g, o)).any()


@pytest.mark.parametrize("family", ["rnn", "lstm", "gru"])
def test_a_recurrent_models_first_parameters(family: str) -> None:
    model = build(configure(family, 2000, preset="small"))
    width = model.config.width
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and "layers" in name:
            assert 0.99 * width**-0.5 < parameter.abs().max() <= width**-0.5
        elif parameter.ndim == 2:
            assert parameter.std().item() == pytest.approx(width**-0.5, rel=0.05)


@forms
def test_the_first_loss_is_that_of_guessing(family: str, style: str | None) -> None:
    """A model that knows nothing gives every token about the same probability: ln V nats."""
    model = build(configure(family, 100, preset="small", style=style)).eval()
    ids = torch.randint(0, 100, (4, 32), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = model(ids)[0]
    shuffled = ids.flatten()[torch.randperm(ids.numel(), generator=torch.Generator().manual_seed(1))]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), shuffled)
    assert loss.item() == pytest.approx(torch.tensor(100.0).log().item(), abs=0.6)


@forms
def test_every_parameter_has_a_gradient(family: str, style: str | None) -> None:
    """Nothing is built that the forward pass leaves out, but for BERT's second token type."""
    model = build(configure(family, 20, preset="tiny", style=style), seed=1)
    logits, _ = model(torch.randint(0, 20, (2, 9), generator=torch.Generator().manual_seed(0)))
    (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_dropout_acts_in_training_only() -> None:
    ids = torch.zeros(1, 5, dtype=torch.long)
    for family in FAMILIES:
        model = build(configure(family, 20, preset="tiny", dropout=0.5), seed=1)
        assert not torch.equal(model(ids)[0], model(ids)[0])
        model.eval()
        assert torch.equal(model(ids)[0], model(ids)[0])


def test_the_one_mask_pair_shares_every_parameter() -> None:
    gpt, bert = (build(configure(family, 20, preset="tiny", style="gpt2"), seed=1) for family in ("gpt", "bert"))
    assert isinstance(gpt, Transformer)
    assert isinstance(bert, Transformer)
    assert all(torch.equal(a, b) for a, b in zip(gpt.parameters(), bert.parameters(), strict=True))
    ids = torch.arange(6)[None]
    one, other = gpt.eval()(ids)[0], bert.eval()(ids)[0]
    assert torch.allclose(one[:, -1], gpt(ids)[0][:, -1])
    assert not torch.allclose(one[:, 0], other[:, 0])
