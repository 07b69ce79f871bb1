"""What scoring a text gives, and the one step that all of it shares: from hidden vectors to nats."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lookback.data import TokenFile
from lookback.errors import InputError
from lookback.models import LanguageModel
from lookback.nn.precision import double

_LOGITS = 1 << 22  # logits held at a time, so that a large vocabulary does not take the memory


@dataclass(frozen=True)
class Score:
    """A sum of −ln p over ``tokens`` tokens, and the UTF-8 ``bytes`` of text that they stand for.

    ``correct`` counts the tokens that the model would have put first (masked scoring only). In masked scoring the sum
    is a pseudo-log-likelihood: its perplexity is a pseudo-perplexity and compares with other such only.
    """

    nats: float
    tokens: int
    bytes: int
    correct: int | None = None

    @property
    def nats_per_token(self) -> float:
        """The mean of −ln p."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """e to the nats a token; infinite where that is more than a float can hold."""
        try:
            return math.exp(self.nats_per_token)
        except OverflowError:
            return math.inf

    @property
    def bits_per_byte(self) -> float:
        """All nats in bits over the bytes of the text, so that models with different tokenizers can be compared."""
        return self.nats / math.log(2) / self.bytes

    @property
    def accuracy(self) -> float | None:
        """The share of tokens that the model would have put first (masked scoring only)."""
        return None if self.correct is None else self.correct / self.tokens


@contextmanager
def scoring(model: LanguageModel, exact: bool) -> Iterator[LanguageModel]:
    """The model as it is scored: in evaluation mode, without gradients, and if ``exact`` as a float64 copy of it.

    A matrix product may round differently for another number of rows. In fp32 that moves a token's nats in the seventh
    digit, so a score would depend on the batch size; in fp64 it moves the fifteenth.
    """
    training = model.training
    if exact and next(model.parameters()).dtype != torch.float64:
        host = "cpu" if model.device.type == "mps" else model.device  # mps has no fp64 (not run there)
        model, training = copy.deepcopy(model).to(host).double(), False
    model.eval()
    try:
        with torch.inference_mode():
            yield model
    finally:
        model.train(training)


def token_nats(
    model: LanguageModel, hidden: Float[Tensor, "M D"], targets: Int[Tensor, "M"]
) -> tuple[Float[Tensor, "M"], Bool[Tensor, "M"]]:
    """−ln p of each of one or more targets in fp64, and whether its logit is the highest; logits are made in slices."""
    nats, best = [], []
    rows = max(1, _LOGITS // model.config.vocabulary)
    for at in range(0, len(targets), rows):
        logits = double(model.unembed(hidden[at : at + rows]))
        wanted = targets[at : at + rows].to(logits.device)
        nats.append(logits.logsumexp(-1) - logits.gather(-1, wanted[:, None])[:, 0])
        best.append(logits.argmax(-1) == wanted)
    return torch.cat(nats), torch.cat(best)


def share_of_bytes(tokens: TokenFile, scored: int, scorable: int) -> int:
    """The bytes of text behind ``scored`` of the ``scorable`` tokens: all, or with a limit their share by number."""
    return max(1, round(tokens.text_bytes * scored / scorable))


def check_text(tokens: TokenFile, limit: int | None, batch_size: int) -> None:
    """Refuse a text with nothing in it and numbers that make no sense."""
    if tokens.text_bytes < 1 or len(tokens.ids) < 2:
        raise InputError("there is no text to score; give a text that is not empty")
    for name, number in (("batch size", batch_size), ("limit", limit)):
        if number is not None and number < 1:
            raise InputError("the {name} is {got}; it must be at least 1", name=name, got=number)


def checked_window(model: LanguageModel, window: int | None) -> int | None:
    """The window asked for, or all of the model's context; refused where it is less than 1 or more than that."""
    context = model.config.context
    if window is None:
        return context
    if window < 1 or (context is not None and window > context):
        raise InputError(
            "a window of {got} tokens is not possible; this model takes 1 to {most}",
            got=window,
            most="any number" if context is None else context,
        )
    return window
