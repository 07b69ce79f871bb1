"""A checkpoint holds everything in full precision, and a damaged or foreign one is refused in one sentence."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from small_runs import SMALL, StoppedError, leftovers, result, stop_after

from lookback.errors import InputError
from lookback.models import LanguageModel, build, configure
from lookback.session import train
from lookback.training import checkpoint
from lookback.training.checkpoint import Progress

MODEL, OPTIMIZER, PROGRESS = "model.safetensors", "optimizer.safetensors", "progress.json"


def model_of(family: str = "gru", seed: int = 1) -> LanguageModel:
    return build(configure(family, 11, preset="tiny", width=8), seed=seed)


def optimizer_of(model: LanguageModel, steps: int) -> torch.optim.AdamW:
    """An optimizer that has seen a few random gradients."""
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    return optimizer


def moments(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [value for state in optimizer.state.values() for value in state.values()]


numbers = st.floats(width=32, allow_nan=False)


@settings(max_examples=10)
@given(values=st.lists(numbers, min_size=11, max_size=11), loss=st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_comes_back_bit_for_bit(
    values: list[float], loss: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Denormal numbers, zeros of both signs and infinities too."""
    folder = tmp_path_factory.mktemp("run")
    model = model_of()
    optimizer = optimizer_of(model, 2)
    with torch.no_grad():
        model.get_parameter("output_bias").copy_(torch.tensor(values))
        optimizer.state[model.get_parameter("output_bias")]["exp_avg"].copy_(torch.tensor(values))
    progress = Progress(2, 64, 1.5, loss, 3, 1, None)
    checkpoint.save(folder, model, optimizer, progress)
    other = model_of(seed=2)
    fresh = torch.optim.AdamW(other.parameters(), fused=True)
    assert checkpoint.load(folder, other, fresh) == progress
    pairs = [*zip(model.parameters(), other.parameters(), strict=True)]
    pairs += zip(moments(optimizer), moments(fresh), strict=True)
    for saved, loaded in pairs:
        assert loaded.dtype == torch.float32
        assert torch.equal(saved.detach().view(torch.int32), loaded.detach().view(torch.int32))


def test_what_is_loaded_does_not_hang_on_the_file(tmp_path: Path) -> None:
    """A mapped file would keep the old checkpoint's room on the disk, and change when the file does."""
    model = model_of()
    checkpoint.save(tmp_path, model, optimizer_of(model, 1), Progress(step=1))
    other = model_of(seed=2)
    optimizer = torch.optim.AdamW(other.parameters(), fused=True)
    checkpoint.load(tmp_path, other, optimizer)
    mapped = Path("/proc/self/maps")
    if mapped.exists():
        assert str(tmp_path) not in mapped.read_text()


@pytest.fixture(scope="module")
def stopped(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that died after its checkpoint of step 5."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.raises(StoppedError):
        train(documents, out=folder, model="gru", steps=9, **SMALL, report=stop_after(7))
    return folder


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def cut_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def wild_header(path: Path) -> None:
    path.write_bytes(struct.pack("<Q", 2**60) + path.read_bytes()[8:])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def gone(path: Path) -> None:
    path.unlink()


def foreign(path: Path) -> None:
    save_file({"a": torch.zeros(3)}, path)


def halved(path: Path) -> None:
    save_file({name: tensor.half() for name, tensor in load_file(path).items()}, path)


def misshapen(path: Path) -> None:
    tensors = load_file(path)
    name = max(tensors, key=lambda name: tensors[name].numel())
    save_file({**tensors, name: tensors[name][:-1].contiguous()}, path)


def fewer(path: Path) -> None:
    tensors = load_file(path)
    tensors.popitem()
    save_file(tensors, path)


def with_progress(**changes: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        record = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({name: value for name, value in record.items() if value != "leave out"}))

    change.__name__ = str(changes)
    return change


TENSOR_DAMAGE = [cut, cut_header, wild_header, empty, gone, foreign, halved, misshapen, fewer]
PROGRESS_DAMAGE = [
    cut,
    empty,
    gone,
    *(with_progress(step=value) for value in ("5", 5.5, True, None, [5], "leave out")),
    with_progress(seconds="long"),
    with_progress(seconds=float("inf")),
    with_progress(best_nats=[]),
    with_progress(more=1),
]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, damage) for name in (MODEL, OPTIMIZER) for damage in TENSOR_DAMAGE),
        *((PROGRESS, damage) for damage in PROGRESS_DAMAGE),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_damaged_checkpoint_is_refused(
    name: str, damage: Callable[[Path], None], documents: Path, stopped: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    damage(run / "checkpoint" / name)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=name) as caught:
        train(documents, out=run, resume=True)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_another_models_checkpoint_is_refused(documents: Path, stopped: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    shutil.rmtree(run / "checkpoint")
    model = model_of("lstm")
    checkpoint.save(run, model, optimizer_of(model, 1), Progress(step=1))
    with pytest.raises(InputError, match="not this run's checkpoint"):
        train(documents, out=run, resume=True)


def test_a_crash_between_the_two_renames(documents: Path, stopped: Path, tmp_path: Path) -> None:
    """The checkpoint had stepped aside and the new one was not there yet."""
    for name in ("plain", "crashed"):
        shutil.copytree(stopped, tmp_path / name)
    (tmp_path / "crashed" / "checkpoint").rename(tmp_path / "crashed" / ".checkpoint.old")
    for name in ("plain", "crashed"):
        train(documents, out=tmp_path / name, resume=True)
    assert result(tmp_path / "crashed") == result(tmp_path / "plain")
    assert not leftovers(tmp_path / "crashed")
