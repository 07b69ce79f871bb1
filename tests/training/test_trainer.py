"""The loop: what it writes down, which weights it keeps, when it ends, and what it leaves alone."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_runs import CHARACTERS, SMALL, StoppedError, metrics, stop_after

from lookback.data import open_corpus
from lookback.errors import InputError
from lookback.models import FAMILIES
from lookback.session import Session, load, train
from lookback.session.cache import tokens_of
from lookback.training import Evaluation, Event, Objective, Recipe, Step, held_out_score
from lookback.training import trainer as trainer_module


def run(source: Path, out: Path, **options: Any) -> Session:
    return train(source, out=out, **{**SMALL, "model": "gru", "steps": 12, **options})


def test_metrics_record_every_step_and_evaluation(documents: Path, tmp_path: Path) -> None:
    told: list[Event] = []
    session = run(documents, tmp_path, report=told.append)
    lines = metrics(tmp_path)
    steps = [line for line in lines if "loss" in line]
    evaluations = [line for line in lines if "loss" not in line]
    recipe = Recipe(**session.record["recipe"])
    assert [line["step"] for line in steps] == list(range(1, 13))
    assert [line["tokens"] for line in steps] == [32 * n for n in range(1, 13)]
    assert [line["rate"] for line in steps] == [recipe.rate_at(n / 12) for n in range(12)]
    assert [line["step"] for line in evaluations] == [5, 10, 12]
    for line, since in zip(evaluations, (range(5), range(5, 10), range(10, 12)), strict=True):
        assert line["train_nats_per_token"] == pytest.approx(np.mean([steps[n]["loss"] for n in since]))
        assert line["bits_per_byte"] > 0
        assert set("".join(line["sample"])) <= set(CHARACTERS)
    assert steps[0]["loss"] == pytest.approx(np.log(session.tokenizer.size), rel=0.05)
    assert [(e.step, e.loss) for e in told if isinstance(e, Step)] == [(n["step"], n["loss"]) for n in steps]
    assert [e.best for e in told if isinstance(e, Evaluation)] == [line["best"] for line in evaluations]


@pytest.mark.parametrize("family", ["gru", "bert"])
def test_the_best_weights_stand_at_the_top_and_the_last_in_the_checkpoint(family: str, tmp_path: Path) -> None:
    """On a text this short the held-out loss falls and then rises."""
    text = tmp_path / "text.txt"
    text.write_text("".join(random.Random(0).choices(CHARACTERS, k=200)), encoding="utf-8")
    options = {"model": family, "width": 32, "rate": 3e-2, "steps": 60, "evaluate_every": 10, "decay": "none"}
    session = run(text, tmp_path / "run", **options)
    nats = {line["step"]: line["nats_per_token"] for line in metrics(tmp_path / "run") if "best" in line}
    best = min(nats, key=nats.__getitem__)
    assert best < 60
    assert nats[60] > nats[best] + 0.1
    recipe = Recipe(**session.record["recipe"])
    objective = Objective.of(session.model, session.tokenizer, recipe)
    data = tokens_of(open_corpus(text), session.tokenizer, "position", 0.1)
    assert data.held_out is not None
    assert held_out_score(session.model, data.held_out, objective).nats_per_token == nats[best]
    session.model.load_state_dict(load_file(tmp_path / "run" / "checkpoint" / "model.safetensors"))
    assert held_out_score(session.model, data.held_out, objective).nats_per_token == nats[60]
    assert session.record["best_step"] == best
    assert [line["best"] for line in metrics(tmp_path / "run") if "best" in line] == [
        nats[step] < min([nats[other] for other in nats if other < step], default=np.inf) for step in nats
    ]


def test_without_held_out_text_the_training_loss_decides(documents: Path, tmp_path: Path) -> None:
    session = run(documents, tmp_path, hold_out="none")
    losses = {line["step"]: line["train_nats_per_token"] for line in metrics(tmp_path) if "best" in line}
    assert session.record["best_step"] == min(losses, key=losses.__getitem__)
    assert session.record["held_out"] is None


def test_a_run_ends_after_so_many_tokens(documents: Path, tmp_path: Path) -> None:
    """32 tokens a step: the fourth step passes 100."""
    session = run(documents, tmp_path, steps=None, tokens=100)
    assert (session.record["step"], session.record["tokens_seen"]) == (4, 128)


def test_minutes_end_on_time_and_the_rate_follows_the_clock(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock shows 1.5 s more at each look, of which there is one a step: 15 s are 10 steps."""
    clock = SimpleNamespace(now=1000.0)

    def look() -> float:
        clock.now += 1.5
        return float(clock.now)

    monkeypatch.setattr(trainer_module, "time", SimpleNamespace(monotonic=look))
    options = {"steps": None, "minutes": 0.25, "save_every": 2}
    session = run(documents, tmp_path / "whole", **options)
    assert (session.record["step"], session.record["seconds"]) == (10, 15.0)
    recipe = Recipe(**session.record["recipe"])
    rates = [line["rate"] for line in metrics(tmp_path / "whole") if "rate" in line]
    assert rates == pytest.approx([recipe.rate_at(n / 10) for n in range(10)])
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "broken", **options, report=stop_after(7))
    clock.now += 500.0  # The time between two sittings does not count.
    session = train(documents, out=tmp_path / "broken", resume=True)
    assert (session.record["step"], session.record["seconds"]) == (10, 15.0)


