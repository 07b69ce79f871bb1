"""Our one Transformer is exactly GPT-2, BERT, Llama, Qwen2, Qwen3 and Mistral in shape: with the weights of a small
random model of the `transformers` library it gives that model's hidden states and logits, padded or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from recorder import Recorder
from torch import Tensor, nn
from transformers.models.bert import BertConfig, BertForMaskedLM
from transformers.models.gpt2 import GPT2Config, GPT2LMHeadModel
from transformers.models.llama import LlamaConfig, LlamaForCausalLM
from transformers.models.mistral import MistralConfig, MistralForCausalLM
from transformers.models.qwen2 import Qwen2Config, Qwen2ForCausalLM
from transformers.models.qwen3 import Qwen3Config, Qwen3ForCausalLM

from lookback.models import LanguageModel, build, configure
from lookback.nn.mask import Padding

V, C, L, N, D, F_WIDTH = 23, 32, 3, 4, 24, 40
_NO_SPECIALS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}

# ours: theirs, layer by layer ({} is the layer's number). GPT-2 keeps its matrices transposed and Q, K, V in one.
GPT2_NAMES = {
    "tokens.weight": "transformer.wte.weight",
    "positions.weight": "transformer.wpe.weight",
    "blocks.{}.attention_norm": "transformer.h.{}.ln_1",
    "blocks.{}.attention.query": "transformer.h.{}.attn.c_attn",
    "blocks.{}.attention.key": "transformer.h.{}.attn.c_attn",
    "blocks.{}.attention.value": "transformer.h.{}.attn.c_attn",
    "blocks.{}.attention.output": "transformer.h.{}.attn.c_proj",
    "blocks.{}.mlp_norm": "transformer.h.{}.ln_2",
    "blocks.{}.mlp.input": "transformer.h.{}.mlp.c_fc",
    "blocks.{}.mlp.output": "transformer.h.{}.mlp.c_proj",
    "final_norm": "transformer.ln_f",
    "output": "lm_head",
}
BERT_NAMES = {
    "tokens.weight": "bert.embeddings.word_embeddings.weight",
    "positions.weight": "bert.embeddings.position_embeddings.weight",
    "token_types.weight": "bert.embeddings.token_type_embeddings.weight",
    "embedding_norm": "bert.embeddings.LayerNorm",
    "blocks.{}.attention.query": "bert.encoder.layer.{}.attention.self.query",
    "blocks.{}.attention.key": "bert.encoder.layer.{}.attention.self.key",
    "blocks.{}.attention.value": "bert.encoder.layer.{}.attention.self.value",
    "blocks.{}.attention.output": "bert.encoder.layer.{}.attention.output.dense",
    "blocks.{}.attention_norm": "bert.encoder.layer.{}.attention.output.LayerNorm",
    "blocks.{}.mlp.input": "bert.encoder.layer.{}.intermediate.dense",
    "blocks.{}.mlp.output": "bert.encoder.layer.{}.output.dense",
    "blocks.{}.mlp_norm": "bert.encoder.layer.{}.output.LayerNorm",
    "masked_head.dense": "cls.predictions.transform.dense",
    "masked_head.norm": "cls.predictions.transform.LayerNorm",
    "masked_head.bias": "cls.predictions.bias",
    "output": "cls.predictions.decoder",
}
LLAMA_NAMES = {
    "tokens.weight": "model.embed_tokens.weight",
    "blocks.{}.attention_norm": "model.layers.{}.input_layernorm",
    "blocks.{}.attention.query": "model.layers.{}.self_attn.q_proj",
    "blocks.{}.attention.key": "model.layers.{}.self_attn.k_proj",
    "blocks.{}.attention.value": "model.layers.{}.self_attn.v_proj",
    "blocks.{}.attention.output": "model.layers.{}.self_attn.o_proj",
    "blocks.{}.attention.query_norm": "model.layers.{}.self_attn.q_norm",
    "blocks.{}.attention.key_norm": "model.layers.{}.self_attn.k_norm",
    "blocks.{}.mlp_norm": "model.layers.{}.post_attention_layernorm",
    "blocks.{}.mlp.gate": "model.layers.{}.mlp.gate_proj",
    "blocks.{}.mlp.input": "model.layers.{}.mlp.up_proj",
    "blocks.{}.mlp.output": "model.layers.{}.mlp.down_proj",
    "final_norm": "model.norm",
    "output": "lm_head",
}


@dataclass(frozen=True)
class Reference:
    """A model of the `transformers` library, and what makes ours the same."""

    config: Callable[..., Any]
    model: Callable[..., Any]
    options: dict[str, Any]
    names: dict[str, str]
    style: str
    changes: dict[str, Any]
    family: str = "gpt"

    def make(self, dtype: torch.dtype, attention: str = "eager") -> tuple[Any, LanguageModel]:
        """Theirs with random weights, and ours with the same."""
        config = self.config(vocab_size=V, **self.options, **_NO_SPECIALS, attn_implementation=attention)
        theirs = self.model(config).eval().to(dtype)
        generator = torch.Generator().manual_seed(7)
        for name, parameter in theirs.named_parameters():
            parameter.requires_grad_(False)
            gain = 1.0 if parameter.ndim == 1 and "bias" not in name else 0.0
            parameter.copy_(gain + 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        shape = {"context": C, "layers": L, "heads": N, "width": D, "mlp_width": F_WIDTH, "dropout": 0.0}
        ours = build(configure(self.family, V, style=self.style, **shape, **self.changes), dtype=dtype).eval()
        self.copy(theirs.state_dict(), ours)
        return theirs, ours

    def copy(self, theirs: dict[str, Tensor], ours: LanguageModel) -> None:
        """Every parameter of ours from theirs; none of theirs may be left over but a tied head, seen twice there."""
        used = set()
        for name, parameter in ours.named_parameters():
            parameter.requires_grad_(False)
            layer = name.split(".")[1] if name.startswith("blocks.") else ""
            general = name.replace(f".{layer}.", ".{}.", 1) if layer else name
            part = "" if general in self.names else "." + general.rsplit(".", 1)[1]
            source = self.names[general.removesuffix(part)].format(layer) + part
            used.add(source)
            tensor = theirs[source]
            if "c_attn" in source:
                tensor = tensor.chunk(3, dim=-1)[["query", "key", "value"].index(name.split(".")[3])]
            if source.startswith("transformer.h.") and tensor.ndim == 2:
                tensor = tensor.T
            assert tensor.shape == parameter.shape, name
            parameter.copy_(tensor)
        left = {name for name in set(theirs) - used if not name.startswith(self.names["output"] + ".")}
        assert not left, f"parameters of theirs that ours has no place for: {left}"


_llama = {
    "max_position_embeddings": C,
    "hidden_size": D,
    "num_hidden_layers": L,
    "num_attention_heads": N,
    "intermediate_size": F_WIDTH,
    "rms_norm_eps": 1e-5,
}
REFERENCES = {
    "gpt2": Reference(
        GPT2Config,
        GPT2LMHeadModel,
        {"n_positions": C, "n_embd": D, "n_layer": L, "n_head": N, "n_inner": F_WIDTH},
        GPT2_NAMES,
        "gpt2",
        {},
    ),
    "bert": Reference(
        BertConfig,
        BertForMaskedLM,
        {
            "max_position_embeddings": C,
            "hidden_size": D,
            "num_hidden_layers": L,
            "num_attention_heads": N,
            "intermediate_size": F_WIDTH,
        },
        BERT_NAMES,
        "bert",
        {},
        family="bert",
    ),
    "llama": Reference(
        LlamaConfig,
        LlamaForCausalLM,
        {**_llama, "num_key_value_heads": 2, "tie_word_embeddings": False},
        LLAMA_NAMES,
        "llama",
        {"kv_heads": 2, "tied_embeddings": False},
    ),
    "llama, tied": Reference(
        LlamaConfig,
        LlamaForCausalLM,
        {**_llama, "num_key_value_heads": N, "tie_word_embeddings": True},
        LLAMA_NAMES,
        "llama",
        {},
    ),
    "qwen2": Reference(
        Qwen2Config,
        Qwen2ForCausalLM,
        {
            **_llama,
            "rms_norm_eps": 1e-6,
            "num_key_value_heads": 1,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        },
        LLAMA_NAMES,
        "qwen2",
        {"kv_heads": 1},
    ),
    "qwen3": Reference(
        Qwen3Config,
        Qwen3ForCausalLM,
        {
            **_llama,
            "rms_norm_eps": 1e-6,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "tie_word_embeddings": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        },
        LLAMA_NAMES,
        "qwen3",
        {"kv_heads": 2, "head_width": 8, "tied_embeddings": False},
    ),
    "mistral": Reference(
        MistralConfig,
        MistralForCausalLM,
        {**_llama, "num_key_value_heads": 2, "sliding_window": 4, "tie_word_embeddings": False},
        LLAMA_NAMES,
        "llama",
        {"kv_heads": 2, "sliding_window": 4, "tied_embeddings": False},
    ),
}
every = pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES.keys())
IDS = torch.randint(0, V, (3, 12), generator=torch.Generator().manual_seed(0))


def compare(theirs: Any, ours: LanguageModel, padding: Padding | None, tolerance: float) -> None:
    """Embeddings, the stream after each layer, the final hidden vectors and the logits, at the real tokens."""
    real = torch.ones_like(IDS, dtype=torch.bool) if padding is None else padding.real()
    tap = Recorder(lambda name: name in ("embedding", "hidden", *(f"layers.{n}.output" for n in range(L))))
    logits, _ = ours(IDS, padding=padding, tap=tap)
    told = {"attention_mask": real.long(), "position_ids": (real.cumsum(1) - 1).clamp(min=0)}
    expected = theirs(IDS, output_hidden_states=True, **told)
    mine = [*tap.values("embedding"), *(tap.values(f"layers.{n}.output")[0] for n in range(L - 1))]
    mine += tap.values("hidden")
    assert len(mine) == len(expected.hidden_states) == L + 1
    for actual, wanted in zip([*mine, logits], [*expected.hidden_states, expected.logits], strict=True):
        torch.testing.assert_close(actual[real], wanted[real], rtol=0, atol=tolerance)


PADDINGS = {
    "plain": None,
    "padded right": Padding(12, (0, 0, 0), (0, 3, 11)),
    "padded left": Padding(12, (0, 3, 8), (0, 0, 0)),
}
padded = pytest.mark.parametrize("padding", PADDINGS.values(), ids=PADDINGS.keys())


@every
@padded
def test_hidden_states_and_logits_are_theirs(reference: Reference, padding: Padding | None) -> None:
    compare(*reference.make(torch.float32), padding, 1e-4)


@padded
@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_in_fp64_to_the_last_digits(name: str, padding: Padding | None) -> None:
    compare(*REFERENCES[name].make(torch.float64), padding, 1e-9)


class RMSNormInFull(nn.Module):
    """What the references compute, without their way through fp32."""

    def __init__(self, theirs: Any) -> None:
        super().__init__()
        self.weight, self.epsilon = theirs.weight, theirs.variance_epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


ROTARY = ["llama", "qwen2", "qwen3", "mistral"]


@pytest.mark.parametrize("name", ROTARY)
def test_in_fp64_references_that_go_through_fp32(name: str) -> None:
    """These compute RMSNorm, and the eager softmax, in fp32 whatever the model's dtype, so fp64 agrees to fp32's digits
    only. (Padded, their fp64 is NaN: the mask's lowest fp64 number becomes −∞ on that way.)"""
    compare(*REFERENCES[name].make(torch.float64), None, 1e-4)


@padded
@pytest.mark.parametrize("name", ROTARY)
def test_in_fp64_with_the_references_fp32_out_of_the_way(name: str, padding: Padding | None) -> None:
    theirs, ours = REFERENCES[name].make(torch.float64, attention="sdpa")
    for path, module in list(theirs.named_modules()):
        if type(module).__name__.endswith("RMSNorm"):
            parent, _, attribute = path.rpartition(".")
            setattr(theirs.get_submodule(parent), attribute, RMSNormInFull(module))
    compare(theirs, ours, padding, 1e-9)


@pytest.mark.parametrize("name", ["gpt2", *ROTARY])
def test_a_cached_run_is_theirs_too(name: str) -> None:
    """Prefill and single steps of ours against their whole pass."""
    theirs, ours = REFERENCES[name].make(torch.float32)
    state = ours.start(3, capacity=1)
    logits = torch.cat([ours(chunk, state=state)[0] for chunk in IDS.split([7, 1, 1, 3], dim=1)], dim=1)
    torch.testing.assert_close(logits, theirs(IDS).logits, rtol=0, atol=1e-4)
