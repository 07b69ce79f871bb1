"""Ctrl-C: training saves first and can be gone on with; everything else ends quietly."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run, environment, the_object, tree

from lookback.session import train

OPTIONS = ("--preset", "tiny", "--steps", "120", "--batch", "2", "--length", "16", "--evaluate-every", "10")


def stop_after_the_first_evaluation(text: Path, folder: Path, cache: Path, number: signal.Signals) -> tuple[int, str]:
    """Start training, send a signal as soon as it has shown something; the exit code and what it said at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "lookback", "train", str(text), *OPTIONS, "--out", str(folder)],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as child:
        assert child.stderr is not None
        first = child.stderr.readline()
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    assert first.startswith("step 10: loss") and "Traceback" not in err
    return child.returncode, out


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_training_saves_and_goes_on_exactly(
    run: Run, text: Path, tmp_path: Path, cache: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "run"
    code, out = stop_after_the_first_evaluation(text, folder, cache, number)
    assert code == 0
    assert f"go on with: lookback train {text} --resume --out {folder}" in out
    resumed = the_object(run("train", text, "--resume", "--out", folder, "--json"))
    assert (resumed["end"], resumed["tokens_seen"]) == ("finished", 120 * 2 * 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKBACK_CACHE", str(cache))
        train(text, out=tmp_path / "unbroken", preset="tiny", steps=120, batch=2, length=16, evaluate_every=10)
    broken, unbroken = tree(folder), tree(tmp_path / "unbroken")
    for name in ("model.safetensors", "checkpoint/model.safetensors", "checkpoint/optimizer.safetensors"):
        assert broken[name] == unbroken[name]


@pytest.mark.parametrize("words", ["generate {gpt} 床", "fill {bert} [MASK]光", "evaluate {gpt} {text}"])
def test_other_commands_end_quietly(
    run: Run, models: dict[str, Path], text: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lookback.session.load", interrupted)
    ended = run(*words.format(**models, text=text).split(" "))
    assert (ended.code, ended.out, ended.err) == (130, "", "")


def test_a_demo_that_is_interrupted_leaves_the_earlier_one(
    run: Run, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = tmp_path / "demo" / "gpt" / "config.json"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{}", encoding="utf-8")
    before = tree(tmp_path)
    monkeypatch.setattr(
        "lookback.training.trainer.Trainer._after_step", lambda self: signal.raise_signal(signal.SIGINT)
    )
    ended = run("demo", "--corpus", text, "--minutes", "1", "--parameters", "60k", "--out", tmp_path / "demo")
    assert (ended.code, ended.out) == (130, "")
    assert tree(tmp_path) == before


def test_a_reader_that_leaves_is_no_fault(text: Path, cache: Path) -> None:
    """As in ``lookback --help | head -0``."""
    with subprocess.Popen(
        [sys.executable, "-m", "lookback", "--help"],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1
