"""GPT-2's names (Radford et al. 2019) on Hugging Face: projections are stored as [in, out], Q, K and V in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lookback.models import TransformerConfig
from lookback.nn.mlp import MLPKind
from lookback.weights.options import Options
from lookback.weights.table import Names, Record, Row, Stacked, per_layer

ACTIVATIONS: Mapping[str, MLPKind] = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
_T = Stacked(transposed=True)


def _read(record: Record) -> TransformerConfig:
    options = Options(record, "gpt2")
    options.must("scale_attn_by_inverse_layer_idx", False)
    options.must("add_cross_attention", False)
    width = options.count("n_embd", 768)
    return TransformerConfig(
        vocabulary=options.count("vocab_size", 50257),
        context=options.count("n_positions", 1024),
        layers=options.count("n_layer", 12),
        heads=options.count("n_head", 12),
        width=width,
        mlp_width=options.count("n_inner", None) or 4 * width,
        norm_epsilon=options.number("layer_norm_epsilon", 1e-5),
        mlp=options.one_of("activation_function", "gelu_new", ACTIVATIONS),
        scaled=options.flag("scale_attn_weights", True),
        tied_embeddings=options.flag("tie_word_embeddings", True),
        dropout=options.number("resid_pdrop", 0.1),
    )


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocabulary,
        "n_positions": config.context,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_embd": config.width,
        "n_inner": config.mlp_width,
        "layer_norm_epsilon": config.norm_epsilon,
        "activation_function": "gelu" if config.mlp == "gelu" else "gelu_new",
        "scale_attn_weights": config.scaled,
        "tie_word_embeddings": config.tied_embeddings,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
    }


def _rows(config: TransformerConfig) -> Iterator[Row]:
    yield Row(("tokens.weight",), "transformer.wte.weight")
    yield Row(("positions.weight",), "transformer.wpe.weight")
    ours, theirs = "blocks.{i}.", "transformer.h.{i}."
    rows = []
    for part in ("weight", "bias"):
        qkv = tuple(f"{ours}attention.{name}.{part}" for name in ("query", "key", "value"))
        matrix = part == "weight"
        rows += [
            Row((f"{ours}attention_norm.{part}",), f"{theirs}ln_1.{part}"),
            Row(qkv, f"{theirs}attn.c_attn.{part}", Stacked(3, transposed=matrix)),
            Row((f"{ours}attention.output.{part}",), f"{theirs}attn.c_proj.{part}", _T if matrix else Stacked()),
            Row((f"{ours}mlp_norm.{part}",), f"{theirs}ln_2.{part}"),
            Row((f"{ours}mlp.input.{part}",), f"{theirs}mlp.c_fc.{part}", _T if matrix else Stacked()),
            Row((f"{ours}mlp.output.{part}",), f"{theirs}mlp.c_proj.{part}", _T if matrix else Stacked()),
        ]
    yield from per_layer(config, rows)
    for part in ("weight", "bias"):
        yield Row((f"final_norm.{part}",), f"transformer.ln_f.{part}")
    if not config.tied_embeddings:
        yield Row(("output.weight",), "lm_head.weight")


GPT2 = Names(
    "gpt2",
    "GPT2LMHeadModel",
    "transformer.",
    _read,
    _write,
    _rows,
    twins={"lm_head.weight": "transformer.wte.weight"},
    ignored=(".attn.bias", ".attn.masked_bias"),
)