def test_a_gradient_that_is_not_finite_stops_the_run_before_it_spoils_the_weights(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip, calls = torch.nn.utils.clip_grad_norm_, iter(range(100))

    def overflow(parameters: Any, longest: float) -> torch.Tensor:
        norm = clip(parameters, longest)
        return norm if next(calls) < 7 else norm * torch.inf

    monkeypatch.setattr("torch.nn.utils.clip_grad_norm_", overflow)
    with pytest.raises(InputError, match="not finite at step 7; lower the learning rate"):
        run(documents, tmp_path, save_every=1)
    weights = load_file(tmp_path / "checkpoint" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert metrics(tmp_path)[-1]["step"] == 7


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_windows_of_a_token_or_two(family: str, length: int, documents: Path, tmp_path: Path) -> None:
    """Nobody needs them, but the sample of text must not run past a context so short."""
    options = {"context": length} if family in ("gpt", "bert") else {}
    run(documents, tmp_path, model=family, length=length, steps=1, **options)
    assert isinstance(metrics(tmp_path)[-1]["sample"], str)


@pytest.mark.parametrize("family", ["gpt", "bert"])
def test_text_too_short_for_one_window_is_refused_before_anything_is_written(family: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("天地玄黄", encoding="utf-8")
    with pytest.raises(InputError, match="one window needs"):
        run(text, tmp_path / "run", model=family)
    assert not (tmp_path / "run").exists()


def test_a_length_beyond_the_context_is_refused(documents: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training length of 9 is more than the model's context of 8"):
        run(documents, tmp_path / "run", model="gpt", length=9, context=8)
    assert not (tmp_path / "run").exists()


def everything_global() -> dict[str, Any]:
    """What a run could have changed behind one's back."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": str(np.random.get_state()),
        "random": random.getstate(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "grad": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "errors": np.geterr(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    }


@pytest.mark.parametrize("family", ["gpt", "bert", "lstm"])
def test_nothing_global_is_touched(family: str, documents: Path, tmp_path: Path) -> None:
    """Rule 12; dropout draws from the global generator, which is given back as it was, also after an error."""
    torch.manual_seed(99)
    before = everything_global()
    run(documents, tmp_path / "whole", model=family, dropout=0.5, micro_batch=3)
    assert everything_global() == before
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "broken", model=family, dropout=0.5, report=stop_after(3))
    assert everything_global() == before


def test_what_was_drawn_before_changes_nothing(documents: Path, tmp_path: Path) -> None:
    """A run depends on its seed alone."""
    for name, seed in (("one", 1), ("two", 2)):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        run(documents, tmp_path / name, dropout=0.5)
    assert (tmp_path / "one" / "metrics.jsonl").read_bytes() == (tmp_path / "two" / "metrics.jsonl").read_bytes()


def test_the_session_that_comes_back_is_the_one_that_is_loaded(documents: Path, tmp_path: Path) -> None:
    made, loaded = run(documents, tmp_path, dropout=0.5), load(tmp_path)
    assert not made.model.training
    assert made.record == loaded.record
    for one, other in zip(made.model.parameters(), loaded.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert made.generate("天地", max_new_tokens=5).samples == loaded.generate("天地", max_new_tokens=5).samples
