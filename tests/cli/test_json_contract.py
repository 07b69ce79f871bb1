"""``--json``: the keys that other programs rely on, on the one line of standard output."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command_line import FAMILIES, TINY, Run, the_object


@pytest.mark.parametrize("family", ["gpt", "bert", "lstm"])
def test_train(run: Run, text: Path, tmp_path: Path, family: str) -> None:
    out = tmp_path / "model"
    record = the_object(run("train", text, "--model", family, *TINY, "--out", out, "--json"))
    assert record.keys() >= {"out", "family", "parameters", "tokens_seen", "seconds", "held_out"}
    assert (record["out"], record["family"], record["tokens_seen"]) == (str(out), family, 4 * 2 * 16)
    assert record["parameters"] > 1000 and record["seconds"] > 0
    assert record["held_out"].keys() == {"nats_per_token", "bits_per_byte"}
    assert all(0 < value < 10 for value in record["held_out"].values())


@pytest.mark.slow
def test_train_as_a_process_keeps_standard_output_for_the_object(process: Run, text: Path, tmp_path: Path) -> None:
    """Also where the terminal has no Chinese: the samples of text that training shows are spelt out then."""
    options = (*TINY, "--evaluate-every", "2", "--out", "model", "--json")
    ended = process("train", text, *options, PYTHONIOENCODING="ascii")
    assert the_object(ended)["out"] == "model"
    assert "step 2: loss" in ended.err and "step 4: loss" in ended.err
    assert "\\u" in ended.err and ended.err.isascii()
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_train_with_nothing_held_out(run: Run, text: Path, tmp_path: Path) -> None:
    record = the_object(run("train", text, *TINY, "--hold-out", "none", "--out", tmp_path / "model", "--json"))
    assert record["held_out"] is None


@pytest.mark.parametrize("family", FAMILIES)
def test_evaluate(run: Run, models: dict[str, Path], text: Path, family: str) -> None:
    record = the_object(run("evaluate", models[family], text, "--limit", "50", "--json"))
    assert record.keys() >= {"nats_per_token", "perplexity", "bits_per_byte", "tokens", "bytes"}
    assert record["tokens"] == 50 and isinstance(record["bytes"], int)
    assert record["perplexity"] == pytest.approx(math.exp(record["nats_per_token"]))
    nats = record["bits_per_byte"] * math.log(2) * record["bytes"]
    assert nats == pytest.approx(record["nats_per_token"] * record["tokens"])
    if family == "bert":
        assert 0 <= record["masked_accuracy"] <= 1 and record["pseudo_perplexity"] == record["perplexity"]


def test_what_training_reports_is_what_evaluate_finds(run: Run, models: dict[str, Path], text: Path) -> None:
    kept = json.loads((models["gpt"] / "lookback.json").read_text(encoding="utf-8"))["held_out"]
    record = the_object(run("evaluate", models["gpt"], text, "--split", "held-out", "--json"))
    assert {name: record[name] for name in kept} == pytest.approx(kept, rel=1e-9)


@pytest.mark.parametrize("family", ["gpt", "rnn", "lstm", "gru"])
def test_generate(run: Run, models: dict[str, Path], family: str) -> None:
    options = ("--max-new-tokens", "6", "--samples", "2", "--json")
    record = the_object(run("generate", models[family], "床前", "白日依山", *options))
    assert record.keys() >= {"samples", "tokens_per_second", "state_bytes"}
    assert len(record["samples"]) == 4 and record["state_bytes"] > 0
    for sample in record["samples"]:
        assert sample.keys() >= {"text", "token_ids", "reason"}
        assert sample["reason"] in ("stop", "length", "end")
        assert len(sample["token_ids"]) == 6 or sample["reason"] == "end"
        assert len(sample["text"]) == len(sample["token_ids"])


def test_generate_streams_the_prompt_and_what_follows(run: Run, models: dict[str, Path]) -> None:
    options = ("--max-new-tokens", "6", "--temperature", "0")
    (sample,) = the_object(run("generate", models["gpt"], "床前", *options, "--json"))["samples"]
    shown = run("generate", models["gpt"], "床前", *options)
    assert shown.code == 0
    assert shown.out == f"床前{sample['text']}\n"
    assert "tokens/s" in shown.err


def test_no_cache_gives_the_same_tokens(run: Run, models: dict[str, Path]) -> None:
    options = ("--max-new-tokens", "20", "--seed", "7", "--json")
    for family in ("gpt", "gru"):
        ended = [run("generate", models[family], "床前", *options, cache) for cache in ("--cache", "--no-cache")]
        cached, plain = (the_object(one)["samples"] for one in ended)
        assert cached == plain


def test_a_prompt_longer_than_the_context_slides(run: Run, models: dict[str, Path]) -> None:
    for family, options in (("gpt", ("--slide",)), ("lstm", ())):
        ended = run("generate", models[family], "床前明月光" * 20, "--max-new-tokens", "5", "--json", *options)
        (sample,) = the_object(ended)["samples"]
        assert len(sample["token_ids"]) == 5 or sample["reason"] == "end"


def test_fill(run: Run, models: dict[str, Path]) -> None:
    record = the_object(run("fill", models["bert"], "床前明[MASK]光，[MASK]是", "--best", "3", "--json"))
    assert record.keys() >= {"fills"}
    assert [len(place) for place in record["fills"]] == [3, 3]
    for place in record["fills"]:
        probabilities = [choice["probability"] for choice in place]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(choice.keys() >= {"text", "probability"} and len(choice["text"]) == 1 for choice in place)


def test_a_bert_writes_if_told_to_anyway(run: Run, models: dict[str, Path]) -> None:
    record = the_object(run("generate", models["bert"], "床前", "--anyway", "--max-new-tokens", "3", "--json"))
    assert len(record["samples"][0]["token_ids"]) == 3 and record["state_bytes"] == 0


def test_corpora(run: Run) -> None:
    record = the_object(run("corpora", "--json"))
    assert {corpus["name"] for corpus in record["corpora"]} == {"tang", "shakespeare"}
    assert record["prepared"].keys() == {"folder", "bytes"}


def test_clearing_the_prepared_files(run: Run, models: dict[str, Path], text: Path, tmp_path: Path) -> None:
    own = {"LOOKBACK_CACHE": str(tmp_path / "cache")}
    run("evaluate", models["gpt"], text, "--limit", "5", **own)
    assert the_object(run("corpora", "--json", **own))["prepared"]["bytes"] > 0
    assert the_object(run("corpora", "--clear", "--json", **own))["prepared"]["bytes"] == 0


def test_models(run: Run, models: dict[str, Path], tmp_path: Path) -> None:
    record = the_object(run("models", models["gpt"].parent, "--json"))
    assert {model["family"] for model in record["models"]} == set(FAMILIES)
    assert "tiny" in record["presets"] and "gpt" in record["families"]
    assert the_object(run("models", tmp_path / "nothing here", "--json"))["models"] == []


def test_models_lists_what_it_cannot_read(run: Run, tmp_path: Path) -> None:
    for number, contents in enumerate(["{", "[]", "{}", '{"family": "gpt", "parameters": "many"}', "\0"]):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "lookback.json").write_text(contents, encoding="utf-8")
    assert {model["family"] for model in the_object(run("models", tmp_path, "--json"))["models"]} == {"?"}
    assert run("models", tmp_path).code == 0
