"""Qwen2 (Yang et al. 2024): Llama with biases on queries, keys and values, and perhaps a window in the upper layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lookback.models import TransformerConfig
from lookback.weights.families.llama import common, names, write_common
from lookback.weights.options import Options
from lookback.weights.table import Record


def windowed(config: TransformerConfig, options: Options) -> TransformerConfig:
    """With the layers from ``max_window_layers`` on, or those ``layer_types`` names, reading a window only."""
    window = options.count("sliding_window", None)
    if not options.flag("use_sliding_window", False) or not window:
        return config
    first = options.count("max_window_layers", 28)
    kinds = options.names("layer_types")
    if not kinds:
        kinds = ["full_attention" if layer < first else "sliding_attention" for layer in range(config.layers)]
    layers = tuple(i for i, kind in enumerate(kinds[: config.layers]) if kind == "sliding_attention")
    return replace(config, sliding_window=window, windowed_layers=layers) if layers else config


def write_windowed(config: TransformerConfig) -> dict[str, Any]:
    """`windowed` the other way."""
    kinds = ["full_attention" if config.window(i) is None else "sliding_attention" for i in range(config.layers)]
    return {
        "use_sliding_window": config.sliding_window is not None,
        "sliding_window": config.sliding_window,
        "layer_types": kinds,
        "max_window_layers": kinds.index("sliding_attention") if "sliding_attention" in kinds else config.layers,
    }


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "qwen2")
    return windowed(TransformerConfig(**common(options) | {"qkv_bias": True}), options)


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {**write_common(config), **write_windowed(config)}


QWEN2 = names("qwen2", "Qwen2ForCausalLM", _read, _write)
