"""The demo from end to end, small, on a person's own file."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, the_object

SMALL = ("--minutes", "0.03", "--parameters", "60k")


@pytest.mark.slow
def test_the_demo_measures_what_it_says(run: Run, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    record = the_object(run("demo", "--corpus", text, *SMALL, "--out", out, "--json"))
    rows = {row["family"]: row for row in record["models"]}
    assert rows.keys() == {"rnn", "lstm", "gpt", "bert"} == {path.name for path in out.iterdir()}
    for row in rows.values():
        assert row["parameters"] == pytest.approx(60_000, rel=0.02)
        assert row["bits_per_byte"] > 0 and row["tokens_seen"] > 0
    assert rows["bert"]["state_bytes"] is None
    assert rows["rnn"]["state_bytes"] < rows["lstm"]["state_bytes"] < rows["gpt"]["state_bytes"]
    assert {proof["family"] for proof in record["proofs"]} == {"rnn", "lstm", "gpt"}
    for proof in record["proofs"]:
        assert proof["cached_minus_uncached"] < 1e-4
        assert proof["leak"] == 0
        assert proof["work_with_cache"] < proof["work_without_cache"] / 50


@pytest.mark.slow
def test_the_demo_tells_its_story(run: Run, text: Path, tmp_path: Path) -> None:
    (tmp_path / "demo" / "gpt").mkdir(parents=True)  # an earlier one
    ended = run("--lang", "zh", "demo", "--corpus", text, *SMALL, "--out", tmp_path / "demo")
    assert ended.code == 0, ended.err
    told = (
        "RNN",
        "LSTM",
        "GPT",
        "各模型续写：",
        "BERT 填空：",
        "刚刚验证的结果：",
        f"generate {tmp_path / 'demo' / 'gpt'}",
    )
    assert [words for words in told if words not in ended.out] == []
