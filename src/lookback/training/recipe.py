"""How a model is trained: every setting that decides the result, in one frozen record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lookback.errors import InputError

Decay = Literal["cosine", "linear", "none"]


@dataclass(frozen=True)
class Recipe:
    """One of ``steps``, ``tokens`` and ``minutes`` says when training ends.

    A step reads ``batch`` windows of ``length`` tokens, in micro-batches of at most ``micro_batch`` windows whose
    gradients are added up. The learning rate rises linearly over the first ``warmup`` (a fraction of the run), then
    falls to ``final_rate`` times itself along ``decay``. Evaluation reads at most ``evaluate_tokens`` held-out tokens
    every ``evaluate_every`` steps; a checkpoint is written then and every ``save_every`` steps.
    """

    length: int
    batch: int
    seed: int = 0
    steps: int | None = None
    tokens: int | None = None
    minutes: float | None = None
    micro_batch: int | None = None
    rate: float = 1e-3
    final_rate: float = 0.1
    warmup: float = 0.05
    decay: Decay = "cosine"
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    clip: float = 1.0
    mask_rate: float = 0.15
    cross_documents: bool = False
    evaluate_every: int = 250
    evaluate_tokens: int = 20_000
    save_every: int | None = None

    def __post_init__(self) -> None:
        ends = [name for name in ("steps", "tokens", "minutes") if getattr(self, name) is not None]
        if len(ends) != 1:
            raise InputError(
                "training ends by one of steps, tokens and minutes; {got} given: set exactly one",
                got=" and ".join(ends) or "none was",
            )
        counts = ("length", "batch", "evaluate_every", "evaluate_tokens", "micro_batch", "save_every")
        for name in (*counts, "clip", *ends):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError("{name} is {got}; it must be more than 0", name=name, got=value)
        if not 0 <= self.seed < 1 << 64:
            raise InputError("the seed is {got}; it must be from 0 to 2⁶⁴ − 1", got=self.seed)
        for name, low, high in (
            ("rate", 0.0, 10.0),
            ("final_rate", 0.0, 1.0),
            ("warmup", 0.0, 1.0),
            ("weight_decay", 0.0, 10.0),
            ("beta1", 0.0, 0.9999),
            ("beta2", 0.0, 0.99999),
            ("mask_rate", 0.0, 1.0),
        ):
            if not low <= getattr(self, name) <= high:
                raise InputError(
                    "{name} is {got}; it must be from {low} to {high}",
                    name=name,
                    got=getattr(self, name),
                    low=low,
                    high=high,
                )
        if self.decay not in ("cosine", "linear", "none"):
            raise InputError("{got} is not a decay; allowed: cosine, linear, none", got=self.decay)

    @property
    def tokens_per_step(self) -> int:
        """batch · length."""
        return self.batch * self.length

    def fraction(self, step: int, seconds: float) -> float:
        """How much of the run is behind, from 0 to 1, after ``step`` steps and ``seconds`` of training."""
        if self.steps is not None:
            return min(1.0, step / self.steps)
        if self.tokens is not None:
            return min(1.0, step * self.tokens_per_step / self.tokens)
        assert self.minutes is not None
        return min(1.0, seconds / (60 * self.minutes))

    def rate_at(self, fraction: float) -> float:
        """The learning rate there: linear warm-up, then cosine (Loshchilov & Hutter 2017) or linear decay."""
        if fraction < self.warmup:
            # The first step must learn something, so the rise starts a little above 0.
            return self.rate * max(fraction / self.warmup, 0.01)
        if self.decay == "none" or self.warmup >= 1:
            return self.rate
        gone = (fraction - self.warmup) / (1 - self.warmup)
        left = 0.5 * (1 + math.cos(math.pi * gone)) if self.decay == "cosine" else 1 - gone
        return self.rate * (self.final_rate + (1 - self.final_rate) * left)
