"""Two things a loss can say about itself: that the model has memorised, and that it has seen the answers."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lookback.data import Prepared
from lookback.tokenizers import Tokenizer
from lookback.training.heldout import HeldOut

_MEMORISED = 0.6  # Training loss below this share of the held-out loss,
_APART = 0.25  # and at least so many nats a token under it: when both are next to nothing, their ratio says nothing.
_IMPOSSIBLE = 0.25  # Bits a byte below this share of what a general compressor needs on the same text,
_REGULAR = 0.5  # which proves nothing where the compressor itself needs so few: the text may follow a simple rule.
_SAMPLE_TOKENS = 50_000

Said = tuple[str, dict[str, object]]


@dataclass
class Watch:
    """Says each warning once a run.

    A ``masked`` model knows both sides, so that what a compressor needs is no bound for it.
    """

    tokenizer: Tokenizer
    data: Prepared
    masked: bool

    def __post_init__(self) -> None:
        self._said: set[str] = set()

    def after(self, loss: float, held_out: HeldOut | None) -> Iterator[Said]:
        """What is to be said after an evaluation; ``loss`` is the training loss in nats a token."""
        if held_out is None:
            return
        if loss < min(_MEMORISED * held_out.nats_per_token, held_out.nats_per_token - _APART):
            yield from self._once(
                "the model has begun to memorise: its training loss is {loss} nats a token, far under {held_out} on "
                "held-out text; train for fewer steps, on more text, with a smaller model or with dropout",
                loss=f"{loss:.2f}",
                held_out=f"{held_out.nats_per_token:.2f}",
            )
        if self.masked:
            return
        compressed = self._compressed_bits_per_byte
        if compressed > _REGULAR and held_out.bits_per_byte < _IMPOSSIBLE * compressed:
            yield from self._once(
                "held-out text costs the model only {got} bits a byte, where a compressor (LZMA) needs {compressed}: a "
                "loss this low most often means that the model sees its answers (check the mask and the split)",
                got=f"{held_out.bits_per_byte:.3f}",
                compressed=f"{compressed:.2f}",
            )

    @cached_property
    def _compressed_bits_per_byte(self) -> float:
        """What LZMA needs for held-out text that stands behind training text, which it may copy from."""
        assert self.data.held_out is not None
        known = self._bytes(self.data.train.ids[-_SAMPLE_TOKENS:])
        text = self._bytes(self.data.held_out.ids[:_SAMPLE_TOKENS])
        return 8 * (_compressed(known + text) - _compressed(known)) / max(len(text), 1)

    def _bytes(self, ids: npt.NDArray[np.unsignedinteger[Any]]) -> bytes:
        return self.tokenizer.decode(ids.tolist()).encode()

    def _once(self, template: str, **values: object) -> Iterator[Said]:
        if template not in self._said:
            self._said.add(template)
            yield template, values


def _compressed(text: bytes) -> int:
    """The length of ``text`` after LZMA (dictionary of 8 MB), without a header."""
    return len(lzma.compress(text, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6}]))
