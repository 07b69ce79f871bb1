"""The same as the commands, through Python: train, load, generate, fill, evaluate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import CHARACTERS, SMALL, write_documents

import lookback as lb
from lookback.errors import InputError
from lookback.evaluation import Score
from lookback.session import Fill, Session

STEPS = {**SMALL, "steps": 4}


@pytest.fixture(scope="module")
def runs(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Session]:
    folder = tmp_path_factory.mktemp("runs")
    return {f: lb.train(documents, model=f, out=folder / f, **STEPS) for f in ("gpt", "lstm", "bert")}


def test_as_the_issue_writes_it(documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(documents, "my.jsonl")
    session = lb.train("my.jsonl", model="gpt", out="runs/x", preset="tiny", steps=2, batch=2, length=8)
    assert isinstance(session, lb.Session)
    m = lb.load("runs/x")
    written = m.generate("天地玄黄", max_new_tokens=5, temperature=0)
    assert written.samples == session.generate("天地玄黄", max_new_tokens=5, temperature=0).samples
    assert len(written.samples) == 1
    assert isinstance(m.evaluate("my.jsonl", split="held-out", stride="window"), Score)
    assert m.record["options"]["source"] == "my.jsonl"


def test_several_prompts_and_samples(runs: dict[str, Session]) -> None:
    session = runs["gpt"]
    together = session.generate(["天地", "玄", ""], samples=2, max_new_tokens=4, seed=5)
    assert len(together.samples) == 6
    heard: dict[int, str] = {}
    again = session.generate(
        ["天地", "玄", ""],
        samples=2,
        max_new_tokens=4,
        seed=5,
        use_cache=False,
        on_text=lambda row, piece: heard.update({row: heard.get(row, "") + piece}),
    )
    assert again.samples == together.samples
    assert [heard.get(row, "") for row in range(6)] == [sample.text for sample in again.samples]


def test_fill(runs: dict[str, Session]) -> None:
    session = runs["bert"]
    fills = session.fill("天[MASK]玄[MASK]", best=3)
    assert [len(place) for place in fills] == [3, 3]
    assert all(isinstance(one, Fill) for place in fills for one in place)
    assert all(one.text in CHARACTERS and 0 < one.probability < 1 for place in fills for one in place)
    assert len(session.fill("[MASK]", best=1, one_by_one=True)) == 1


@pytest.mark.parametrize("family", ["gpt", "lstm"])
@pytest.mark.parametrize("hold_out", ["position", "document"])
def test_evaluate_finds_what_training_reported(family: str, hold_out: str, documents: Path, tmp_path: Path) -> None:
    session = lb.train(documents, model=family, out=tmp_path, hold_out=hold_out, fraction=0.3, **STEPS)
    score = lb.load(tmp_path).evaluate(documents, split="held-out")
    reported = session.record["held_out"]
    assert (score.nats_per_token, score.bits_per_byte) == (reported["nats_per_token"], reported["bits_per_byte"])


def test_the_splits_make_up_the_whole(documents: Path, runs: dict[str, Session]) -> None:
    scores = {split: runs["lstm"].evaluate(documents, split=split) for split in ("all", "train", "held-out")}
    assert scores["train"].bytes + scores["held-out"].bytes == scores["all"].bytes
    assert min(scores["train"].tokens, scores["held-out"].tokens) > 10


def test_a_bert_is_evaluated_by_masks(documents: Path, runs: dict[str, Session]) -> None:
    score = runs["bert"].evaluate(documents, split="held-out")
    assert score.accuracy is not None
    assert runs["bert"].evaluate(documents, split="held-out", stride="window") == score


@pytest.mark.parametrize(("number", "begins"), [(99, False), (100, True)])
def test_a_prompt_stands_at_a_beginning_if_the_model_has_seen_beginnings(
    number: int, begins: bool, tmp_path: Path
) -> None:
    """100 documents are enough; the model of one long file has seen one beginning and does not know what it means."""
    source = write_documents(tmp_path, number)
    session = lb.train(source, model="gru", out=tmp_path / "run", hold_out="none", **STEPS)
    assert lb.load(tmp_path / "run").begins_documents is session.begins_documents is begins
    end, plain = session.tokenizer.end, session.tokenizer.encode("天地").ids
    assert session.ids("天地") == ([end, *plain] if begins else plain)
    assert session.ids("") == [end]


def test_what_is_held_out_does_not_count_as_seen(tmp_path: Path) -> None:
    source = write_documents(tmp_path, 105)
    session = lb.train(source, model="gru", out=tmp_path / "run", fraction=0.5, **STEPS)
    assert not session.begins_documents


def test_special_tokens_in_a_prompt_are_text(runs: dict[str, Session]) -> None:
    with pytest.raises(InputError, match="'<'"):
        runs["gpt"].generate("天<|end|>")


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("generate", {"prompts": "天", "samples": 0}, "samples is 0"),
    ("generate", {"prompts": []}, "there is no prompt"),
    ("generate", {"prompts": "天" * 65}, "the prompt has 65 tokens, more than this model's context of 64"),
    ("generate", {"prompts": "天", "temperature": -1.0}, "temperature"),
    ("fill", {"text": "天[MASK]"}, "reads from the left only"),
    ("evaluate", {"source": "{text}", "split": "test"}, "test is not a split; allowed: all, train, held-out"),
    ("evaluate", {"source": "{text}", "stride": "half"}, "half is not a stride"),
    ("evaluate", {"source": "{text}", "window": 65}, "a window of 65"),
    ("evaluate", {"source": "missing.txt"}, "does not exist"),
]


@pytest.mark.parametrize(("method", "arguments", "said"), REFUSED)
def test_what_cannot_be_honoured_is_refused(
    method: str, arguments: dict[str, Any], said: str, documents: Path, runs: dict[str, Session]
) -> None:
    filled = {k: v.format(text=documents) if isinstance(v, str) else v for k, v in arguments.items()}
    with pytest.raises(InputError, match=said):
        getattr(runs["gpt"], method)(**filled)


def test_a_bert_refuses_what_it_cannot(documents: Path, runs: dict[str, Session]) -> None:
    with pytest.raises(InputError, match="--anyway"):
        runs["bert"].generate("天")
    with pytest.raises(InputError, match=r"no \[MASK\] in the text"):
        runs["bert"].fill("天地")
    with pytest.raises(InputError, match="side by side"):
        runs["bert"].evaluate(documents, stride=3)


def test_nothing_was_held_out(documents: Path, tmp_path: Path) -> None:
    session = lb.train(documents, model="gru", out=tmp_path, hold_out="none", **STEPS)
    with pytest.raises(InputError, match="held nothing out"):
        session.evaluate(documents, split="held-out")


def test_a_folder_in_use_is_left_alone(documents: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(InputError, match="is not empty; choose another --out"):
            lb.train(documents, out=out, **STEPS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    lb.train(documents, model="gru", out=tmp_path / "empty", **STEPS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stepz": 4}, "has no option stepz"),
        ({"model": "cnn"}, "cnn is not a model family"),
        ({"tokenizer": "syllable"}, "syllable is no kind of token"),
        ({"steps": 4, "minutes": 1.0}, "set exactly one"),
        ({"seed": -1}, "the seed is -1"),
        ({"device": "abacus"}, "there is no device abacus"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], said: str, documents: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        lb.train(documents, out=tmp_path / "run", **{**STEPS, **options})
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_of_another_run(documents: Path, runs: dict[str, Session], tmp_path: Path) -> None:
    """By its path, as text or not; and a folder that happens to be called like a kind is not meant."""
    for number, folder in enumerate((runs["gpt"].folder, str(runs["gpt"].folder))):
        session = lb.train(documents, model="gru", out=tmp_path / str(number), tokenizer=folder, **STEPS)
        assert session.tokenizer.fingerprint == runs["gpt"].tokenizer.fingerprint
        assert session.record["options"]["tokenizer"] == str(runs["gpt"].folder)
        lb.train(documents, out=tmp_path / str(number), resume=True, tokenizer=folder)


def test_a_folder_called_like_a_kind_of_token(documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("character").mkdir()
    assert lb.train(documents, model="gru", out="run", tokenizer="character", **STEPS).tokenizer.kind == "character"


def test_load_refuses_what_does_not_belong_together(documents: Path, runs: dict[str, Session], tmp_path: Path) -> None:
    shutil.copytree(runs["gpt"].folder, tmp_path / "run")
    (tmp_path / "text.txt").write_text("天地" * 50, encoding="utf-8")
    other = lb.train(tmp_path / "text.txt", model="gru", out=tmp_path / "other", **STEPS)
    shutil.copy(other.folder / "tokenizer.json", tmp_path / "run")
    with pytest.raises(InputError, match="they do not belong together"):
        lb.load(tmp_path / "run")
    (tmp_path / "run" / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        lb.load(tmp_path / "run")
    with pytest.raises(InputError, match="is not a model folder"):
        lb.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="there is no device abacus"):
        lb.load(runs["gpt"].folder, device="abacus")


@pytest.mark.parametrize(
    "record", ["{", "[]", {"corpus": []}, {"corpus": None}, {"recipe": 5}, {"corpus": {"documents": "many"}}], ids=str
)
def test_a_damaged_record_is_refused(record: Any, runs: dict[str, Session], tmp_path: Path) -> None:
    shutil.copytree(runs["gpt"].folder, tmp_path / "run")
    text = record if isinstance(record, str) else json.dumps(record)
    (tmp_path / "run" / "lookback.json").write_text(text)
    with pytest.raises(InputError, match=r"lookback\.json"):
        lb.load(tmp_path / "run")


def test_a_model_without_a_record_opens(documents: Path, runs: dict[str, Session], tmp_path: Path) -> None:
    shutil.copytree(runs["gpt"].folder, tmp_path / "run")
    (tmp_path / "run" / "lookback.json").unlink()
    session = lb.load(tmp_path / "run")
    assert not session.begins_documents
    assert session.evaluate(documents).tokens > 0


def test_only_the_public_names() -> None:
    assert lb.__all__ == ["InputError", "Session", "load", "train"]
    with pytest.raises(AttributeError, match="no attribute 'models_'"):
        lb.models_  # noqa: B018


IMPORTED = """
import sys, random
import lookback
assert lookback.__version__
heavy = {"torch", "numpy", "tokenizers", "safetensors", "jieba", "rich", "typer"} & sys.modules.keys()
assert not heavy, heavy

import importlib, pkgutil, signal
import numpy as np
import torch

def everything():
    return [torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate(), torch.get_default_dtype(),
            torch.get_num_threads(), torch.get_num_interop_threads(), torch.is_grad_enabled(), np.geterr(),
            torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled(),
            signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.getrecursionlimit()]

before = everything()
names = [module.name for module in pkgutil.walk_packages(lookback.__path__, "lookback.")]
names = [name for name in names if not name.startswith("lookback.cli")]  # rich draws a number when it is imported
for name in names:
    importlib.import_module(name)
assert len(names) > 40
assert everything() == before
assert "jieba" not in sys.modules and "matplotlib" not in sys.modules
"""


def test_importing_costs_nothing_and_touches_nothing() -> None:
    """Rule 12, in a process of its own: `import lookback` imports no torch, and no module of ours moves a setting."""
    ended = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr


def test_a_session_runs_without_gradients(runs: dict[str, Session]) -> None:
    session = runs["gpt"]
    session.generate("天", max_new_tokens=2)
    assert not session.model.training
    assert torch.is_grad_enabled()
