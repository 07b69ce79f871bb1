"""Two things a loss can say about itself: that the model has memorised, and that it has seen the answers."""

from __future__ import annotations

import lzma
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lookback.data import Prepared
from lookback.tokenizers import Tokenizer
from lookback.training.heldout import HeldOut

_MEMORISED = 0.6  # Training loss below this share of the held-out loss.
_IMPOSSIBLE = 0.25  # Bits a byte below this share of what a general compressor needs on the same text.
_SAMPLE_TOKENS = 200_000

Said = tuple[str, dict[str, object]]


@dataclass
class Watch:
    """Says each warning once a run."""

    tokenizer: Tokenizer
    data: Prepared

    def __post_init__(self) -> None:
        self._said: set[str] = set()

    def after(self, loss: float, held_out: HeldOut | None) -> Iterator[Said]:
        """What is to be said after an evaluation; ``loss`` is the training loss in nats a token."""
        if held_out is None:
            return
        if loss < _MEMORISED * held_out.nats_per_token:
            yield from self._once(
                "the model has begun to memorise: its training loss is {loss} nats a token, far under {held_out} on "
                "held-out text; train for fewer steps, on more text, with a smaller model or with dropout",
                loss=f"{loss:.2f}",
                held_out=f"{held_out.nats_per_token:.2f}",
            )
        if held_out.bits_per_byte < _IMPOSSIBLE * self._compressed_bits_per_byte:
            yield from self._once(
                "held-out text costs the model only {got} bits a byte, where a compressor (LZMA) needs {compressed}: a "
                "loss this low most often means that the model sees its answers (check the mask and the split)",
                got=f"{held_out.bits_per_byte:.3f}",
                compressed=f"{self._compressed_bits_per_byte:.2f}",
            )

    @cached_property
    def _compressed_bits_per_byte(self) -> float:
        assert self.data.held_out is not None
        text = self.tokenizer.decode(self.data.held_out.ids[:_SAMPLE_TOKENS].tolist()).encode()
        size = len(lzma.compress(text, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6}]))
        return 8 * size / max(len(text), 1) if text else math.nan

    def _once(self, template: str, **values: object) -> Iterator[Said]:
        if template not in self._said:
            self._said.add(template)
            yield template, values
