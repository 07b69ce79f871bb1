"""One vector for a whole text: the hidden vectors of an encoder, pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lookback.errors import InputError
from lookback.generation.reading import inference
from lookback.models import LanguageModel
from lookback.nn.mask import Padding

_BATCH = 32


@dataclass(frozen=True)
class Pooling:
    """``mean`` over the tokens, ``first`` ([CLS]) or ``last``; then scaled to length 1 if ``normalised``.

    Sentence-BERT (Reimers & Gurevych 2019) means ``mean``.
    """

    kind: Literal["mean", "first", "last"] = "mean"
    normalised: bool = False

    def __call__(self, hidden: Float[Tensor, "B T D"], padding: Padding) -> Float[Tensor, "B D"]:
        """Pool each row over its real tokens."""
        rows = torch.arange(len(hidden), device=hidden.device)
        if self.kind == "mean":
            real = padding.real(hidden.device)[:, :, None]
            pooled = hidden.masked_fill(~real, 0.0).sum(1) / real.sum(1)
        else:
            first = torch.tensor(padding.left, device=hidden.device)
            last = padding.length - 1 - torch.tensor(padding.right, device=hidden.device)
            pooled = hidden[rows, first if self.kind == "first" else last]
        return torch.nn.functional.normalize(pooled, dim=-1) if self.normalised else pooled


def embed(model: LanguageModel, rows: Sequence[Sequence[int]], pooling: Pooling) -> Float[Tensor, "N D"]:
    """A vector for each row of ids. Raises InputError for an empty row or one longer than the context."""
    if not rows or not all(rows):
        raise InputError("a text to embed is empty; give at least one token each")
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    found: list[Tensor | None] = [None] * len(rows)
    with inference(model):
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            width = max(len(rows[row]) for row in some)
            ids = torch.tensor([[*rows[row], *[0] * (width - len(rows[row]))] for row in some], device=model.device)
            padding = Padding.after([len(rows[row]) for row in some], width)
            hidden, _ = model.encode(ids, padding=padding)
            for row, vector in zip(some, pooling(hidden, padding), strict=True):
                found[row] = vector
    return torch.stack([vector for vector in found if vector is not None])
