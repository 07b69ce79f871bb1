"""From logits to the next token: a pure function of the logits, then one draw from an explicit generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lookback.errors import InputError
from lookback.nn.precision import double


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; the steps are applied in the order of `probabilities`.

    ``temperature`` 0 takes the best token; ``top_k``, ``top_p`` and ``min_p`` None keep every token;
    ``repetition_penalty`` 1 changes nothing. Raises InputError for a value that is not allowed.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not (self.temperature >= 0 and math.isfinite(self.temperature)):
            raise InputError("the temperature is {got}; it must be 0 or more, and finite", got=self.temperature)
        if self.top_k is not None and self.top_k < 1:
            raise InputError("top-k is {got}; it must be at least 1", got=self.top_k)
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError("top-p is {got}; it must be above 0 and at most 1", got=self.top_p)
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise InputError("min-p is {got}; it must be from 0 to 1", got=self.min_p)
        if not (self.repetition_penalty > 0 and math.isfinite(self.repetition_penalty)):
            raise InputError(
                "the repetition penalty is {got}; it must be above 0, and finite", got=self.repetition_penalty
            )


def probabilities(
    logits: Float[Tensor, "B V"], sampling: Sampling, previous: Sequence[Sequence[int]] | None = None
) -> Float[Tensor, "B V"]:
    """The distribution that the next token of each row is drawn from, in fp64; at least one token always remains.

    In this order: the repetition penalty on the tokens of ``previous`` (one sequence a row), the temperature, top-k,
    top-p over what remains, min-p. Among equal logits the lower id counts as the better one. Raises InputError where a
    row has a NaN or nothing above −∞.
    """
    logits = double(logits)
    if previous is not None and sampling.repetition_penalty != 1:
        logits = _penalised(logits, previous, sampling.repetition_penalty)
    logits = logits.clamp(max=torch.finfo(torch.float64).max)
    best = logits.amax(-1, keepdim=True)
    if not bool((best > -torch.inf).all()):
        raise InputError(
            "the model gives logits that are not numbers (NaN or all −∞), so nothing can be chosen; its training has "
            "diverged or its file is damaged: train or load it again"
        )
    if sampling.temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    # The best logit is taken off first, so that a temperature near 0 gives 0 and −∞, never ∞ − ∞.
    return _filtered(((logits - best) / sampling.temperature).softmax(-1), sampling)


def sample(probabilities: Float[Tensor, "B V"], generators: Sequence[np.random.Generator]) -> Int[Tensor, "B"]:
    """One token a row: the first whose cumulative probability exceeds a number drawn from the row's own generator."""
    drawn = torch.tensor([[generator.random()] for generator in generators], dtype=torch.float64)
    cumulative = double(probabilities).cumsum(-1)
    # The last entry, not 1, is the whole: so rounding cannot put the number past every token.
    found = torch.searchsorted(cumulative, drawn.to(cumulative.device) * cumulative[:, -1:], right=True)
    return found[:, 0]


def _penalised(logits: Float[Tensor, "B V"], previous: Sequence[Sequence[int]], penalty: float) -> Float[Tensor, "B V"]:
    """Tokens seen before: positive logits divided, negative ones multiplied (Keskar et al. 2019, section 4.1)."""
    seen = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
    for row, ids in enumerate(previous):
        seen[row, torch.tensor(ids, dtype=torch.long, device=logits.device)] = True
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def _filtered(p: Float[Tensor, "B V"], sampling: Sampling) -> Float[Tensor, "B V"]:
    """Top-k (Fan et al. 2018), top-p (Holtzman et al. 2020), min-p (Nguyen et al. 2024), each on what the last left."""
    top_p = None if sampling.top_p == 1 else sampling.top_p
    if sampling.top_k is None and top_p is None and sampling.min_p is None:
        return p
    p, order = p.sort(dim=-1, descending=True, stable=True)
    if sampling.top_k is not None:
        p[:, sampling.top_k :] = 0.0
    if top_p is not None:  # A token stays if those before it do not reach top_p: the smallest set that does.
        reached = p.cumsum(-1)
        p[:, 1:] = p[:, 1:].masked_fill(reached[:, :-1] >= top_p * reached[:, -1:], 0.0)
    if sampling.min_p is not None:
        p = p.masked_fill(p < sampling.min_p * p[:, :1], 0.0)
    return torch.zeros_like(p).scatter(-1, order, p / p.sum(-1, keepdim=True))
