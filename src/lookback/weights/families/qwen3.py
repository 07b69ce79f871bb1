"""Qwen3 (Yang et al. 2025): Qwen2 without those biases, and with a norm over each head's query and key."""

from __future__ import annotations

from typing import Any

from lookback.models import TransformerConfig
from lookback.weights.families.llama import common, names, write_common
from lookback.weights.families.qwen2 import windowed, write_windowed
from lookback.weights.options import Options
from lookback.weights.table import Record


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "qwen3")
    bias = options.flag("attention_bias", False)
    shared = common(options) | {"qkv_bias": bias, "output_bias": bias, "normed_qk": True}
    return windowed(TransformerConfig(**shared), options)


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {**write_common(config), **write_windowed(config), "attention_bias": config.qkv_bias}


QWEN3 = names("qwen3", "Qwen3ForCausalLM", _read, _write)
