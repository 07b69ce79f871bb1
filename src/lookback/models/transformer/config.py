"""The shape of a Transformer: one frozen record that covers GPT-2, BERT, Llama and Qwen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from lookback.errors import InputError
from lookback.models.language_model import Family, check_size
from lookback.nn.mlp import MLPKind
from lookback.nn.norm import NormKind
from lookback.nn.position import RotaryScaling

PositionKind = Literal["learned", "sinusoidal", "rotary", "none"]
HeadKind = Literal["linear", "masked", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """All that tells one Transformer from another.

    ``causal`` alone is the mask: it divides GPT from BERT. ``head`` is the output: ``linear`` is one linear map,
    ``masked`` is BERT's (dense, GELU, LayerNorm, then the tied embedding with a bias), ``none`` an encoder without one.
    ``sliding_window`` limits how far a position reads in the layers named by ``windowed_layers`` (None: in all).
    ``qkv_bias``, ``output_bias`` and ``mlp_bias`` are the biases of the attention's input and output and of the MLP.
    """

    vocabulary: int
    context: int
    layers: int
    heads: int
    width: int
    mlp_width: int
    kv_heads: int = 0
    head_width: int = 0
    causal: bool = True
    sliding_window: int | None = None
    windowed_layers: tuple[int, ...] | None = None
    positions: PositionKind = "learned"
    rotary_base: float = 10_000.0
    rotary_scaling: RotaryScaling | None = None
    norm: NormKind = "layer"
    norm_epsilon: float = 1e-5
    pre_norm: bool = True
    mlp: MLPKind = "gelu_tanh"
    qkv_bias: bool = True
    output_bias: bool = True
    mlp_bias: bool = True
    tied_qk: bool = False
    scaled: bool = True
    normed_qk: bool = False
    tied_embeddings: bool = True
    token_types: int = 0
    embedding_norm: bool = False
    head: HeadKind = "linear"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name, default in (("kv_heads", self.heads), ("head_width", self.width // max(self.heads, 1))):
            if not getattr(self, name):
                object.__setattr__(self, name, default)
        if self.windowed_layers is not None:
            object.__setattr__(self, "windowed_layers", tuple(self.windowed_layers))
        self._check_names()
        self._check_sizes()

    @property
    def family(self) -> Family:
        """GPT reads backwards only and writes; BERT reads both sides and fills in."""
        return "gpt" if self.causal else "bert"

    def window(self, layer: int) -> int | None:
        """How many positions a query of this layer may read at most, itself included; None: no limit."""
        return self.sliding_window if self.windowed_layers is None or layer in self.windowed_layers else None

    def _check_names(self) -> None:
        for name, kinds in (("positions", PositionKind), ("norm", NormKind), ("mlp", MLPKind), ("head", HeadKind)):
            if getattr(self, name) not in get_args(kinds):
                raise InputError(
                    "{got} is not a kind of {name}; allowed: {allowed}",
                    got=getattr(self, name),
                    name=name,
                    allowed=", ".join(get_args(kinds)),
                )

    def _check_sizes(self) -> None:
        for name in ("vocabulary", "context", "layers", "heads", "width", "mlp_width", "kv_heads", "head_width"):
            check_size(name, getattr(self, name))
        if self.sliding_window is not None:
            check_size("sliding_window", self.sliding_window)
        for name in ("rotary_base", "norm_epsilon"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError("{name} is {got}; it must be more than 0", name=name, got=getattr(self, name))
        if self.heads % self.kv_heads:
            raise InputError(
                "{heads} heads cannot share {kv_heads} key/value heads evenly; choose a divisor of the heads",
                heads=self.heads,
                kv_heads=self.kv_heads,
            )
        if self.positions == "rotary" and self.head_width % 2:
            raise InputError(
                "rotary positions turn pairs, so the head width must be even, not {got}; change width or heads",
                got=self.head_width,
            )
        if self.tied_qk and self.kv_heads != self.heads:
            raise InputError("tied queries and keys need as many key/value heads as heads; drop one of the two options")
        if self.sliding_window is not None and not self.causal:
            raise InputError("a sliding window goes with the causal mask only; drop one of the two options")
        if self.windowed_layers is not None and (
            self.sliding_window is None or not all(0 <= layer < self.layers for layer in self.windowed_layers)
        ):
            raise InputError(
                "windowed_layers {got} need a sliding window and layers from 0 to {last}; change one of the three",
                got=self.windowed_layers,
                last=self.layers - 1,
            )
        if not 0 <= self.dropout < 1:
            raise InputError("dropout is {got}; it must be at least 0 and below 1", got=self.dropout)
