"""Two warnings: the model has memorised; the model sees its answers. And when neither may come."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import CHARACTERS

from lookback.data import Prepared, TokenFile
from lookback.nn.mask import At, Causal, Readable
from lookback.session import train
from lookback.tokenizers import learn
from lookback.training import Event, HeldOut, Warned
from lookback.training.watch import Watch

LINE = "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n"
MEMORISED, LEAK = "begun to memorise", "sees its answers"


def watch(train_text: str, held_out_text: str, *, masked: bool = False) -> Watch:
    tokenizer = learn(lambda: iter([train_text + held_out_text]), "character")
    parts = [
        TokenFile(tokenizer.ids(text).astype(np.uint16), 1, len(text.encode())) for text in (train_text, held_out_text)
    ]
    return Watch(tokenizer, Prepared(parts[0], parts[1], Path()), masked)


def said(watch: Watch, loss: float, held_out: HeldOut | None) -> list[str]:
    return [template.format(**values) for template, values in watch.after(loss, held_out)]


def chance(length: int, seed: int = 0) -> str:
    """Random text: at least 4 bits a character, in 3 bytes."""
    return "".join(random.Random(seed).choices(CHARACTERS, k=length))


def test_each_warning_comes_once() -> None:
    watched = watch(chance(3000), chance(1000, 1))
    (memorised,) = said(watched, 0.5, HeldOut(3.0, 1.4, 100))
    assert MEMORISED in memorised
    assert "0.50 nats" in memorised and "3.00" in memorised
    (leak,) = said(watched, 0.1, HeldOut(0.1, 0.05, 100))
    assert LEAK in leak
    assert "0.050 bits a byte" in leak
    assert said(watched, 0.1, HeldOut(3.0, 0.05, 100)) == []


def test_a_healthy_run_is_left_in_peace() -> None:
    watched = watch(chance(3000), chance(1000, 1))
    for loss, nats in [(2.8, 2.77), (2.77, 2.77), (2.0, 2.77), (3.5, 2.9)]:
        assert said(watched, loss, HeldOut(nats, nats / np.log(2) / 3, 100)) == []
    assert said(watched, 0.0, None) == []


@pytest.mark.parametrize("repeats", [20, 60, 6000])
def test_text_that_repeats_may_cost_nothing(repeats: int) -> None:
    """A compressor that sees the held-out part alone must pay for the line once; a model has learnt it before."""
    train_text, held_out_text = LINE * repeats, LINE * max(1, repeats // 10)
    assert said(watch(train_text, held_out_text), 0.0001, HeldOut(0.001, 0.0005, 100)) == []


def test_text_by_a_rule_may_cost_little() -> None:
    """Counting is all rule, which a model may find and LZMA does not."""
    text = " ".join(map(str, range(10_000)))
    cut = len(text) * 9 // 10
    assert said(watch(text[:cut], text[cut:]), 0.01, HeldOut(0.01, 0.0144, 100)) == []


def test_a_masked_model_may_know_more_than_a_compressor() -> None:
    watched = watch(chance(3000), chance(1000, 1), masked=True)
    assert said(watched, 0.1, HeldOut(0.1, 0.05, 100)) == []
    assert MEMORISED in said(watched, 0.1, HeldOut(3.0, 0.05, 100))[0]


def warnings(text: str, folder: Path, **options: Any) -> list[str]:
    """The warnings of a real run."""
    found: list[str] = []

    def report(event: Event) -> None:
        if isinstance(event, Warned):
            found.append(event.template.format(**event.values))

    (folder / "text.txt").write_text(text, encoding="utf-8")
    plan = {"preset": "tiny", "length": 16, "batch": 16, "rate": 1e-2, "decay": "none", "evaluate_tokens": 256}
    train(folder / "text.txt", out=folder / "run", seed=1, report=report, **{**plan, **options})
    return found


def sees_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the causal mask out of a GPT."""
    monkeypatch.setattr(Readable, "shape", property(lambda self: "everything" if self.at.dense else "tensor"))

    def allowed(self: Causal, at: At) -> torch.Tensor:
        return torch.ones(1, at.query.shape[1], at.key.shape[1], dtype=torch.bool)

    monkeypatch.setattr(Causal, "allowed", allowed)


def test_a_gpt_without_its_mask_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sees_everything(monkeypatch)
    found = warnings(chance(6000), tmp_path, model="gpt", steps=100, evaluate_every=50)
    assert [LEAK in one for one in found] == [True]


def test_a_gpt_with_its_mask_is_not(tmp_path: Path) -> None:
    assert warnings(chance(6000), tmp_path, model="gpt", steps=100, evaluate_every=50) == []


@pytest.mark.parametrize("family", ["gpt", "lstm"])
def test_a_run_on_text_that_repeats_is_left_in_peace(family: str, tmp_path: Path) -> None:
    assert warnings(LINE * 60, tmp_path, model=family, steps=100, evaluate_every=50) == []


def test_a_run_that_memorises_is_told_so(tmp_path: Path) -> None:
    found = warnings(chance(300), tmp_path, model="gpt", steps=80, evaluate_every=40)
    assert [MEMORISED in one for one in found] == [True]
