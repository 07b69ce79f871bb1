"""One Transformer. A mask and an objective are all that divide GPT from BERT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lookback.errors import InputError
from lookback.models.language_model import LanguageModel
from lookback.models.state import Append, KVCache, State, stateless
from lookback.models.transformer.config import TransformerConfig
from lookback.nn.attention import Attention, Keep
from lookback.nn.mask import Causal, Padding, Present, Readable, Rule, SameDocument, SlidingWindow
from lookback.nn.mlp import MLP
from lookback.nn.norm import norm
from lookback.nn.position import Rotation, sinusoidal
from lookback.nn.tap import Tap


@dataclass(frozen=True)
class Surroundings:
    """What every layer of one forward shares: positions, masks by window, rotary turns, padding, the cache."""

    positions: Int[Tensor, "#B T"]
    readable: dict[int | None, Readable]
    rotation: Rotation | None
    real: Bool[Tensor, "B T"] | None
    append: Append | None

    def keep(self, layer: int) -> Keep | None:
        """The layer's slot in the cache."""
        return None if self.append is None else self.append.keep(layer)


class Block(nn.Module):
    """Attention, then the MLP, each added to the residual stream x.

    Pre-norm (GPT-2, Llama): x + f(norm(x)). Post-norm (Vaswani et al. 2017, BERT): norm(x + f(x)).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.pre_norm
        self.attention_norm = norm(config.norm, config.width, config.norm_epsilon)
        self.attention = Attention(
            config.width,
            config.heads,
            config.kv_heads,
            config.head_width,
            input_bias=config.qkv_bias,
            output_bias=config.output_bias,
            tied_qk=config.tied_qk,
            scaled=config.scaled,
            normed_qk=config.norm_epsilon if config.normed_qk else None,
            dropout=config.dropout,
        )
        self.mlp_norm = norm(config.norm, config.width, config.norm_epsilon)
        self.mlp = MLP(config.width, config.mlp_width, config.mlp, bias=config.mlp_bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        readable: Readable,
        around: Surroundings,
        keep: Keep | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The residual stream after this layer."""
        inside = (None, None) if tap is None else (tap.inside("attention"), tap.inside("mlp"))
        normed = self.attention_norm(x) if self.pre_norm else x
        if tap is not None:
            normed = tap("attention.input", normed)
        read = self.attention(normed, readable, rotation=around.rotation, real=around.real, keep=keep, tap=inside[0])
        x = x + self.dropout(read)
        x = x if self.pre_norm else self.attention_norm(x)
        if tap is not None:
            x = tap("middle", x)
        normed = self.mlp_norm(x) if self.pre_norm else x
        if tap is not None:
            normed = tap("mlp.input", normed)
        x = x + self.dropout(self.mlp(normed, tap=inside[1]))
        return x if self.pre_norm else self.mlp_norm(x)


class MaskedHead(nn.Module):
    """BERT's output before the embedding: dense, the MLPs' GELU, LayerNorm; and the bias after (Devlin et al. 2019)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.norm = norm(config.norm, config.width, config.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.approximate = "tanh" if config.mlp == "gelu_tanh" else "none"

    def forward(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """What is then compared with every token's embedding."""
        out: Tensor = self.norm(F.gelu(self.dense(hidden), approximate=self.approximate))
        return out


