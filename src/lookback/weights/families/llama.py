"""Llama's names (Touvron et al. 2023), which Mistral and Qwen share; the others are Llama with a few options set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lookback.models import TransformerConfig
from lookback.weights.options import Options
from lookback.weights.rotary import read_rotary, write_rotary
from lookback.weights.table import Names, Record, Row, per_layer

ACTIVATIONS = {"silu": "swiglu", "swish": "swiglu"}
_LAYER = {
    "attention_norm.weight": "input_layernorm.weight",
    "attention.query.weight": "self_attn.q_proj.weight",
    "attention.key.weight": "self_attn.k_proj.weight",
    "attention.value.weight": "self_attn.v_proj.weight",
    "attention.output.weight": "self_attn.o_proj.weight",
    "mlp_norm.weight": "post_attention_layernorm.weight",
    "mlp.gate.weight": "mlp.gate_proj.weight",
    "mlp.input.weight": "mlp.up_proj.weight",
    "mlp.output.weight": "mlp.down_proj.weight",
}
_QK_NORM = {
    "attention.query_norm.weight": "self_attn.q_norm.weight",
    "attention.key_norm.weight": "self_attn.k_norm.weight",
}


def common(options: Options) -> dict[str, Any]:
    """The options that all of the group write alike."""
    heads, width = options.count("num_attention_heads", 32), options.count("hidden_size", 4096)
    context = options.count("max_position_embeddings", 2048)
    base, scaling = read_rotary(options, context)
    return {
        "vocabulary": options.count("vocab_size", 32000),
        "context": context,
        "layers": options.count("num_hidden_layers", 32),
        "heads": heads,
        "kv_heads": options.count("num_key_value_heads", heads),
        "head_width": options.count("head_dim", width // max(heads, 1)),
        "width": width,
        "mlp_width": options.count("intermediate_size", 11008),
        "positions": "rotary",
        "rotary_base": base,
        "rotary_scaling": scaling,
        "norm": "rms",
        "norm_epsilon": options.number("rms_norm_eps", 1e-6),
        "mlp": options.one_of("hidden_act", "silu", ACTIVATIONS),
        "qkv_bias": False,
        "output_bias": False,
        "mlp_bias": False,
        "tied_embeddings": options.flag("tie_word_embeddings", False),
        "dropout": options.number("attention_dropout", 0.0),
    }


def write_common(config: TransformerConfig) -> dict[str, Any]:
    """`common` the other way."""
    return {
        **write_sizes(config),
        "head_dim": config.head_width,
        "rms_norm_eps": config.norm_epsilon,
        "hidden_act": "silu",
        "attention_dropout": config.dropout,
    }


def write_sizes(config: TransformerConfig) -> dict[str, Any]:
    """Sizes, rotary positions and tying, which every family with rotary positions writes alike."""
    return {
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.context,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "tie_word_embeddings": config.tied_embeddings,
        **write_rotary(config),
    }


def _rows(config: TransformerConfig) -> Iterator[Row]:
    """Every parameter of the group; biases and query/key norms where the configuration has them."""
    yield Row(("tokens.weight",), "model.embed_tokens.weight")
    layer = dict(_LAYER) | (_QK_NORM if config.normed_qk else {})
    biased = {"query": config.qkv_bias, "key": config.qkv_bias, "value": config.qkv_bias, "output": config.output_bias}
    for name, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o")):
        if biased[name]:
            layer[f"attention.{name}.bias"] = f"self_attn.{letter}_proj.bias"
    if config.mlp_bias:
        layer |= {f"mlp.{ours}.bias": f"mlp.{theirs}_proj.bias" for ours, theirs in _MLP.items()}
    yield from per_layer(config, [Row((f"blocks.{{i}}.{o}",), f"model.layers.{{i}}.{t}") for o, t in layer.items()])
    yield Row(("final_norm.weight",), "model.norm.weight")
    if not config.tied_embeddings:
        yield Row(("output.weight",), "lm_head.weight")


_MLP = {"gate": "gate", "input": "up", "output": "down"}


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "llama")
    bias = options.flag("attention_bias", False)
    shared = common(options)
    shared |= {"qkv_bias": bias, "output_bias": bias, "mlp_bias": options.flag("mlp_bias", False)}
    return TransformerConfig(**shared)


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {**write_common(config), "attention_bias": config.qkv_bias, "mlp_bias": config.mlp_bias}


def names(
    model_type: str,
    architecture: str,
    read: Callable[[Record], TransformerConfig],
    write: Callable[[TransformerConfig], dict[str, Any]],
) -> Names:
    """A family of the group."""
    return Names(
        model_type,
        architecture,
        "model.",
        read,
        write,
        _rows,
        twins={"lm_head.weight": "model.embed_tokens.weight"},
        ignored=("rotary_emb.inv_freq",),
    )


LLAMA = names("llama", "LlamaForCausalLM", _read, _write)
