"""A run that was stopped, at whatever moment, and gone on with ends bit for bit like the unbroken one."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from small_runs import SMALL, StoppedError, leftovers, metrics, result, stop_after

from lookback.errors import InputError
from lookback.models import FAMILIES
from lookback.session import Session, load, train
from lookback.training import Event, Step

STEPS = 12
OPTIONS: dict[str, Any] = {**SMALL, "steps": STEPS, "dropout": 0.3}
CASES = [*((family, 3) for family in FAMILIES), ("gpt", None), ("lstm", None)]


def run(source: Path, out: Path, **options: Any) -> Session:
    return train(source, out=out, **{**OPTIONS, **options})


def go_on(source: Path, out: Path, **options: Any) -> Session:
    return train(source, out=out, resume=True, **options)


@pytest.fixture(scope="module")
def gpt(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unbroken run of a GPT with a checkpoint every third step."""
    folder = tmp_path_factory.mktemp("runs") / "gpt"
    run(documents, folder, save_every=3)
    return folder


@pytest.mark.parametrize(("family", "micro_batch"), CASES)
def test_stopped_twice_ends_as_unbroken(family: str, micro_batch: int | None, documents: Path, tmp_path: Path) -> None:
    """Once before an evaluation, once between two; 4 windows in micro-batches of 3 are 3 and 1."""
    options = {"model": family, "micro_batch": micro_batch, "save_every": 3}
    run(documents, tmp_path / "unbroken", **options)
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "broken", **options, report=stop_after(4))
    with pytest.raises(StoppedError):
        go_on(documents, tmp_path / "broken", report=stop_after(8))
    go_on(documents, tmp_path / "broken")
    assert result(tmp_path / "broken") == result(tmp_path / "unbroken")
    assert not leftovers(tmp_path / "broken")


def test_dropout_is_on_and_the_seed_decides(documents: Path, gpt: Path, tmp_path: Path) -> None:
    """Else the tests above would not show that dropout is drawn again as it was."""
    run(documents, tmp_path / "plain", save_every=3, dropout=0.0)
    run(documents, tmp_path / "seeded", save_every=3, seed=4)
    assert len({metrics(folder)[0]["loss"] for folder in (gpt, tmp_path / "plain", tmp_path / "seeded")}) == 3


@pytest.mark.parametrize("step", [1, 2, 3, 5, 6, STEPS])
def test_stopped_at_any_step(step: int, documents: Path, gpt: Path, tmp_path: Path) -> None:
    """Before the first checkpoint, at one, at an evaluation, and at the very end."""
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "run", save_every=3, report=stop_after(step))
    go_on(documents, tmp_path / "run")
    assert result(tmp_path / "run") == result(gpt)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_first(number: signal.Signals, documents: Path, gpt: Path, tmp_path: Path) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")

    def interrupt(event: Event) -> None:
        if isinstance(event, Step) and event.step == 4:
            signal.raise_signal(number)

    before = signal.getsignal(number)
    session = run(documents, tmp_path / "run", save_every=3, report=interrupt)
    assert signal.getsignal(number) is before
    assert (session.record["end"], session.record["step"], session.record["held_out"]) == ("interrupted", 4, None)
    assert metrics(tmp_path / "run")[-1]["step"] == 4
    progress = json.loads((tmp_path / "run" / "checkpoint" / "progress.json").read_text("utf-8"))
    assert progress["step"] == 4
    assert go_on(documents, tmp_path / "run").record["end"] == "finished"
    assert result(tmp_path / "run") == result(gpt)


def test_a_second_ctrl_c_stops_at_once(documents: Path, gpt: Path, tmp_path: Path) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")

    def interrupt(event: Event) -> None:
        if isinstance(event, Step) and event.step == 4:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(documents, tmp_path / "run", save_every=3, report=interrupt)
    go_on(documents, tmp_path / "run")
    assert result(tmp_path / "run") == result(gpt)


def test_going_on_with_a_finished_run_changes_nothing(documents: Path, gpt: Path) -> None:
    def never(event: Event) -> None:
        raise AssertionError(event)

    before, record = result(gpt), json.loads((gpt / "lookback.json").read_text("utf-8"))
    session = go_on(documents, gpt, report=never)
    assert result(gpt) == before
    assert session.record == record == json.loads((gpt / "lookback.json").read_text("utf-8"))


@pytest.mark.parametrize("cut", ["half a line", "half a character", "several lines and half a line"])
def test_metrics_that_a_crash_or_a_full_disk_cut_short(cut: str, documents: Path, gpt: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "run", save_every=3, report=stop_after(8))
    tail = {
        "half a line": b'{"step": 8, "lo',
        "half a character": '{"step": 8, "sample": "天'.encode()[:-1],
        "several lines and half a line": b'{"step": 8, "loss": 1.0}\n{"step": 9}\n{"st',
    }[cut]
    path = tmp_path / "run" / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + tail)
    go_on(documents, tmp_path / "run")
    assert result(tmp_path / "run") == result(gpt)


