"""Mistral (Jiang et al. 2023): Llama with a sliding window in every layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lookback.models import TransformerConfig
from lookback.weights.families.llama import common, names, write_common
from lookback.weights.options import Options
from lookback.weights.table import Record


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "mistral")
    config = TransformerConfig(**common(options))
    default = None if "sliding_window" in record else 4096  # null is none; what does not say is of Mistral's first
    return replace(config, sliding_window=options.count("sliding_window", default) or None)


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {**write_common(config), "sliding_window": config.sliding_window}


MISTRAL = names("mistral", "MistralForCausalLM", _read, _write)
