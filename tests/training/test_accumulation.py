"""Rule 6: loss is a sum over tokens divided by their number, however the batch is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import CHARACTERS
from torch import Tensor

from lookback.data import Prepared, TokenFile
from lookback.data.batches import IGNORE, Batch
from lookback.models import FAMILIES, LanguageModel, build, configure
from lookback.tokenizers import Tokenizer, learn
from lookback.training import Objective, Recipe, Trainer

LENGTH, BATCH = 8, 5
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(lambda: iter([CHARACTERS]), "character")


def stream(tokenizer: Tokenizer, tokens: int = 400) -> TokenFile:
    """Random ordinary tokens with an end token every now and then."""
    draw = np.random.default_rng(0)
    ids = draw.integers(3, tokenizer.size, tokens).astype(np.uint16)
    ids[:: 1 + tokens // 40] = tokenizer.end
    return TokenFile(ids, 40, 3 * tokens)


def trainer_of(
    family: str, tokenizer: Tokenizer, folder: Path, dtype: torch.dtype = torch.float64, **changes: Any
) -> Trainer:
    config = configure(family, tokenizer.size, preset="tiny", width=8, dropout=0.0)
    recipe = Recipe(**{"length": LENGTH, "batch": BATCH, "steps": 1, "clip": math.inf, "weight_decay": 0.0, **changes})
    model = build(config, seed=1, dtype=dtype)
    return Trainer(model, tokenizer, Prepared(stream(tokenizer), None, folder), recipe, folder)


def gradients(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The gradients of a run of one step, as they come to be clipped."""
    taken: list[Tensor] = []

    def take(parameters: Sequence[Tensor], clip: float) -> Tensor:
        taken.extend(torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters)
        return torch.tensor(0.0)

    with monkeypatch.context() as patch:
        patch.setattr("torch.nn.utils.clip_grad_norm_", take)
        trainer.run()
    return taken


def with_batch(monkeypatch: pytest.MonkeyPatch, batch: Batch) -> None:
    monkeypatch.setattr(Objective, "batch", lambda *args, **kwargs: batch)


def uneven(model: LanguageModel, scored: Sequence[int]) -> Batch:
    """A batch whose rows have so many targets each, at random places."""
    draw = np.random.default_rng(5)
    ids = draw.integers(3, model.config.vocabulary, (len(scored), LENGTH))
    targets = np.full_like(ids, IGNORE)
    for row, number in enumerate(scored):
        places = draw.choice(LENGTH, number, replace=False)
        targets[row, places] = draw.integers(3, model.config.vocabulary, number)
    return Batch(torch.from_numpy(ids), torch.from_numpy(targets), None)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["fp64", "fp32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_do_not_depend_on_the_micro_batch(
    family: str, dtype: torch.dtype, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, *cut = (
        gradients(trainer_of(family, tokenizer, tmp_path, dtype, micro_batch=size), monkeypatch)
        for size in (None, 1, 3, BATCH, 99)
    )
    assert max(float(g.abs().max()) for g in whole) > 0.01
    for pieces in cut:
        for one, other in zip(whole, pieces, strict=True):
            torch.testing.assert_close(other, one, rtol=0.0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("family", ["bert", "gpt"])
@pytest.mark.parametrize("scored", [(8, 0, 0, 1, 0), (0, 0, 0, 0, 1), (8, 8, 1, 8, 0)], ids=str)
def test_gradients_with_very_uneven_numbers_of_targets(
    family: str, scored: tuple[int, ...], tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mean of the micro-batches' means would weigh a row's one token as much as another row's eight."""
    found = {}
    for size in (None, 1, 2, 3):
        trainer = trainer_of(family, tokenizer, tmp_path, micro_batch=size)
        batch = uneven(trainer.model, scored)
        with_batch(monkeypatch, batch)
        found[size] = gradients(trainer, monkeypatch)
    monkeypatch.undo()
    model = trainer_of(family, tokenizer, tmp_path).model
    logits, _ = model(batch.ids)
    mean = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORE)
    expected = torch.autograd.grad(mean, list(model.parameters()))
    for size, got in found.items():
        for one, other in zip(expected, got, strict=True):
            torch.testing.assert_close(other, one, rtol=0.0, atol=1e-12, msg=f"micro-batches of {size}")


@pytest.mark.parametrize("family", ["bert", "lstm"])
@pytest.mark.parametrize("micro_batch", [None, 2])
def test_no_tokens_no_loss_no_nan(
    family: str, micro_batch: int | None, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_of(family, tokenizer, tmp_path, micro_batch=micro_batch)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    with_batch(monkeypatch, uneven(trainer.model, (0,) * BATCH))
    trainer.run()
    assert trainer.progress.recent_nats == 0
    for parameter, old in zip(trainer.model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)