class Transformer(LanguageModel):
    """Embeddings, a stack of blocks, a final norm (pre-norm only), and the output head."""

    kind: ClassVar[str] = "transformer"

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config: TransformerConfig = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width) if config.positions == "learned" else None
        self.token_types = nn.Embedding(config.token_types, config.width) if config.token_types else None
        self.embedding_norm = norm(config.norm, config.width, config.norm_epsilon) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.final_norm = norm(config.norm, config.width, config.norm_epsilon) if config.pre_norm else None
        self.masked_head = MaskedHead(config) if config.head == "masked" else None
        self.output = None if config.tied_embeddings else nn.Linear(config.width, config.vocabulary, bias=False)

    def start(self, batch: int, *, capacity: int = 64) -> KVCache:
        """An empty KV cache. Raises InputError for a bidirectional model, whose cache would go stale."""
        config = self.config
        if not config.causal:
            raise InputError(
                "a model that reads both sides has no cache that stays valid: one new token changes every earlier one; "
                "run it without a state"
            )
        return KVCache(
            batch,
            config.kv_heads,
            config.head_width,
            [config.window(layer) for layer in range(config.layers)],
            capacity=capacity,
            limit=config.context,
            dtype=self.tokens.weight.dtype,
            device=self.device,
        )

    def encode(
        self,
        ids: Int[Tensor, "B T"],
        *,
        state: State | None = None,
        padding: Padding | None = None,
        documents: Int[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """Hidden vectors after the last layer (and the final norm, where there is one)."""
        self._check(ids, state, padding, documents)
        around = self._surroundings(ids, state, padding, documents)
        x = self._embed(ids, around.positions, tap)
        for layer, block in enumerate(self.blocks):
            inside = None if tap is None else tap.inside(f"layers.{layer}")
            x = block(x, around.readable[self.config.window(layer)], around, around.keep(layer), inside)
            if tap is not None:
                x = tap(f"layers.{layer}.output", x)
        if self.final_norm is not None:
            x = self.final_norm(x)
        if tap is not None:
            x = tap("hidden", x)
        if around.append is not None:
            around.append.finish()
        return x, state

    def unembed(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits: the likeness to each token's output vector, which is its embedding when the two are tied.

        Raises InputError for an encoder without an output head.
        """
        if self.config.head == "none":
            raise InputError(
                "this model is an encoder without an output head, so it predicts no tokens; use its hidden states"
            )
        if self.masked_head is not None:
            hidden = self.masked_head(hidden)
        weight = self.tokens.weight if self.output is None else self.output.weight
        return F.linear(hidden, weight, None if self.masked_head is None else self.masked_head.bias)

    def initialise(self, generator: torch.Generator) -> None:
        """GPT-2's: normal of deviation 0.02, 0.02/√(2L) where a layer adds to the stream; biases 0, gains 1."""
        into_stream = 0.02 / (2 * self.config.layers) ** 0.5
        for name, parameter in self.named_parameters():
            with torch.no_grad():
                if parameter.ndim == 2:
                    adds = ".attention.output." in name or ".mlp.output." in name
                    parameter.normal_(0.0, into_stream if adds else 0.02, generator=generator)
                else:
                    parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)

    def _surroundings(
        self, ids: Tensor, state: State | None, padding: Padding | None, documents: Int[Tensor, "B T"] | None
    ) -> Surroundings:
        windows = {self.config.window(layer) for layer in range(self.config.layers)}
        real = None if padding is None else padding.real(ids.device)
        append = None
        if state is None:
            at = stateless(ids.shape[1], padding, documents, ids.device)
            positions = at.query
            readable = {w: Readable(self._rules(w, padding, documents), at) for w in windows}
        else:
            if not isinstance(state, KVCache):
                raise ValueError("a Transformer carries a KV cache; take one from its start()")
            append = state.begin(ids.shape[1], padding)
            positions = append.positions
            readable = {w: append.readable(w) for w in windows}
        rotation = None
        if self.config.positions == "rotary":
            dtype = self.tokens.weight.dtype
            rotation = Rotation.at(
                positions.clamp(min=0),
                self.config.head_width,
                self.config.rotary_base,
                dtype,
                self.config.rotary_scaling,
            )
        return Surroundings(positions, readable, rotation, real, append)

    def _rules(self, window: int | None, padding: Padding | None, documents: Tensor | None) -> tuple[Rule, ...]:
        rules: list[Rule] = [Causal()] if self.config.causal else []
        if window is not None:
            rules.append(SlidingWindow(window))
        if padding is not None:
            rules.append(Present())
        if documents is not None:
            rules.append(SameDocument())
        return tuple(rules)

    def _embed(
        self, ids: Int[Tensor, "B T"], positions: Int[Tensor, "#B T"], tap: Tap | None
    ) -> Float[Tensor, "B T D"]:
        x: Tensor = self.tokens(ids)
        if tap is not None:
            x = tap("embedding.tokens", x)
        at = positions.clamp(min=0)
        if self.positions is not None:
            place = self.positions(at)
            x = x + (place if tap is None else tap("embedding.positions", place.expand_as(x)))
        elif self.config.positions == "sinusoidal":
            place = sinusoidal(at, self.config.width).to(x.dtype)
            x = x + (place if tap is None else tap("embedding.positions", place.expand_as(x)))
        if self.token_types is not None:
            x = x + self.token_types.weight[0]
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        x = self.dropout(x)
        return x if tap is None else tap("embedding", x)
