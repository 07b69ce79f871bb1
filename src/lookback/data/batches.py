"""Batches of windows out of a token file, each a pure function of its arguments (rule 5).

The windows of step k begin at random places of the whole stream, as in nanoGPT's ``get_batch``; the random numbers
come from a counter-based generator (Philox) keyed by seed and step, so that nothing has to be remembered between steps.
Every process makes the whole global batch, which costs next to nothing, and keeps its own rows (`Batch.rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from torch import Tensor

from lookback.data.packed import TokenFile
from lookback.errors import InputError

IGNORE = -100  # the target of a position that is not scored

_Ids = npt.NDArray[np.int64]
_Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Batch:
    """Inputs and what to predict at each of them, on the host.

    ``documents`` numbers each position's document within its row, from 0; None if all rows have one document only, or
    if documents shall not be told apart.
    """

    ids: Int64[Tensor, "B T"]
    targets: Int64[Tensor, "B T"]
    documents: Int64[Tensor, "B T"] | None

    def rows(self, which: slice) -> Batch:
        """Some of the rows: a micro-batch, or a process's share of the global batch."""
        documents = None if self.documents is None else self.documents[which]
        return Batch(self.ids[which], self.targets[which], documents)


def next_token_batch(
    tokens: TokenFile,
    *,
    seed: int,
    step: int,
    batch: int,
    length: int,
    end: int,
    cross_documents: bool = False,
) -> Batch:
    """``batch`` windows of ``length`` tokens, each position's target being the token after it.

    Raises InputError if there are fewer than ``length`` + 1 tokens.
    """
    windows = _windows(tokens, _generator(seed, step), batch, length + 1)
    ids = windows[:, :-1]
    return _batch(ids, windows[:, 1:], None if cross_documents else _documents(ids, end))


def masked_batch(
    tokens: TokenFile,
    *,
    seed: int,
    step: int,
    batch: int,
    length: int,
    end: int,
    mask: int,
    vocabulary: int,
    specials: int,
    rate: float = 0.15,
    cross_documents: bool = False,
) -> Batch:
    """``batch`` windows of ``length`` tokens, masked by `mask_tokens`; only chosen positions have a target.

    Raises InputError if there are fewer than ``length`` tokens.
    """
    generator = _generator(seed, step)
    windows = _windows(tokens, generator, batch, length)
    ids, targets = mask_tokens(windows, generator, mask=mask, vocabulary=vocabulary, specials=specials, rate=rate)
    return _batch(ids, targets, None if cross_documents else _documents(windows, end))


def mask_tokens(
    ids: _Integers,
    generator: np.random.Generator,
    *,
    mask: int,
    vocabulary: int,
    specials: int,
    rate: float = 0.15,
) -> tuple[_Ids, _Ids]:
    """BERT's masking (Devlin et al. 2019, section 3.1): ids [B, T] -> inputs [B, T] and targets [B, T].

    Every token is chosen with probability ``rate``, at least one if there is any; special ones, those below
    ``specials``, never are. Of the chosen 80% become ``mask``, 10% a random ordinary token, 10% stay as they are.
    Targets are the original ids at the chosen positions and IGNORE elsewhere.
    """
    ids = ids.astype(np.int64)  # IGNORE has no place in the unsigned numbers of a token file
    ordinary = ids >= specials
    lots = np.where(ordinary, generator.random(ids.shape), np.inf)
    chosen = ordinary & (lots <= max(rate, lots.min()))
    treatment = generator.random(ids.shape)
    strangers = generator.integers(specials, vocabulary, ids.shape)
    inputs = np.select([~chosen, treatment < 0.8, treatment < 0.9], [ids, mask, strangers], ids)
    return inputs, np.where(chosen, ids, IGNORE)


def _generator(seed: int, step: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, step], dtype=np.uint64)))


def _windows(tokens: TokenFile, generator: np.random.Generator, batch: int, width: int) -> _Integers:
    """[batch, width] windows that begin anywhere, each place being equally likely."""
    if len(tokens) < width:
        raise InputError(
            "there are {tokens} tokens and one window needs {width}; use a smaller context or more text",
            tokens=len(tokens),
            width=width,
        )
    starts = generator.integers(0, len(tokens) - width, size=batch, endpoint=True)
    windows: _Integers = np.asarray(tokens.ids)[starts[:, None] + np.arange(width)]
    return windows


def _documents(ids: _Integers, end: int) -> _Ids | None:
    """[B, T] numbers that go up by one at every end token, at which a document begins; None if none does in any row."""
    begins = ids == end
    begins[:, 0] = False
    return begins.cumsum(axis=1) if begins.any() else None


def _batch(ids: _Integers, targets: _Integers, documents: _Ids | None) -> Batch:
    def own(array: _Integers) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64))

    return Batch(own(ids), own(targets), None if documents is None else own(documents))
