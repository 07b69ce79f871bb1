"""Files of tensors and of JSON: opened with every size checked, written atomically."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lookback.errors import InputError
from lookback.files import write_aside
from lookback.weights.source import Source

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_DTYPES = {"BF16", "F16", "F32", "F64"}
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")


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


def write_json(record: Mapping[str, Any] | Sequence[Any], path: Path) -> None:
    """Write a JSON object, or a list, atomically."""
    with write_aside(path) as partial:
        partial.write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_weights(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write named tensors to a safetensors file, atomically and in full precision. Raises OSError as the disk does."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with write_aside(path) as partial:
        partial.touch()
        mode = partial.stat().st_mode  # The library makes files that only their owner can read.
        try:
            save_file(plain, partial, metadata={"format": "pt"})
            partial.chmod(mode)
        except SafetensorError as error:  # The library keeps what the disk said in its message.
            said = re.search(r"os error (\d+)", str(error))
            code = int(said[1]) if said else errno.EIO
            raise OSError(code, os.strerror(code), str(path)) from error


def open_folder(folder: Path) -> Source:
    """The tensors of a folder: one safetensors file, or the shards that an index names."""
    if (folder / INDEX).exists():
        return open_weights(*_shards(folder / INDEX))
    if not (folder / WEIGHTS).exists() and (pickled := _pickled(folder)):
        raise InputError(
            "{path} is pickled, and opening it could run anything; convert it once, where you trust it, with "
            "transformers: AutoModel.from_pretrained(folder).save_pretrained(out)",
            path=pickled[0],
        )
    return open_weights(folder / WEIGHTS)


def open_weights(*paths: Path) -> Source:
    """The tensors of some safetensors files. Headers are checked by the library before anything is allocated."""
    where: dict[str, Any] = {}
    for path in paths:
        file = _open(path)
        for name in file.keys():  # noqa: SIM118
            if name in where:
                raise InputError("{path} holds {name}, which another shard holds already", path=path, name=name)
            where[name] = file
    kinds = {name: file.get_slice(name).get_dtype() for name, file in where.items()}
    shapes = {name: tuple(file.get_slice(name).get_shape()) for name, file in where.items()}

    def read(name: str) -> Tensor:
        if kinds[name] not in _DTYPES:
            raise InputError(
                "{path} holds numbers of type {got}; this version reads {allowed}",
                path=paths[0],
                got=kinds[name],
                allowed=", ".join(sorted(_DTYPES)),
            )
        tensor: Tensor = where[name].get_tensor(name)
        return tensor

    return Source(paths[0], shapes, kinds, read)


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except FileNotFoundError:
        raise InputError("{path} is missing; the folder is not a whole model", path=path) from None
    except (SafetensorError, OSError) as error:
        raise InputError("{path} is not a whole safetensors file: {reason}", path=path, reason=error) from None


def _shards(index: Path) -> Sequence[Path]:
    """The files an index names; they must lie beside it."""
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()) or not names:
        raise InputError("{path} has no weight_map of file names", path=index)
    shards = sorted(set(names.values()))
    if outside := [name for name in shards if Path(name).name != name or "\\" in name]:
        raise InputError("{path} names files outside its folder: {names}", path=index, names=", ".join(outside))
    return [index.parent / name for name in shards]


def _pickled(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.suffix in _PICKLED)