def test_a_sample_with_a_line_separator_in_it_stays_one_line(tmp_path: Path) -> None:
    """U+2028, U+0085 and the like end a line for `str.splitlines`, but not in a .jsonl file."""
    text = tmp_path / "text.txt"
    text.write_text("天\u2028地\u0085玄\x0b黄\x1e\r\n" * 60, encoding="utf-8", newline="")
    run(text, tmp_path / "unbroken")
    assert any("\u2028" in line.get("sample", "") for line in metrics(tmp_path / "unbroken"))
    with pytest.raises(StoppedError):
        run(text, tmp_path / "broken", report=stop_after(8))
    go_on(text, tmp_path / "broken")
    assert result(tmp_path / "broken") == result(tmp_path / "unbroken")


def test_what_a_killed_writer_left_is_swept_away(documents: Path, gpt: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "run", save_every=3, report=stop_after(8))
    (tmp_path / "run" / ".model.safetensors.4242.partial").write_bytes(b"half")
    (tmp_path / "run" / ".checkpoint.4242.partial").mkdir()
    (tmp_path / "run" / ".checkpoint.4242.partial" / "model.safetensors").write_bytes(b"half")
    go_on(documents, tmp_path / "run")
    assert result(tmp_path / "run") == result(gpt)
    assert not leftovers(tmp_path / "run")


@pytest.mark.parametrize("missing", ["tokenizer.json", "tokenizer_config.json", "config.json", "metrics.jsonl"])
def test_a_crash_while_the_folder_was_laid_out(missing: str, documents: Path, gpt: Path, tmp_path: Path) -> None:
    """The record comes first; what was to come after it is made again."""
    order = ["lookback.json", "tokenizer.json", "tokenizer_config.json", "config.json", "metrics.jsonl"]
    with pytest.raises(StoppedError):
        run(documents, tmp_path / "run", save_every=3, report=stop_after(1))
    for name in order[order.index(missing) :]:
        (tmp_path / "run" / name).unlink(missing_ok=True)
    go_on(documents, tmp_path / "run")
    assert result(tmp_path / "run") == result(gpt)
    assert all((tmp_path / "run" / name).read_bytes() == (gpt / name).read_bytes() for name in order[1:])


@pytest.mark.parametrize(
    ("options", "named"),
    [({"rate": 0.5}, "rate"), ({"width": 16}, "width"), ({"steps": 99}, "steps"), ({"model": "lstm"}, "model")],
)
def test_changed_options_are_refused(options: dict[str, Any], named: str, documents: Path, gpt: Path) -> None:
    before = result(gpt)
    with pytest.raises(InputError, match=rf"has {named} .* keeps its options"):
        go_on(documents, gpt, **options)
    assert result(gpt) == before


def test_the_same_options_are_taken(documents: Path, gpt: Path) -> None:
    """Also those that were left to their defaults then."""
    before = result(gpt)
    go_on(documents, gpt, **OPTIONS, save_every=3, clip=1.0, decay="cosine", model="gpt", fraction=0.1)
    assert result(gpt) == before


def test_a_tuple_among_the_options_is_the_list_in_the_record(documents: Path, tmp_path: Path) -> None:
    options = {"sliding_window": 3, "windowed_layers": (0,)}
    run(documents, tmp_path / "run", **options, steps=1)
    go_on(documents, tmp_path / "run", **options)


def test_a_changed_text_is_refused(documents: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_bytes(documents.read_bytes())
    with pytest.raises(StoppedError):
        run(text, tmp_path / "run", save_every=3, report=stop_after(8))
    before = result(tmp_path / "run")
    text.write_bytes(documents.read_bytes() + b'{"text": "\xe5\xa4\xa9"}\n')
    with pytest.raises(InputError, match=r"begun with another text than text\.jsonl is now"):
        go_on(text, tmp_path / "run")
    assert result(tmp_path / "run") == before
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(documents.read_bytes())
    go_on(moved, tmp_path / "run")  # The same text elsewhere is the same text.


def test_there_must_be_a_run(documents: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no run to go on with"):
        go_on(documents, tmp_path)
    (tmp_path / "lookback.json").write_text('{"options": {"shape": 5}}')
    with pytest.raises(InputError, match="does not say how the run was begun"):
        go_on(documents, tmp_path)


@pytest.mark.parametrize("writes", [0, 2, 4, 8])
def test_a_full_disk_leaves_the_last_checkpoint(
    writes: int, documents: Path, gpt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 10 writes the best model and then a checkpoint; the disk is full at the first write or at a later one."""
    left = iter(range(writes))
    sync = os.fsync

    def full(handle: int) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    def fill(event: Event) -> None:
        if isinstance(event, Step) and event.step == 10:
            monkeypatch.setattr("os.fsync", full)

    with pytest.raises(OSError, match="No space left"):
        run(documents, tmp_path / "run", save_every=3, report=fill)
    monkeypatch.undo()
    assert not leftovers(tmp_path / "run")
    progress = json.loads((tmp_path / "run" / "checkpoint" / "progress.json").read_text("utf-8"))
    assert progress["step"] == 9
    load(tmp_path / "run")
    go_on(documents, tmp_path / "run")
    assert result(tmp_path / "run") == result(gpt)
