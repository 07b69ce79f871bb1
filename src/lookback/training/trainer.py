"""The training loop: one function from (model, data, recipe) to a trained model, which can be stopped and gone on with.

An unbroken run and one that was stopped, or killed, any number of times end bit for bit the same (same machine and
threads; a run that ends by minutes is the exception, as its schedule follows the clock).
"""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
import torch

from lookback.data import Prepared
from lookback.data.batches import Batch
from lookback.errors import InputError
from lookback.files import sweep, write_aside
from lookback.models import LanguageModel
from lookback.tokenizers import Tokenizer
from lookback.training import checkpoint
from lookback.training.checkpoint import Progress
from lookback.training.heldout import HeldOut, held_out_score
from lookback.training.objective import Objective, loss_sum, scored
from lookback.training.recipe import Recipe
from lookback.training.sample import sample_text
from lookback.training.watch import Watch
from lookback.weights import WEIGHTS, save_weights

METRICS = "metrics.jsonl"
End = Literal["finished", "interrupted"]


@dataclass(frozen=True)
class Step:
    """What the report is told after a step: ``loss`` in nats a token, ``fraction`` of the run that is behind."""

    step: int
    tokens: int
    seconds: float
    fraction: float
    loss: float
    rate: float
    gradient_norm: float


@dataclass(frozen=True)
class Evaluation:
    """What the report is told after an evaluation; ``loss`` is the mean training loss since the one before."""

    step: int
    loss: float
    held_out: HeldOut | None
    best: bool
    sample: str


@dataclass(frozen=True)
class Warned:
    """A warning: an English template and its values."""

    template: str
    values: dict[str, object]


Event = Step | Evaluation | Warned
Report = Callable[[Event], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    end: End
    progress: Progress


@dataclass
class Trainer:
    """One run in one folder: the best model at its top, a checkpoint of the last step, and ``metrics.jsonl``."""

    model: LanguageModel
    tokenizer: Tokenizer
    data: Prepared
    recipe: Recipe
    folder: Path
    report: Report = lambda event: None
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.objective = Objective.of(self.model, self.tokenizer, self.recipe)
        self.optimizer = _optimizer(self.model, self.recipe)
        self.watch = Watch(self.tokenizer, self.data, self.objective.masked)

    def check(self) -> None:
        """Raise InputError now, before anything is written, if the text is too short for one batch."""
        self.objective.batch(self.data.train, 0)
        if self.objective.masked and self.data.held_out is not None:
            self.objective.batch(self.data.held_out, 0)

    def resume(self) -> None:
        """Go back to the last checkpoint, else to the beginning, and drop what the metrics say of later steps."""
        sweep(self.folder)
        if checkpoint.exists(self.folder):
            self.progress = checkpoint.load(self.folder, self.model, self.optimizer)
        path = self.folder / METRICS
        if path.exists():
            kept = [line for line in path.read_bytes().split(b"\n") if _step_of(line) <= self.progress.step]
            with write_aside(path) as aside:
                aside.write_bytes(b"".join(line + b"\n" for line in kept))

    def run(self) -> Outcome:
        """Train to the end of the recipe, or until SIGINT or SIGTERM; either way the last step is saved."""
        self.model.train()
        before, started = self.progress.seconds, time.monotonic()
        with _interruptible() as interrupted:
            while (fraction := self.recipe.fraction(self.progress.step, self.progress.seconds)) < 1:
                self._step(self.recipe.rate_at(fraction))
                self.progress.seconds = before + time.monotonic() - started
                self._after_step()
                if interrupted():
                    break
        finished = self.recipe.fraction(self.progress.step, self.progress.seconds) >= 1
        if not finished:
            self._save()
        return Outcome("finished" if finished else "interrupted", self.progress)

    def _step(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        batch = self.objective.batch(self.data.train, self.progress.step)
        count = scored(batch)
        nats = self._backward(batch, count)
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip))
        if not (math.isfinite(nats) and math.isfinite(norm)):
            raise InputError(
                "the loss is not finite at step {step}; lower the learning rate (it is {rate})",
                step=self.progress.step,
                rate=f"{rate:g}",
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.tokens += self.recipe.tokens_per_step
        self.progress.recent_nats += nats
        self.progress.recent_tokens += count
        self._last = (nats / max(count, 1), rate, norm)

    def _backward(self, batch: Batch, count: int) -> float:
        """Gradients of the loss: a sum over scored tokens divided by their number, however the batch is cut."""
        size = self.recipe.micro_batch or self.recipe.batch
        nats = 0.0
        for part, start in enumerate(range(0, self.recipe.batch, size)):
            micro = batch.rows(slice(start, start + size))
            with _dropout_seed(self.model, self.recipe.seed, self.progress.step, part):
                loss = loss_sum(self.model, micro)
            (loss / max(count, 1)).backward()  # type: ignore[no-untyped-call]
            nats += loss.item()
        return nats

    def _after_step(self) -> None:
        step, recipe = self.progress.step, self.recipe
        loss, rate, norm = self._last
        fraction = recipe.fraction(step, self.progress.seconds)
        self.report(Step(step, self.progress.tokens, self.progress.seconds, fraction, loss, rate, norm))
        self._log({"step": step, "tokens": self.progress.tokens, "loss": loss, "rate": rate, "gradient_norm": norm})
        if step % recipe.evaluate_every == 0 or fraction >= 1:
            self._evaluate()
            self._save()
        elif recipe.save_every and step % recipe.save_every == 0:
            self._save()

    def _evaluate(self) -> None:
        progress = self.progress
        loss = progress.recent_nats / max(progress.recent_tokens, 1)
        progress.recent_nats, progress.recent_tokens = 0.0, 0
        held_out = (
            None if self.data.held_out is None else held_out_score(self.model, self.data.held_out, self.objective)
        )
        nats = loss if held_out is None else held_out.nats_per_token
        best = progress.best_nats is None or nats < progress.best_nats
        if best:
            progress.best_nats, progress.best_step = nats, progress.step
            save_weights(self.model, self.folder)
        sample = sample_text(self.model, self.tokenizer, self.data.held_out or self.data.train, self.recipe.length)
        record: dict[str, Any] = {"step": progress.step, "train_nats_per_token": loss}
        if held_out is not None:
            record |= {"nats_per_token": held_out.nats_per_token, "bits_per_byte": held_out.bits_per_byte}
        self._log({**record, "best": best, "sample": sample})
        self.report(Evaluation(progress.step, loss, held_out, best, sample))
        for template, values in self.watch.after(loss, held_out):
            self.report(Warned(template, values))

    def _save(self) -> None:
        if not (self.folder / WEIGHTS).exists():
            save_weights(self.model, self.folder)
        checkpoint.save(self.folder, self.model, self.optimizer, self.progress)

    def _log(self, record: dict[str, Any]) -> None:
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _optimizer(model: LanguageModel, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019); biases and gains are not decayed."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(recipe.beta1, recipe.beta2), fused=True)


@contextmanager
def _dropout_seed(model: LanguageModel, seed: int, step: int, part: int) -> Iterator[None]:
    """Dropout drawn from (seed, step, part) alone; the global generator is given back as it was."""
    if not getattr(model.config, "dropout", 0.0):
        yield
        return
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(int(np.random.SeedSequence([seed, step, part]).generate_state(1, np.uint64)[0]))
        yield


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let SIGINT and SIGTERM finish the step at hand; a second SIGINT stops at once."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def catch(number: int, frame: FrameType | None) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    old = {number: signal.signal(number, catch) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(caught)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _step_of(line: bytes) -> float:
    """The step of a line of metrics; a line that a crash or a full disk cut short is later than everything."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
