"""A GGUF file: metadata, then tensors in whatever type the `gguf` package can turn back into numbers.

The header is read here, byte by byte with every length checked against the file, because a file's own word for its
sizes must not be believed. The types' arithmetic is the library's.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookback.errors import InputError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class TensorInfo:
    """A tensor's place: ``shape`` as PyTorch has it (GGUF writes it backwards), ``kind`` the GGML type number."""

    shape: tuple[int, ...]
    kind: int
    start: int
    stop: int

    @property
    def kind_name(self) -> str:
        """Such as Q4_K."""
        from gguf import GGMLQuantizationType

        return GGMLQuantizationType(self.kind).name


@dataclass(frozen=True)
class GGUFFile:
    """What a GGUF file says of itself. Its tensors are read from disk one at a time."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]

    def read(self, name: str) -> Tensor:
        """One tensor, as fp32."""
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        info = self.tensors[name]
        with self.path.open("rb") as file:
            file.seek(info.start)
            raw = np.frombuffer(file.read(info.stop - info.start), dtype=np.uint8)
        kind = GGMLQuantizationType(info.kind)
        if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16, GGMLQuantizationType.F64):
            plain = raw.view({"F32": np.float32, "F16": np.float16, "F64": np.float64}[kind.name])
            return torch.from_numpy(plain.astype(np.float32).reshape(info.shape))
        rows = raw.reshape(-1, raw.size // int(np.prod(info.shape[:-1], dtype=np.int64)))
        try:
            numbers = dequantize(rows, kind)
        except NotImplementedError:
            raise InputError(
                "{path} holds {name} as {kind}, which the gguf package cannot turn into numbers; take a file of "
                "another type, such as Q8_0 or Q4_K_M",
                path=self.path,
                name=name,
                kind=kind.name,
            ) from None
        return torch.from_numpy(numbers.astype(np.float32, copy=False).reshape(info.shape))


def read_gguf(path: Path) -> GGUFFile:
    """The header of a GGUF file. Raises InputError where it is missing, cut short, or not what it says."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Header(path, data).read()
    except FileNotFoundError:
        raise InputError("there is no file {path}", path=path) from None
    except InputError:
        raise
    except ValueError as error:  # an empty file cannot be mapped
        raise _broken(path, str(error)) from None


class _Header:
    """A cursor over the file that never leaves it."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data, self.at = path, data, 0

    def read(self) -> GGUFFile:
        if self.data[:4] != b"GGUF":
            raise _broken(self.path, "it does not begin with GGUF")
        self.at = 4
        version, tensors, pairs = self._number("I"), self._number("Q"), self._number("Q")
        if version not in (2, 3):
            raise _broken(self.path, f"version {version} is not 2 or 3")
        metadata = {}
        for _ in range(self._fits(pairs, 12)):
            key = self._string()
            metadata[key] = self._value(self._number("I"))
        places = [self._tensor() for _ in range(self._fits(tensors, 24))]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise _broken(self.path, f"an alignment of {alignment}")
        begin = -(-self.at // alignment) * alignment
        infos = {name: self._placed(name, shape, kind, begin + offset) for name, shape, kind, offset in places}
        if len(infos) < len(places):
            raise _broken(self.path, "two tensors of one name")
        self._check_overlap(infos)
        return GGUFFile(self.path, metadata, infos)

    def _value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            raise _broken(self.path, f"a value of unknown type {kind}")
        inner, length = self._number("I"), self._number("Q")
        if inner in _SCALARS:
            layout = struct.Struct("<" + _SCALARS[inner])
            raw = self._take(self._fits(length, layout.size) * layout.size)
            return [value for (value,) in layout.iter_unpack(raw)]
        if inner == _STRING:
            return [self._string() for _ in range(self._fits(length, 8))]
        raise _broken(self.path, f"a list of type {inner}")

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name, dimensions = self._string(), self._number("I")
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise _broken(self.path, f"tensor {name} has {dimensions} dimensions")
        shape = tuple(self._number("Q") for _ in range(dimensions))[::-1]
        return name, shape, self._number("I"), self._number("Q")

    def _placed(self, name: str, shape: tuple[int, ...], kind: int, start: int) -> TensorInfo:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (ValueError, KeyError):
            raise _broken(self.path, f"tensor {name} has the unknown type {kind}") from None
        count = 1
        for length in shape:
            count *= length
        if not count or shape[-1] % block:
            raise _broken(self.path, f"tensor {name} of shape {list(shape)} does not divide into blocks of {block}")
        stop = start + count // block * size
        if stop > len(self.data):
            raise _broken(self.path, f"tensor {name} ends {stop - len(self.data):,} bytes behind the file's end")
        return TensorInfo(shape, kind, start, stop)

    def _check_overlap(self, infos: Mapping[str, TensorInfo]) -> None:
        ordered = sorted(infos.items(), key=lambda item: item[1].start)
        for (name, one), (other, next_one) in pairwise(ordered):
            if one.stop > next_one.start:
                raise _broken(self.path, f"tensors {name} and {other} overlap")

    def _fits(self, count: int, least: int) -> int:
        """``count``, if that many things of at least so many bytes can still follow."""
        if count * least > len(self.data) - self.at:
            raise _broken(self.path, f"it announces {count:,} entries, more than the file can hold")
        return count

    def _take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise _broken(self.path, "it is cut short")
        self.at += size
        return self.data[self.at - size : self.at]

    def _number(self, layout: str) -> Any:
        return struct.unpack("<" + layout, self._take(struct.calcsize("<" + layout)))[0]

    def _string(self) -> str:
        return self._take(self._number("Q")).decode("utf-8", errors="replace")


def _broken(path: Path, reason: str) -> InputError:
    return InputError("{path} is not a whole GGUF file: {reason}", path=path, reason=reason)
