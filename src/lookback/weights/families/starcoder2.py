"""StarCoder2's names (Lozhkov et al. 2024): Llama's attention between GPT-2's LayerNorm and GELU MLP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lookback.models import TransformerConfig
from lookback.weights.families.gpt2 import ACTIVATIONS
from lookback.weights.families.llama import write_sizes
from lookback.weights.options import Options
from lookback.weights.rotary import read_rotary
from lookback.weights.table import Names, Record, Row, per_layer

_LAYER = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.input": "mlp.c_fc",
    "mlp.output": "mlp.c_proj",
}


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "starcoder2")
    options.must("use_bias", True)
    heads, context = options.count("num_attention_heads", 24), options.count("max_position_embeddings", 4096)
    base, scaling = read_rotary(options, context)
    return TransformerConfig(
        vocabulary=options.count("vocab_size", 49152),
        context=context,
        layers=options.count("num_hidden_layers", 30),
        heads=heads,
        kv_heads=options.count("num_key_value_heads", 2),
        width=options.count("hidden_size", 3072),
        mlp_width=options.count("intermediate_size", 12288),
        sliding_window=options.count("sliding_window", None) or None,
        positions="rotary",
        rotary_base=base,
        rotary_scaling=scaling,
        norm_epsilon=options.number("norm_epsilon", 1e-5),
        mlp=options.one_of("hidden_act", "gelu_pytorch_tanh", ACTIVATIONS),
        tied_embeddings=options.flag("tie_word_embeddings", True),
        dropout=options.number("residual_dropout", 0.0),
    )


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {
        **write_sizes(config),
        "sliding_window": config.sliding_window,
        "norm_epsilon": config.norm_epsilon,
        "hidden_act": "gelu" if config.mlp == "gelu" else "gelu_pytorch_tanh",
        "residual_dropout": config.dropout,
        "use_bias": True,
    }


def _rows(config: TransformerConfig) -> Iterator[Row]:
    yield Row(("tokens.weight",), "model.embed_tokens.weight")
    parts = [(f"{ours}.{part}", f"{theirs}.{part}") for ours, theirs in _LAYER.items() for part in ("weight", "bias")]
    yield from per_layer(config, [Row((f"blocks.{{i}}.{o}",), f"model.layers.{{i}}.{t}") for o, t in parts])
    for part in ("weight", "bias"):
        yield Row((f"final_norm.{part}",), f"model.norm.{part}")
    if not config.tied_embeddings:
        yield Row(("output.weight",), "lm_head.weight")


STARCODER2 = Names(
    "starcoder2",
    "Starcoder2ForCausalLM",
    "model.",
    _read,
    _write,
    _rows,
    twins={"lm_head.weight": "model.embed_tokens.weight"},
)
