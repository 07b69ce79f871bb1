"""Our own folder: ``config.json`` (the configuration) and ``model.safetensors`` (the parameters by their own names)."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lookback.errors import InputError
from lookback.files import settled, write_aside
from lookback.models import LanguageModel, RecurrentConfig, RecurrentLM, Transformer, TransformerConfig
from lookback.models.language_model import Config
from lookback.models.registry import empty

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_DTYPES = {"BF16", "F16", "F32", "F64"}
_KINDS: Mapping[str, type[TransformerConfig] | type[RecurrentConfig]] = {
    Transformer.kind: TransformerConfig,
    RecurrentLM.kind: RecurrentConfig,
}


def save(model: LanguageModel, folder: Path) -> None:
    """Write the model's configuration and parameters, each file atomically."""
    save_config(model.config, folder)
    write_weights(dict(model.named_parameters()), folder / WEIGHTS)


def save_config(config: Config, folder: Path) -> None:
    """Write ``config.json``."""
    assert isinstance(config, TransformerConfig | RecurrentConfig)
    kind = next(name for name, of in _KINDS.items() if isinstance(config, of))
    record = {"model_type": f"lookback-{kind}", "family": config.family, **asdict(config)}
    with write_aside(folder / CONFIG) as path:
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def write_weights(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to a safetensors file, atomically and in full precision. Raises OSError as the disk does."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with write_aside(path) as partial:
        try:
            save_file(plain, partial, metadata={"format": "pt", **(metadata or {})})
        except SafetensorError as error:  # The library keeps what the disk said in its message.
            said = re.search(r"os error (\d+)", str(error))
            code = int(said[1]) if said else errno.EIO
            raise OSError(code, os.strerror(code), str(path)) from error


def load(folder: Path, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> LanguageModel:
    """The model a folder of ours holds, in evaluation mode.

    Raises InputError for a folder or a file that is missing, cut short, or does not fit its configuration.
    """
    folder = settled(folder)
    config = read_config(folder)
    path = folder / WEIGHTS
    with open_weights(path) as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        kinds = {file.get_slice(name).get_dtype() for name in shapes}
        if foreign := sorted(kinds - _DTYPES):
            raise InputError(
                "{path} holds numbers of type {got}; this version reads {allowed}",
                path=path,
                got=", ".join(foreign),
                allowed=", ".join(sorted(_DTYPES)),
            )
        if config.layers > len(shapes):
            raise InputError(
                "{path} holds {got} tensors, too few for the {layers} layers that its config.json names",
                path=path,
                got=len(shapes),
                layers=config.layers,
            )
        model = _empty(config, folder)
        _match(path, {name: tuple(p.shape) for name, p in model.named_parameters()}, shapes)
        # A copy stands where PyTorch aligns it: beside the file, a matrix product may round differently.
        state = {name: file.get_tensor(name).to(device=device, dtype=dtype, copy=True) for name in shapes}
    model.load_state_dict(state, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model.eval()


def _empty(config: Config, folder: Path) -> LanguageModel:
    """A model without memory; sizes that no memory could hold are the file's mistake."""
    try:
        return empty(config)
    except (RuntimeError, OverflowError, TypeError):  # what PyTorch raises when a size overflows 64 bits
        raise InputError("{path} names sizes that no model can have", path=folder / CONFIG) from None


def read_config(folder: Path) -> Config:
    """The configuration in a folder's ``config.json``."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise InputError(
            "{path} is not a model folder; give a folder that lookback train made, or see lookback models", path=folder
        )
    record = read_json(path)
    kind = str(record.get("model_type", "")).removeprefix("lookback-")
    if kind not in _KINDS:
        raise InputError(
            "{path} says model_type {got}; this version opens {allowed}",
            path=path,
            got=record.get("model_type"),
            allowed=", ".join(f"lookback-{name}" for name in _KINDS),
        )
    known = {field.name for field in fields(_KINDS[kind])}
    values = {name: value for name, value in record.items() if name not in ("model_type", "family")}
    if unknown := sorted(set(values) - known):
        raise InputError("{path} has options this version does not know: {names}", path=path, names=", ".join(unknown))
    hints = get_type_hints(_KINDS[kind])
    for name, value in values.items():
        if not fits(value, hints[name]):
            raise InputError(
                "{path} has {got} for {name}, which cannot be", path=path, name=name, got=json.dumps(value)
            )
    try:
        return _KINDS[kind](**values)
    except TypeError as error:
        raise InputError("{path} is not a configuration: {reason}", path=path, reason=error) from None


def fits(value: Any, hint: Any) -> bool:
    """Whether a value out of a JSON file is of an annotated type; whole numbers pass for floats, infinities never."""
    kind = get_origin(hint)
    if kind in (Union, UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if kind is Literal:
        return value in get_args(hint)
    if kind is tuple:
        return isinstance(value, list) and all(fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is hint


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises InputError where it is missing or not that."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("{path} is missing; the folder is not a whole model", path=path) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, endless digits, endless brackets
        raise InputError("{path} is not JSON: {reason}", path=path, reason=error) from None
    if not isinstance(record, dict):
        raise InputError("{path} holds no JSON object", path=path)
    return record


def open_weights(path: Path) -> Any:
    """A safetensors file, opened for reading tensor by tensor. Its header is checked before anything is allocated."""
    try:
        return safe_open(path, framework="pt")
    except FileNotFoundError:
        raise InputError("{path} is missing; the folder is not a whole model", path=path) from None
    except (SafetensorError, OSError) as error:
        raise InputError("{path} is not a whole safetensors file: {reason}", path=path, reason=error) from None


def _match(path: Path, want: Mapping[str, tuple[int, ...]], got: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse with a list of what is missing, unknown, or of another shape."""
    wrong = [f"{name} is missing" for name in want if name not in got]
    wrong += [f"{name} is unknown" for name in got if name not in want]
    wrong += [f"{n} is {list(got[n])} instead of {list(want[n])}" for n in want if n in got and got[n] != want[n]]
    if wrong:
        listed = "; ".join(wrong[:8]) + ("" if len(wrong) <= 8 else f"; and {len(wrong) - 8} more")
        raise InputError("{path} does not fit its config.json: {wrong}", path=path, wrong=listed)
