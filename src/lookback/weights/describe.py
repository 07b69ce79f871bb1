"""What a model file or folder holds, without loading a weight."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, is_dataclass
from math import prod
from typing import Any

from lookback.models import RecurrentConfig, TransformerConfig
from lookback.models.language_model import Config
from lookback.weights.opening import Opened

_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
_TOKENS = 1000


def describe(opened: Opened) -> dict[str, Any]:
    """Family, sizes, types of numbers, parameters, bytes in memory at each type, and what the state takes.

    ``kv_cache_bytes_per_1000_tokens`` is 2 · layers · K · H · bytes · 1000, with layers that have a sliding window
    holding no more than that; for recurrent models ``state_bytes`` is what they carry, whatever the length.
    """
    kinds: Counter[str] = Counter()
    for name, shape in opened.source.shapes.items():
        kinds[opened.source.kinds[name]] += prod(shape)
    parameters = sum(kinds.values())
    config = opened.config
    assert is_dataclass(config) and not isinstance(config, type)
    return {
        "path": str(opened.path),
        "format": opened.format,
        "family": opened.family,
        "parameters": parameters,
        "tensors": len(opened.source.shapes),
        "dtypes": dict(kinds),
        "config": asdict(config),
        "memory_bytes": {name: round(parameters * size) for name, size in _BYTES.items()},
        **_state(config),
    }


def _state(config: Config) -> dict[str, Any]:
    if isinstance(config, RecurrentConfig):
        numbers = config.layers * config.width * (2 if config.cell == "lstm" else 1)
        return {"state_bytes": {name: round(numbers * size) for name, size in _BYTES.items() if size >= 2}}
    assert isinstance(config, TransformerConfig)
    if not config.causal:
        return {"kv_cache_bytes_per_1000_tokens": None}
    windows = [config.window(layer) for layer in range(config.layers)]
    slots = sum(_TOKENS if window is None else min(window, _TOKENS) for window in windows)
    numbers = 2 * slots * config.kv_heads * config.head_width
    sizes = {name: round(numbers * size) for name, size in _BYTES.items() if size >= 2}
    return {"kv_cache_bytes_per_1000_tokens": sizes}
