"""A checkpoint: everything a run needs to go on as if it had never stopped.

Master weights and optimizer moments stand in full precision in safetensors files, counters in JSON. Random numbers need
no saving: batches, masks and dropout are drawn from (seed, step). The folder is written aside, synced and renamed, so a
crash leaves the last good one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor

from lookback.errors import InputError
from lookback.files import settled, write_folder_aside
from lookback.models import LanguageModel
from lookback.weights import open_weights, read_json, write_weights
from lookback.weights.native import fits

FOLDER = "checkpoint"
_MODEL, _OPTIMIZER, _PROGRESS = "model.safetensors", "optimizer.safetensors", "progress.json"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class Progress:
    """How far a run has come. ``seconds`` is training time over all its sittings; losses are nats a token.

    ``recent_nats`` and ``recent_tokens`` sum the training loss since the last evaluation.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    recent_nats: float = 0.0
    recent_tokens: int = 0
    best_step: int = 0
    best_nats: float | None = None


def save(folder: Path, model: LanguageModel, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Write the run's checkpoint in ``folder``, in place of the one before."""
    moments = {
        f"{moment}.{name}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        if parameter in optimizer.state
        for moment in _MOMENTS
    }
    with write_folder_aside(folder / FOLDER) as aside:
        write_weights(dict(model.named_parameters()), aside / _MODEL)
        write_weights(moments, aside / _OPTIMIZER)
        (aside / _PROGRESS).write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")


def exists(folder: Path) -> bool:
    """Whether there is a checkpoint to go on from."""
    return settled(folder / FOLDER).is_dir()


def load(folder: Path, model: LanguageModel, optimizer: torch.optim.Optimizer) -> Progress:
    """Put a checkpoint's numbers into ``model`` and ``optimizer``. Raises InputError where it is damaged."""
    checkpoint = settled(folder / FOLDER)
    progress = _read_progress(checkpoint / _PROGRESS)
    parameters = dict(model.named_parameters())
    weights = _read(checkpoint / _MODEL, {name: p.shape for name, p in parameters.items()})
    moments = {
        f"{moment}.{name}": torch.Size() if moment == "step" else parameter.shape
        for name, parameter in parameters.items()
        for moment in _MOMENTS
    }
    tensors = _read(checkpoint / _OPTIMIZER, moments if progress.step else {})
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
            if progress.step:
                state = {moment: tensors[f"{moment}.{name}"] for moment in _MOMENTS}
                optimizer.state[parameter] = {k: v.to(parameter.device, copy=True) for k, v in state.items()}
    return progress


def _read(path: Path, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    file = open_weights(path)
    if dict(file.shapes) != shapes or set(file.kinds.values()) - {"F32"}:
        raise InputError("{path} is not this run's checkpoint: its tensors have other names or shapes", path=path)
    return {name: file.read(name) for name in shapes}


def _read_progress(path: Path) -> Progress:
    record: dict[str, Any] = read_json(path)
    if record.keys() != (hints := get_type_hints(Progress)).keys() or not all(
        fits(value, hints[name]) for name, value in record.items()
    ):
        raise InputError("{path} is not a record of progress; the checkpoint is damaged", path=path)
    return Progress(**record)
