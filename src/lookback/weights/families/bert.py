"""BERT's names (Devlin et al. 2019), with its masked-LM head or, as sentence-transformers ship it, without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lookback.models import TransformerConfig
from lookback.weights.families.gpt2 import ACTIVATIONS
from lookback.weights.options import Options
from lookback.weights.table import Names, Record, Row, per_layer


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "bert")
    options.must("position_embedding_type", "absolute")
    options.must("is_decoder", False)
    options.must("add_cross_attention", False)
    options.must("tie_word_embeddings", True)
    headless = "BertModel" in options.names("architectures")
    return TransformerConfig(
        causal=False,
        vocabulary=options.count("vocab_size", 30522),
        context=options.count("max_position_embeddings", 512),
        layers=options.count("num_hidden_layers", 12),
        heads=options.count("num_attention_heads", 12),
        width=options.count("hidden_size", 768),
        mlp_width=options.count("intermediate_size", 3072),
        norm_epsilon=options.number("layer_norm_eps", 1e-12),
        pre_norm=False,
        mlp=options.one_of("hidden_act", "gelu", ACTIVATIONS),
        token_types=options.count("type_vocab_size", 2),
        embedding_norm=True,
        head="none" if headless else "masked",
        dropout=options.number("hidden_dropout_prob", 0.1),
    )


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {
        "architectures": ["BertModel" if config.head == "none" else "BertForMaskedLM"],
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.context,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "layer_norm_eps": config.norm_epsilon,
        "hidden_act": "gelu_new" if config.mlp == "gelu_tanh" else "gelu",
        "type_vocab_size": config.token_types,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "pad_token_id": None,
        "tie_word_embeddings": True,
    }


_LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "mlp.input": "intermediate.dense",
    "mlp.output": "output.dense",
    "mlp_norm": "output.LayerNorm",
}
_HEAD = {
    "masked_head.dense.weight": "transform.dense.weight",
    "masked_head.dense.bias": "transform.dense.bias",
    "masked_head.norm.weight": "transform.LayerNorm.weight",
    "masked_head.norm.bias": "transform.LayerNorm.bias",
    "masked_head.bias": "bias",
}


def _rows(config: TransformerConfig) -> Iterator[Row]:
    embeddings = {
        "tokens.weight": "word_embeddings.weight",
        "positions.weight": "position_embeddings.weight",
        "token_types.weight": "token_type_embeddings.weight",
        "embedding_norm.weight": "LayerNorm.weight",
        "embedding_norm.bias": "LayerNorm.bias",
    }
    for ours, theirs in embeddings.items():
        yield Row((ours,), f"bert.embeddings.{theirs}")
    layer = [
        Row((f"blocks.{{i}}.{ours}.{part}",), f"bert.encoder.layer.{{i}}.{theirs}.{part}")
        for ours, theirs in _LAYER.items()
        for part in ("weight", "bias")
    ]
    yield from per_layer(config, layer)
    if config.head == "masked":
        for ours, theirs in _HEAD.items():
            yield Row((ours,), f"cls.predictions.{theirs}")


BERT = Names(
    "bert",
    "BertForMaskedLM",
    "bert.",
    _read,
    _write,
    _rows,
    twins={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored=(
        "embeddings.position_ids",
        "pooler.dense.weight",
        "pooler.dense.bias",
        "cls.seq_relationship.weight",
        "cls.seq_relationship.bias",
    ),
    older={".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"},
)
