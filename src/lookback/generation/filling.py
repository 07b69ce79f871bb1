"""Filling in masks from both sides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lookback.errors import InputError
from lookback.generation.reading import inference
from lookback.models import LanguageModel
from lookback.nn.precision import double


@dataclass(frozen=True)
class Fill:
    """A token that may stand at a mask, and its probability among the whole vocabulary."""

    token: int
    probability: float


def fill(
    model: LanguageModel,
    ids: Sequence[int],
    positions: Sequence[int],
    *,
    specials: Collection[int],
    best: int = 5,
    one_by_one: bool = False,
) -> list[list[Fill]]:
    """The ``best`` fills for each of ``positions``, where ``ids`` hold the mask token; best first.

    All masks are filled in at once, none knowing of the others, or ``one_by_one``: where the model is most certain its
    best token is put in, and the rest are predicted anew with it in sight. ``specials`` are not offered, but the
    probabilities are over the whole vocabulary.

    Raises InputError for a causal model, no mask, a text longer than the context, and an impossible ``best``.
    """
    if model.config.causal:
        raise InputError(
            "a {family} reads the left side only, so it can't fill a gap from both sides; use generate to write on",
            family=model.config.family,
        )
    if not positions:
        raise InputError("there is no mask to fill; put [MASK] into the text where something is missing")
    offered = torch.ones(model.config.vocabulary, dtype=torch.bool, device=model.device)
    offered[list(specials)] = False
    if not 1 <= best <= int(offered.sum()):
        raise InputError("{got} fills can't be given; ask for 1 to {most}", got=best, most=int(offered.sum()))
    text, left = list(ids), list(positions)
    found: dict[int, list[Fill]] = {}
    with inference(model):
        while left:
            fills = _best_fills(_distributions(model, text, left), offered, best)
            if one_by_one:
                certain = max(range(len(left)), key=lambda at: fills[at][0].probability)
                fills, filled = [fills[certain]], [left.pop(certain)]
                text[filled[0]] = fills[0][0].token
            else:
                filled, left = left, []
            found.update(zip(filled, fills, strict=True))
    return [found[position] for position in positions]


def _distributions(model: LanguageModel, ids: list[int], positions: list[int]) -> Float[Tensor, "M V"]:
    hidden, _ = model.encode(torch.tensor([ids], device=model.device))
    return double(model.unembed(hidden[0, positions])).softmax(-1)


def _best_fills(distributions: Float[Tensor, "M V"], offered: Tensor, best: int) -> list[list[Fill]]:
    ranked, order = distributions.masked_fill(~offered.to(distributions.device), -1.0).sort(
        dim=-1, descending=True, stable=True
    )
    return [
        [Fill(token, p) for token, p in zip(tokens[:best], row[:best], strict=True)]
        for tokens, row in zip(order.tolist(), ranked.tolist(), strict=True)
    ]
