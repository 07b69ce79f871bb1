"""What is learnt: the next token (GPT, RNN, LSTM, GRU) or the masked tokens (BERT)."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from lookback.data import TokenFile
from lookback.data.batches import IGNORE, Batch, masked_batch, next_token_batch
from lookback.errors import InputError
from lookback.models import LanguageModel
from lookback.tokenizers import Tokenizer
from lookback.training.recipe import Recipe


@dataclass(frozen=True)
class Objective:
    """Gives the batch of each step. ``masked`` follows from the model's mask: it reads both sides."""

    recipe: Recipe
    masked: bool
    end: int
    mask: int
    specials: int
    vocabulary: int

    @classmethod
    def of(cls, model: LanguageModel, tokenizer: Tokenizer, recipe: Recipe) -> Objective:
        """The objective that the model's mask allows: a model that reads both sides would only copy its next token."""
        masked, mask = not model.config.causal, 0
        if masked:
            mask = tokenizer.mask
        specials = 1 + max(tokenizer.divider, mask, tokenizer.unknown or 0)
        if masked and 2 * specials > model.config.vocabulary:
            raise InputError(
                "this tokenizer's special tokens are not the first of its vocabulary, so masks cannot leave them out; "
                "train a BERT with a tokenizer learnt here"
            )
        return cls(recipe, masked, tokenizer.divider, mask, specials, model.config.vocabulary)

    def batch(self, tokens: TokenFile, step: int, *, seed: int | None = None, rows: int | None = None) -> Batch:
        """The global batch of ``step``, a pure function of the corpus, the seed and the step."""
        seed = self.recipe.seed if seed is None else seed
        size, length, across = rows or self.recipe.batch, self.recipe.length, self.recipe.cross_documents
        if not self.masked:
            return next_token_batch(
                tokens, seed=seed, step=step, batch=size, length=length, end=self.end, cross_documents=across
            )
        return masked_batch(
            tokens,
            seed=seed,
            step=step,
            batch=size,
            length=length,
            end=self.end,
            mask=self.mask,
            vocabulary=self.vocabulary,
            specials=self.specials,
            rate=self.recipe.mask_rate,
            cross_documents=across,
        )


def loss_sum(model: LanguageModel, batch: Batch) -> Tensor:
    """Cross-entropy in nats, summed over the scored positions; only those are unembedded."""
    device = model.device
    hidden, _ = model.encode(batch.ids.to(device), documents=batch.documents)
    targets = batch.targets.to(device)
    if (batch.targets == IGNORE).any():
        scored = targets != IGNORE
        hidden, targets = hidden[scored], targets[scored]
    logits = model.unembed(hidden)
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="sum")


def scored(batch: Batch) -> int:
    """How many positions the batch scores."""
    return int((batch.targets != IGNORE).sum())
