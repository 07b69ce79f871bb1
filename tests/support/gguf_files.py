"""GGUF files of small random models, written as llama.cpp's converter does, with the `gguf` package's own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFWriter
from reference_models import random_reference
from torch import Tensor

Choose = Callable[[str, tuple[int, ...]], Kind]
# name in REFERENCES: (GGUF's architecture, sizes whose rows divide into blocks of 32)
WIDE = {"hidden_size": 64, "intermediate_size": 96, "vocab_size": 37}
MODELS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", WIDE),
    "llama with biases": ("llama", WIDE),
    "llama tied": ("llama", WIDE),
    "llama linear": ("llama", WIDE),
    "llama yarn": ("llama", {**WIDE, "rope_parameters": None}),
    "llama llama3": ("llama", {**WIDE, "rope_parameters": None}),
    "mistral": ("llama", WIDE),
    "qwen2": ("qwen2", WIDE),
    "qwen3": ("qwen3", {**WIDE, "head_dim": 32}),
    "gpt2": ("gpt2", {"n_embd": 64, "n_inner": 96, "vocab_size": 37}),
    "bert encoder": ("bert", WIDE),
}
_TURNS = {"rope_theta": 50.0, "factor": 4.0, "rope_type": "yarn", "original_max_position_embeddings": 16}
_TURNS |= {"beta_fast": 2.0, "beta_slow": 0.5}
_LLAMA3 = {"rope_theta": 5e5, "factor": 32.0, "rope_type": "llama3", "original_max_position_embeddings": 8192}
_LLAMA3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}


def reference(name: str, **changes: Any) -> Any:
    """A model of the `transformers` library whose rows divide into blocks."""
    options = {**MODELS[name][1], **changes}
    if options.get("rope_parameters", 0) is None:
        options["rope_parameters"] = _TURNS if name == "llama yarn" else _LLAMA3
    vocabulary = options.pop("vocab_size")
    return random_reference(name, vocabulary=vocabulary, **options)


def plain(name: str, shape: tuple[int, ...]) -> Kind:
    return Kind.F32


def write(path: Path, name: str, model: Any, choose: Choose = plain) -> Path:
    """Write ``model``, and leave in it the numbers that the file holds."""
    architecture = MODELS[name][0]
    writer = GGUFWriter(path, architecture)
    _metadata(writer, model.config, architecture)
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), model.config.num_hidden_layers)
    tied = bool(model.config.tie_word_embeddings)
    for theirs, tensor in model.state_dict().items():
        if "pooler" in theirs or (tied and theirs == "lm_head.weight"):
            continue
        ours = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        assert ours is not None, theirs
        _put(writer, ours, theirs, tensor, model.config, architecture, choose)
    if getattr(model.config, "rope_parameters", None) and model.config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", _factors(model))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _put(
    writer: GGUFWriter, ours: str, theirs: str, tensor: Tensor, config: Any, architecture: str, choose: Choose
) -> None:
    there, back = _layout(theirs, config, architecture)
    laid = there(tensor).contiguous().numpy()
    kind = choose(ours, laid.shape) if laid.ndim > 1 else Kind.F32
    raw = gguf.quants.quantize(laid, kind)
    writer.add_tensor(ours, raw, raw_dtype=kind)
    tensor.copy_(back(torch.from_numpy(gguf.quants.dequantize(raw, kind).astype(np.float32).reshape(laid.shape))))


def _layout(theirs: str, config: Any, architecture: str) -> tuple[Callable[[Tensor], Tensor], ...]:
    """To the file and back: llama.cpp's `permute` of Llama's queries and keys, and GPT-2's matrices turned."""
    if architecture == "gpt2" and theirs.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return (lambda t: t.T, lambda t: t.T)
    if architecture == "llama" and (".q_proj." in theirs or ".k_proj." in theirs):
        count = config.num_attention_heads if ".q_proj." in theirs else config.num_key_value_heads
        return (
            lambda t: t.reshape(count, 2, t.shape[0] // count // 2, *t.shape[1:]).swapaxes(1, 2).reshape(t.shape),
            lambda t: t.reshape(count, t.shape[0] // count // 2, 2, *t.shape[1:]).swapaxes(1, 2).reshape(t.shape),
        )
    return (lambda t: t, lambda t: t)


def _metadata(writer: GGUFWriter, config: Any, architecture: str) -> None:
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_feed_forward_length(config.n_inner if architecture == "gpt2" else config.intermediate_size)
    if architecture == "gpt2":
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    elif architecture == "bert":
        writer.add_layer_norm_eps(config.layer_norm_eps)
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    else:
        _rotary_metadata(writer, config)


def _rotary_metadata(writer: GGUFWriter, config: Any) -> None:
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if getattr(config, "sliding_window", None) and config.model_type == "mistral":
        writer.add_sliding_window(config.sliding_window)


def _factors(model: Any) -> np.ndarray[Any, Any]:
    """One factor a pair, as the converter works them out of Llama 3's four numbers."""
    rope, head = model.config.rope_parameters, model.config.head_dim
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    factors = []
    for pair in range(head // 2):
        wave = 2 * np.pi * rope["rope_theta"] ** (2 * pair / head)
        if wave < high:
            factors.append(1.0)
        elif wave > low:
            factors.append(rope["factor"])
        else:
            smooth = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (
                rope["high_freq_factor"] - rope["low_freq_factor"]
            )
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)
