"""GGUF's words for what Hugging Face folders say: tensor names and configuration keys, as tables.

A GGUF file is read as if it were such a folder, so that every family has one table of names only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from lookback.errors import InputError
from lookback.nn.position import RotaryScaling
from lookback.weights.families import FAMILIES
from lookback.weights.gguf import GGUFFile
from lookback.weights.options import Options
from lookback.weights.source import Source
from lookback.weights.table import Interleaved, Names

_LLAMA = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "attn_norm": "model.layers.{i}.input_layernorm",
    "attn_q": "model.layers.{i}.self_attn.q_proj",
    "attn_k": "model.layers.{i}.self_attn.k_proj",
    "attn_v": "model.layers.{i}.self_attn.v_proj",
    "attn_output": "model.layers.{i}.self_attn.o_proj",
    "attn_q_norm": "model.layers.{i}.self_attn.q_norm",
    "attn_k_norm": "model.layers.{i}.self_attn.k_norm",
    "ffn_norm": "model.layers.{i}.post_attention_layernorm",
    "ffn_gate": "model.layers.{i}.mlp.gate_proj",
    "ffn_up": "model.layers.{i}.mlp.up_proj",
    "ffn_down": "model.layers.{i}.mlp.down_proj",
}
_GPT2 = {
    "token_embd.weight": "transformer.wte.weight",
    "position_embd.weight": "transformer.wpe.weight",
    "output_norm.weight": "transformer.ln_f.weight",
    "output_norm.bias": "transformer.ln_f.bias",
    "output.weight": "lm_head.weight",
    "attn_norm": "transformer.h.{i}.ln_1",
    "attn_qkv": "transformer.h.{i}.attn.c_attn",
    "attn_output": "transformer.h.{i}.attn.c_proj",
    "ffn_norm": "transformer.h.{i}.ln_2",
    "ffn_up": "transformer.h.{i}.mlp.c_fc",
    "ffn_down": "transformer.h.{i}.mlp.c_proj",
}
_BERT = {
    "token_embd.weight": "bert.embeddings.word_embeddings.weight",
    "position_embd.weight": "bert.embeddings.position_embeddings.weight",
    "token_types.weight": "bert.embeddings.token_type_embeddings.weight",
    "token_embd_norm.weight": "bert.embeddings.LayerNorm.weight",
    "token_embd_norm.bias": "bert.embeddings.LayerNorm.bias",
    "attn_q": "bert.encoder.layer.{i}.attention.self.query",
    "attn_k": "bert.encoder.layer.{i}.attention.self.key",
    "attn_v": "bert.encoder.layer.{i}.attention.self.value",
    "attn_output": "bert.encoder.layer.{i}.attention.output.dense",
    "attn_output_norm": "bert.encoder.layer.{i}.attention.output.LayerNorm",
    "ffn_up": "bert.encoder.layer.{i}.intermediate.dense",
    "ffn_down": "bert.encoder.layer.{i}.output.dense",
    "layer_output_norm": "bert.encoder.layer.{i}.output.LayerNorm",
}
_TENSORS: Mapping[str, Mapping[str, str]] = {
    "llama": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gpt2": _GPT2,
    "bert": _BERT,
}

_SHARED = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "context_length": "max_position_embeddings",
}
_ROTARY = _SHARED | {
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "llama": _ROTARY,
    "qwen2": _ROTARY,
    "qwen3": _ROTARY,
    "gpt2": {
        "block_count": "n_layer",
        "embedding_length": "n_embd",
        "feed_forward_length": "n_inner",
        "attention.head_count": "n_head",
        "context_length": "n_positions",
        "attention.layer_norm_epsilon": "layer_norm_epsilon",
    },
    "bert": _SHARED | {"attention.layer_norm_epsilon": "layer_norm_eps"},
}
_FACTORS = "rope_freqs.weight"
_LLAMA3_CONTEXT = 8192  # what all of its models were trained on before
_SCALING = {
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
_TURNED = tuple(f"{letter}_proj.{part}" for letter in "qk" for part in ("weight", "bias"))


def family_of(file: GGUFFile) -> Names:
    """The family that ``general.architecture`` names. A Llama with a sliding window is Mistral's."""
    kind = file.metadata.get("general.architecture")
    if not isinstance(kind, str) or kind not in _TENSORS:
        raise InputError(
            "{path} holds a {got} model; this version opens {allowed}",
            path=file.path,
            got=kind,
            allowed=", ".join(_TENSORS),
        )
    if kind == "llama" and file.metadata.get("llama.attention.sliding_window"):
        kind = "mistral"
    return next(names for names in FAMILIES if names.model_type == kind)


