"""How good a model is on the held-out text, as often as training asks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from lookback.data import TokenFile
from lookback.evaluation import evaluate
from lookback.models import LanguageModel
from lookback.training.objective import Objective, loss_sum, scored

_MASK_SEED = 2**40  # Far from any seed a person gives, and the same for every model, so that masks are comparable.
_MASK_BATCHES = 8


@dataclass(frozen=True)
class HeldOut:
    """Mean loss on held-out text. For a masked model these are its masked tokens only, and ``bits_per_byte`` is what a
    text would cost if each token cost that much: to be compared between masked models, not with the others."""

    nats_per_token: float
    bits_per_byte: float
    tokens: int


def held_out_score(model: LanguageModel, tokens: TokenFile, objective: Objective) -> HeldOut:
    """The loss over the first held-out tokens (next-token models) or over fixed masks (masked models)."""
    recipe = objective.recipe
    if not objective.masked:
        score = evaluate(
            model,
            tokens,
            end=objective.end,
            window=recipe.length,
            stride=recipe.length,
            cross_documents=recipe.cross_documents,
            limit=recipe.evaluate_tokens,
            exact=False,
        )
        return HeldOut(score.nats_per_token, score.bits_per_byte, score.tokens)
    nats, count = _masked_nats(model, tokens, objective)
    return HeldOut(nats, nats / math.log(2) * len(tokens) / max(tokens.text_bytes, 1), count)


def _masked_nats(model: LanguageModel, tokens: TokenFile, objective: Objective) -> tuple[float, int]:
    """Nats a masked token over fixed random windows with fixed masks, and how many there were."""
    rows = max(1, objective.recipe.evaluate_tokens // (_MASK_BATCHES * objective.recipe.length))
    training, nats, count = model.training, 0.0, 0
    model.eval()
    with torch.inference_mode():
        for step in range(_MASK_BATCHES):
            batch = objective.batch(tokens, step, seed=_MASK_SEED, rows=rows)
            nats += loss_sum(model, batch).item()
            count += scored(batch)
    model.train(training)
    return nats / max(count, 1), count
