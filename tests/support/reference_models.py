"""Small random models of the `transformers` library, saved as folders: what the weights room is held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

from lookback.nn.mask import Padding

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

V, C, L, N, D, F_WIDTH = 23, 32, 3, 4, 24, 40
_BERT = {"hidden_size": D, "num_hidden_layers": L, "num_attention_heads": N, "intermediate_size": F_WIDTH}
_BERT |= {"max_position_embeddings": C}
_LLAMA = {**_BERT, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
_GPT2 = {"n_positions": C, "n_embd": D, "n_layer": L, "n_head": N, "n_inner": F_WIDTH}


def _rope(kind: str, **options: Any) -> dict[str, Any]:
    """A base so low that even the few pairs of a small head turn fast and slowly."""
    if kind == "llama3":
        options |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    turns = {"rope_type": kind, "rope_theta": 50.0, "factor": 4.0, "original_max_position_embeddings": 16, **options}
    if kind == "linear":
        del turns["original_max_position_embeddings"]
    return {**_LLAMA, "head_dim": 16, "rope_parameters": turns}


# name: (class, options of its configuration)
REFERENCES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", _GPT2),
    "gpt2 with the exact gelu": ("GPT2LMHeadModel", {**_GPT2, "activation_function": "gelu"}),
    "gpt2 unscaled": ("GPT2LMHeadModel", {**_GPT2, "scale_attn_weights": False}),
    "gpt2 untied": ("GPT2LMHeadModel", {**_GPT2, "tie_word_embeddings": False}),
    "gpt2 of the usual mlp width": ("GPT2LMHeadModel", {**_GPT2, "n_inner": None}),
    "bert": ("BertForMaskedLM", _BERT),
    "bert with gelu_new, one type": ("BertForMaskedLM", {**_BERT, "hidden_act": "gelu_new", "type_vocab_size": 1}),
    "bert encoder": ("BertModel", _BERT),
    "llama": ("LlamaForCausalLM", _LLAMA),
    "llama multi-query": ("LlamaForCausalLM", {**_LLAMA, "num_key_value_heads": 1}),
    "llama with biases": ("LlamaForCausalLM", {**_LLAMA, "attention_bias": True, "mlp_bias": True}),
    "llama tied": ("LlamaForCausalLM", {**_LLAMA, "tie_word_embeddings": True}),
    "llama with wide heads": ("LlamaForCausalLM", {**_LLAMA, "head_dim": 10}),
    "llama linear": ("LlamaForCausalLM", _rope("linear")),
    "llama llama3": ("LlamaForCausalLM", _rope("llama3")),
    "llama yarn": ("LlamaForCausalLM", _rope("yarn", beta_fast=2.0, beta_slow=0.5)),
    "llama yarn, attention_factor": ("LlamaForCausalLM", _rope("yarn", beta_fast=2.0, attention_factor=1.3)),
    "llama yarn, mscale": ("LlamaForCausalLM", _rope("yarn", beta_fast=2.0, mscale=1.5, mscale_all_dim=0.7)),
    "llama yarn, not truncated": ("LlamaForCausalLM", _rope("yarn", beta_fast=2.0, beta_slow=0.5, truncate=False)),
    "llama yarn, no factor": ("LlamaForCausalLM", _rope("yarn", beta_fast=2.0, factor=None)),
    "mistral": ("MistralForCausalLM", {**_LLAMA, "sliding_window": 4}),
    "mistral without a window": ("MistralForCausalLM", {**_LLAMA, "sliding_window": None, "head_dim": 8}),
    "qwen2": ("Qwen2ForCausalLM", _LLAMA),
    "qwen2 with windows above": (
        "Qwen2ForCausalLM",
        {**_LLAMA, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3ForCausalLM", {**_LLAMA, "head_dim": 8, "tie_word_embeddings": True}),
    "qwen3 with biases": ("Qwen3ForCausalLM", {**_LLAMA, "head_dim": 8, "attention_bias": True}),
    "starcoder2": ("Starcoder2ForCausalLM", {**_BERT, "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh"}),
    "starcoder2 with a window": (
        "Starcoder2ForCausalLM",
        {**_BERT, "num_key_value_heads": 1, "hidden_act": "gelu", "sliding_window": 4, "tie_word_embeddings": False},
    ),
}


def random_reference(name: str, dtype: torch.dtype = torch.float32, vocabulary: int = V, **changes: Any) -> Any:
    """A model with random weights in which everything counts: gains, biases, sharp attention."""
    kind, options = REFERENCES[name]
    of = getattr(transformers, kind)
    nobody = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = of.config_class(**{**options, **nobody, "vocab_size": vocabulary, **changes}, attn_implementation="eager")
    model = of(config).eval().to(dtype)
    generator = torch.Generator().manual_seed(7)
    for at, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        gain = 1.0 if parameter.ndim == 1 and "bias" not in at else 0.0
        parameter.copy_(gain + 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def saved_reference(name: str, folder: Path, dtype: torch.dtype = torch.float32, **changes: Any) -> Path:
    """The folder of such a model, as that library saves it."""
    random_reference(name, dtype, **changes).save_pretrained(folder)
    return folder


def reopened(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """A folder opened by that library's own choice of class, without custom code. In fp64 its ways through fp32 (the
    RMSNorm, and the eager softmax) are left out."""
    config = transformers.AutoConfig.from_pretrained(folder)
    (architecture,) = config.architectures
    auto = "AutoModelForMaskedLM" if architecture == "BertForMaskedLM" else "AutoModelForCausalLM"
    auto = "AutoModel" if architecture == "BertModel" else auto
    attention = "eager" if dtype == torch.float32 or config.model_type in ("gpt2", "bert") else "sdpa"
    opened = getattr(transformers, auto).from_pretrained(
        folder, dtype=dtype, attn_implementation=attention, output_loading_info=True
    )
    model, told = opened
    assert type(model).__name__ == architecture
    made_up = {key for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in told[kind]}
    assert not {key for key in made_up if "pooler." not in str(key)}, told  # an encoder's vectors here do without it
    return (_without_fp32(model) if dtype == torch.float64 else model).eval().requires_grad_(False)


class RMSNormInFull(nn.Module):
    """What the references compute, without their way through fp32."""

    def __init__(self, theirs: Any) -> None:
        super().__init__()
        self.weight, self.epsilon = theirs.weight, theirs.variance_epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


def _without_fp32(model: Any) -> Any:
    for path, module in list(model.named_modules()):
        if type(module).__name__.endswith("RMSNorm"):
            parent, _, attribute = path.rpartition(".")
            setattr(model.get_submodule(parent), attribute, RMSNormInFull(module))
    return model


def outputs(theirs: Any, ids: Tensor, padding: Padding | None = None) -> tuple[list[Tensor], Tensor | None]:
    """Their hidden states (embeddings, then each layer's; the last is behind the final norm) and logits, if any."""
    real = torch.ones_like(ids, dtype=torch.bool) if padding is None else padding.real()
    told = {"attention_mask": real.long(), "position_ids": (real.cumsum(1) - 1).clamp(min=0)}
    with torch.no_grad():
        out = theirs(input_ids=ids, output_hidden_states=True, **told)
    return list(out.hidden_states), getattr(out, "logits", None)