def record_of(file: GGUFFile, names: Names) -> dict[str, Any]:
    """The ``config.json`` that a Hugging Face folder of this model would have."""
    kind = str(file.metadata["general.architecture"])
    renamed = _OPTIONS[kind]
    given = {key.removeprefix(f"{kind}."): value for key, value in file.metadata.items() if key.startswith(f"{kind}.")}
    record: dict[str, Any] = {"model_type": names.model_type}
    record |= {theirs: given[ours] for ours, theirs in renamed.items() if ours in given}
    if "token_embd.weight" in file.tensors:
        record["vocab_size"] = file.tensors["token_embd.weight"].shape[0]
    if kind == "bert":
        record["architectures"] = ["BertModel"]
        if "token_types.weight" in file.tensors:
            record["type_vocab_size"] = file.tensors["token_types.weight"].shape[0]
        return record
    record["tie_word_embeddings"] = "output.weight" not in file.tensors
    # GGUF doesn't say; llama.cpp, too, takes the biases that are there.
    record["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
    record["mlp_bias"] = "blk.0.ffn_down.bias" in file.tensors
    if kind != "gpt2" and "rope.dimension_count" in given:
        Options(given, kind).must("rope.dimension_count", _head_width(given))
    scaling = _scaling(file, kind, given)
    return record | ({"rope_scaling": scaling} if scaling else {})


def source_of(file: GGUFFile) -> Source:
    """The file's tensors under Hugging Face's names and in its layout."""
    kind = str(file.metadata["general.architecture"])
    theirs = dict(_renamed(file, kind))
    shapes = {name: _layout(kind, name, file.tensors[ours].shape) for name, ours in theirs.items()}
    heads = (file.metadata.get(f"{kind}.attention.head_count"), file.metadata.get(f"{kind}.attention.head_count_kv"))

    def read(name: str) -> Tensor:
        tensor = file.read(theirs[name])
        if kind == "gpt2" and _is_conv(name):
            return tensor.T
        if kind == "llama" and name.endswith(_TURNED):
            count = heads[0] if ".q_proj." in name else heads[1] or heads[0]
            return Interleaved(int(count or 1)).ours(tensor)[0]
        return tensor

    kinds = {name: file.tensors[ours].kind_name for name, ours in theirs.items()}
    return Source(file.path, shapes, kinds, read)


def _renamed(file: GGUFFile, kind: str) -> Iterator[tuple[str, str]]:
    """Their name for each tensor, with ours beside; a tensor no table knows keeps its own, and is refused later."""
    table = _TENSORS[kind]
    for name in file.tensors:
        parts = name.split(".")
        if name in table:
            yield table[name], name
        elif len(parts) == 4 and parts[0] == "blk" and parts[2] in table:
            yield f"{table[parts[2]].format(i=parts[1])}.{parts[3]}", name
        elif name != _FACTORS:
            yield name, name


def _is_conv(name: str) -> bool:
    return name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight"))


def _layout(kind: str, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[::-1] if kind == "gpt2" and _is_conv(name) else shape


def _scaling(file: GGUFFile, kind: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The rotary scaling: named in the metadata, or Llama 3's, which GGUF stores as one factor a pair.

    Raises InputError for whatever else a file says about its turns, which would be another arithmetic.
    """
    known = {*_SCALING, "rope.scaling.type", "rope.scaling.finetuned"}
    if other := [key for key in given if key.startswith(("rope.scaling.", "rope.scale")) and key not in known]:
        raise InputError(
            "{path} scales its rotary positions in ways that are not read: {names}",
            path=file.path,
            names=", ".join(other),
        )
    name = given.get("rope.scaling.type")
    if _FACTORS in file.tensors:
        return _llama3(file, kind, given)
    if name in (None, "none"):
        return None
    return {"rope_type": name, **{theirs: given[ours] for ours, theirs in _SCALING.items() if ours in given}}


def _llama3(file: GGUFFile, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Llama 3's scaling, found by its factors; others are refused."""
    factors = file.read(_FACTORS).flatten()
    base = Options(given, kind).number("rope.freq_base", 10_000.0)
    plain = 1.0 / base ** (torch.arange(0, 2 * len(factors), 2) / (2 * len(factors)))
    # The slowest turns are divided by the whole factor.
    scaling = RotaryScaling("llama3", float(factors.max()), _LLAMA3_CONTEXT)
    turned = scaling.frequencies(plain, base)
    if 2 * len(factors) == _head_width(given) and torch.allclose(plain / factors, turned, rtol=1e-3, atol=0.0):
        return {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_frequency,
            "high_freq_factor": scaling.high_frequency,
            "original_max_position_embeddings": scaling.original_context,
        }
    raise InputError(
        "{path} scales its {family} rotary positions by factors that are not Llama 3's; supported: {kinds}",
        path=file.path,
        family=kind,
        kinds="linear, llama3, yarn",
    )


def _head_width(given: Mapping[str, Any]) -> int:
    options = Options(given, "GGUF")
    whole = options.count("embedding_length", None) // max(options.count("attention.head_count", None), 1)
    return options.count("attention.key_length", whole)
