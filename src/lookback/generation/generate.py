"""The loop that writes: read what is there, choose the next token, look whether it is the last, again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from lookback.errors import InputError
from lookback.generation.reading import Reader, inference
from lookback.generation.sampling import Sampling, probabilities, sample
from lookback.generation.stopping import TextStream, checked_stops
from lookback.models import LanguageModel
from lookback.tokenizers import Tokenizer

Reason = Literal["stop", "length", "end"]


@dataclass(frozen=True)
class Sample:
    """What was written after one prompt, and why it ended.

    ``token_ids`` are all new tokens but the end token; ``text`` leaves out a stop string that was met and a character
    that was not finished.
    """

    token_ids: list[int]
    text: str
    reason: Reason


@dataclass(frozen=True)
class Generated:
    """A sample for every prompt, and what it took.

    ``tokens`` are the new ones; ``work`` is the number of tokens that went through the model, in prefill and steps;
    ``state_bytes`` is what the state held of each row when it ended, summed (0 without a state). The last token of a
    row has not been read, so it is in neither.
    """

    samples: list[Sample]
    seconds: float
    tokens: int
    work: int
    state_bytes: int

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all rows a second, prefill included."""
        return self.tokens / self.seconds if self.seconds else 0.0


@dataclass
class _Row:
    number: int
    ids: list[int]  # the prompt, then the new tokens
    longest: int
    stream: TextStream
    generator: np.random.Generator
    reason: Reason | None = None

    def take(self, token: int, ends: Collection[int]) -> str:
        """Add a token; gives the text that may be shown and sets the reason if it was the last."""
        if token in ends:
            self.reason = "end"
            return self.stream.finish()
        self.ids.append(token)
        shown = self.stream.push(token)
        if self.stream.stopped:
            self.reason = "stop"
        elif len(self.ids) == self.longest:
            self.reason = "length"
            shown += self.stream.finish()
        return shown


def generate(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    sampling: Sampling,
    end: int | Collection[int] | None,
    seed: int = 0,
    stop: Sequence[str] = (),
    banned: Sequence[int] = (),
    cache: bool = True,
    slide: bool = False,
    chunk: int = 512,
    anyway: bool = False,
    on_text: Callable[[int, str], None] | None = None,
) -> Generated:
    """Write on from each prompt, all at once: the same loop for GPT, RNN, LSTM and GRU.

    A row ends at the ``end`` token (or one of several), before the first stop string, after ``max_new_tokens``, or when
    prompt and new tokens fill the model's context. With ``slide`` it then goes on from the newest tokens that fit, read
    anew at each step. ``cache=False`` reads everything anew at every step and gives the same tokens. Row i draws from a
    generator of (``seed``, i), whatever rows stand beside it. The mask, the unknown token and ``banned`` are never
    drawn. ``on_text(i, text)`` is called with each piece of text as soon as it is certain.

    A BERT is refused, or ``anyway`` writes with it: a mask is put at the end, predicted and replaced, without a state.

    Raises InputError for options that are not allowed, and for a prompt that is empty or longer than the context.
    """
    causal = model.config.causal
    _check(model, prompts, max_new_tokens, seed, chunk, slide, anyway)
    stops = checked_stops(stop)
    rows = [
        _Row(
            number,
            list(prompt),
            _longest(model, len(prompt) + max_new_tokens, slide),
            TextStream(tokenizer, stops, prompt),
            np.random.Generator(np.random.Philox(key=np.array([seed, number], dtype=np.uint64))),
        )
        for number, prompt in enumerate(prompts)
    ]
    # A BERT never learnt where a text ends: in its training the end token is never predicted.
    ends = frozenset((end,) if isinstance(end, int) else end or ())
    never = [tokenizer.roles.get("mask"), tokenizer.unknown, *banned, *(() if causal else ends)]
    reader = Reader(model, cache=cache and causal, chunk=chunk, suffix=() if causal else (tokenizer.mask,))
    began = time.perf_counter()
    with inference(model):
        _write(rows, reader, sampling, ends, _banned(model, tokenizer, never), on_text)
    seconds = time.perf_counter() - began
    samples = [
        Sample(row.ids[len(prompt) :], row.stream.text, row.reason or "length")
        for row, prompt in zip(rows, prompts, strict=True)
    ]
    tokens = sum(len(sample.token_ids) for sample in samples)
    return Generated(samples, seconds, tokens, reader.work, reader.state_bytes)


def _write(
    rows: list[_Row],
    reader: Reader,
    sampling: Sampling,
    ends: Collection[int],
    banned: Bool[Tensor, "V"],
    on_text: Callable[[int, str], None] | None,
) -> None:
    """Go on until every row has ended; a row that ends leaves the batch."""
    rows = [row for row in rows if len(row.ids) < row.longest]
    while rows:
        ids = [row.ids for row in rows]
        logits = reader.logits(ids).masked_fill(banned, -torch.inf)
        tokens = sample(probabilities(logits, sampling, ids), [row.generator for row in rows])
        for row, token in zip(rows, tokens.tolist(), strict=True):
            text = row.take(token, ends)
            if text and on_text is not None:
                on_text(row.number, text)
        going = [at for at, row in enumerate(rows) if row.reason is None]
        if len(going) < len(rows):
            reader.drop(going)
            rows = [rows[at] for at in going]


def _longest(model: LanguageModel, wished: int, slide: bool) -> int:
    context = model.config.context
    return wished if context is None or slide else min(wished, context)


def _banned(model: LanguageModel, tokenizer: Tokenizer, never: Sequence[int | None]) -> Bool[Tensor, "V"]:
    """True at tokens that are never drawn, and past the tokenizer's last id (a vocabulary may be rounded up)."""
    banned = torch.arange(model.config.vocabulary, device=model.device) >= tokenizer.size
    banned[[token for token in never if token is not None]] = True
    return banned


def _check(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    seed: int,
    chunk: int,
    slide: bool,
    anyway: bool,
) -> None:
    config = model.config
    if not config.causal and not anyway:
        raise InputError(
            "a {family} read both sides of every gap in training and has no probabilities for what follows a text, so "
            "it can't write well; use fill for masks, or --anyway to see what comes of it",
            family=config.family,
        )
    if max_new_tokens < 0:
        raise InputError("the number of new tokens is {got}; it must be 0 or more", got=max_new_tokens)
    if not 0 <= seed < 1 << 64:
        raise InputError("the seed is {got}; it must be from 0 to 2⁶⁴ − 1", got=seed)
    if chunk < 1:
        raise InputError("the chunk is {got} tokens; it must be at least 1", got=chunk)
    if not prompts or not all(prompts):
        raise InputError("a prompt is empty; give at least one token to go on from")
    longest = max(map(len, prompts))
    if config.context is not None and longest > config.context and not slide:
        raise InputError(
            "the prompt has {got} tokens, more than this model's context of {context}; shorten it, or use --slide to "
            "go on from its newest ones",
            got=longest,
            context=config.context,
        )
