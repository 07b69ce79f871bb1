"""What a model is asked, and that nothing else is computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_runs import CHARACTERS
from torch import Tensor

from lookback.data import TokenFile
from lookback.data.batches import IGNORE
from lookback.models import LanguageModel, build, configure
from lookback.tokenizers import Tokenizer, learn
from lookback.training import Objective, Recipe
from lookback.training.objective import loss_sum, scored

TOKENIZERS = [learn(lambda: iter([CHARACTERS]), "character", allow_unknown=unknown) for unknown in (False, True)]


def model_of(family: str, tokenizer: Tokenizer) -> LanguageModel:
    return build(configure(family, tokenizer.size, preset="tiny", width=8), seed=1, dtype=torch.float64)


def stream(tokenizer: Tokenizer, seed: int) -> TokenFile:
    """Tokens of all kinds, special ones in abundance."""
    ids = np.random.default_rng(seed).integers(0, tokenizer.size, 200).astype(np.uint16)
    ids[::3] %= 3
    return TokenFile(ids, 1, 600)


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["no unknown", "unknown"])
@given(seed=st.integers(0, 2**63), step=st.integers(0, 2**40))
def test_bert_masks_only_ordinary_tokens_and_is_asked_only_those(tokenizer: Tokenizer, seed: int, step: int) -> None:
    objective = Objective.of(model_of("bert", tokenizer), tokenizer, Recipe(length=16, batch=4, steps=1, seed=seed))
    assert objective.masked
    batch = objective.batch(stream(tokenizer, step % 7), step)
    chosen = batch.targets != IGNORE
    special = {tokenizer.end, tokenizer.mask, tokenizer.unknown}
    assert not special & set(batch.targets[chosen].tolist())
    assert 1 <= int(chosen.sum()) == scored(batch)
    new = (batch.ids != batch.targets) & chosen
    assert {tokenizer.end, tokenizer.unknown}.isdisjoint(batch.ids[new].tolist())


@pytest.mark.parametrize("family", ["rnn", "lstm", "gru", "gpt"])
def test_the_others_are_asked_for_every_next_token(family: str) -> None:
    tokenizer = TOKENIZERS[0]
    tokens = stream(tokenizer, 0)
    objective = Objective.of(model_of(family, tokenizer), tokenizer, Recipe(length=16, batch=4, steps=1))
    batch = objective.batch(tokens, 3)
    assert not objective.masked
    text = "".join(map(chr, tokens.ids))
    for ids, targets in zip(batch.ids.tolist(), batch.targets.tolist(), strict=True):
        assert ids[1:] == targets[:-1]
        assert "".join(map(chr, [*ids, targets[-1]])) in text


def test_a_batch_is_a_pure_function_of_seed_and_step() -> None:
    tokenizer = TOKENIZERS[0]
    for family in ("bert", "gpt"):
        model, tokens = model_of(family, tokenizer), stream(tokenizer, 0)
        objective = Objective.of(model, tokenizer, Recipe(length=16, batch=4, steps=1, seed=7))
        first = objective.batch(tokens, 5)
        objective.batch(tokens, 6)
        again = Objective.of(model, tokenizer, Recipe(length=16, batch=4, steps=9, seed=7)).batch(tokens, 5)
        assert torch.equal(first.ids, again.ids) and torch.equal(first.targets, again.targets)
        others = [objective.batch(tokens, 6), objective.batch(tokens, 5, seed=8)]
        assert not any(torch.equal(first.ids, other.ids) for other in others)


@pytest.mark.parametrize("family", ["bert", "gpt"])
def test_only_scored_positions_are_unembedded(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary of 50,000 at every position of a masked batch would cost seven times as much."""
    tokenizer = TOKENIZERS[0]
    model = model_of(family, tokenizer)
    objective = Objective.of(model, tokenizer, Recipe(length=16, batch=4, steps=1))
    batch = objective.batch(stream(tokenizer, 0), 0)
    asked: list[int] = []
    unembed = type(model).unembed

    def counted(self: LanguageModel, hidden: Tensor) -> Tensor:
        asked.append(hidden.shape[:-1].numel())
        return unembed(self, hidden)

    monkeypatch.setattr(type(model), "unembed", counted)
    loss = loss_sum(model, batch)
    assert asked == [scored(batch)]
    monkeypatch.undo()
    logits, _ = model(batch.ids, documents=batch.documents)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORE, reduction="sum"
    )
    torch.testing.assert_close(loss, expected, rtol=0.0, atol=1e-10)
