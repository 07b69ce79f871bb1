"""Attention, written twice: once for its output, once for its weights.

Scaled dot-product attention (Vaswani et al. 2017, equation 1)::

    scores  = Q Kᵀ · scale                     how well each query matches each key
    weights = softmax(scores where readable)   forbidden keys get exactly 0; a row that may read nothing is all 0
    output  = weights V                        what is read

`attention` is the fast form, over PyTorch's fused kernel; `attention_scores`, `attention_weights` and `mix` are the
open form, for reading and recording. Tests hold the two together. Nothing else in the package computes attention.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lookback.nn.mask import Readable
from lookback.nn.position import Rotation
from lookback.nn.tap import Tap

Keep = Callable[
    [Float[Tensor, "B K T H"], Float[Tensor, "B K T H"]], tuple[Float[Tensor, "B K S H"], Float[Tensor, "B K S H"]]
]
"""A layer's slot in a KV cache: takes the new keys and values, gives back all that can be read."""


def attention(
    q: Float[Tensor, "B N T H"],
    k: Float[Tensor, "B K S H"],
    v: Float[Tensor, "B K S H"],
    readable: Readable,
    *,
    scale: float,
    dropout: float = 0.0,
) -> Float[Tensor, "B N T H"]:
    """The output of attention, by the fused kernel. K divides N: query heads share key/value heads in groups."""
    grouped = q.shape[1] != k.shape[1]
    if readable.shape != "tensor":
        triangle = readable.shape == "triangle"
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=triangle, scale=scale, dropout_p=dropout, enable_gqa=grouped
        )
    allowed, empty = readable.tensor, readable.empty
    if empty is not None:  # The kernel must never see an empty row: its softmax, or its gradient, would be NaN.
        allowed = allowed | empty
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=scale, dropout_p=dropout, enable_gqa=grouped)
    return out if empty is None else out.masked_fill(empty, 0.0)


def attention_scores(
    q: Float[Tensor, "B N T H"], k: Float[Tensor, "B K S H"], *, scale: float
) -> Float[Tensor, "B N T S"]:
    """Q Kᵀ · scale, before the mask and the softmax."""
    return q @ _per_query_head(k, q.shape[1]).transpose(-1, -2) * scale


def attention_weights(scores: Float[Tensor, "B N T S"], readable: Readable) -> Float[Tensor, "B N T S"]:
    """Softmax of the scores over the keys that may be read; exactly 0 everywhere else, whatever the scores."""
    weights = mask_scores(scores, readable).softmax(-1)
    return weights if readable.empty is None else weights.masked_fill(readable.empty, 0.0)


def mask_scores(scores: Float[Tensor, "B N T S"], readable: Readable) -> Float[Tensor, "B N T S"]:
    """The scores with −∞ where the mask forbids reading."""
    return scores.masked_fill(~readable.tensor, -torch.inf)


def mix(weights: Float[Tensor, "B N T S"], v: Float[Tensor, "B K S H"]) -> Float[Tensor, "B N T H"]:
    """weights · V: each query's weighted mean of the values."""
    return weights @ _per_query_head(v, weights.shape[1])


def _per_query_head(x: Float[Tensor, "B K S H"], heads: int) -> Float[Tensor, "B N S H"]:
    """Each key/value head repeated for the group of query heads that share it (Ainslie et al. 2023)."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)


class Attention(nn.Module):
    """Multi-head attention with its projections.

    ``kv_heads`` = heads is multi-head, 1 is multi-query, anything between is grouped-query attention. ``tied_qk`` makes
    the key projection the query projection, so that scores are symmetric; ``scaled=False`` drops the 1/√H.
    ``normed_qk`` puts an RMSNorm over each head's query and key before the rotation (Qwen3).
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int,
        head_width: int,
        *,
        input_bias: bool = True,
        output_bias: bool = True,
        tied_qk: bool = False,
        scaled: bool = True,
        normed_qk: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = heads, kv_heads, head_width
        self.scale = head_width**-0.5 if scaled else 1.0
        self.dropout = dropout
        self.query = nn.Linear(width, heads * head_width, bias=input_bias)
        self.key = None if tied_qk else nn.Linear(width, kv_heads * head_width, bias=input_bias)
        self.value = nn.Linear(width, kv_heads * head_width, bias=input_bias)
        self.output = nn.Linear(heads * head_width, width, bias=output_bias)
        self.query_norm = None if normed_qk is None else nn.RMSNorm(head_width, eps=normed_qk)
        self.key_norm = None if normed_qk is None else nn.RMSNorm(head_width, eps=normed_qk)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        readable: Readable,
        *,
        rotation: Rotation | None = None,
        real: Bool[Tensor, "B T"] | None = None,
        keep: Keep | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read from the keys at hand, or from a cache's through ``keep``. ``real`` is False at padding."""
        q, k, v = self.project(x, rotation, tap)
        if real is not None:  # What no query may read must be 0, or a NaN there would leak through 0 × NaN.
            k, v = (t.masked_fill(~real[:, None, :, None], 0.0) for t in (k, v))
        if keep is not None:
            k, v = keep(k, v)
        dropout = self.dropout if self.training else 0.0
        if tap is None or not any(map(tap.wants, ("scores", "masked_scores", "weights"))):
            heads = attention(q, k, v, readable, scale=self.scale, dropout=dropout)
        else:
            heads = self._open(q, k, v, readable, dropout, tap)
        if tap is not None:
            heads = tap("heads", heads)
        out: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return out if tap is None else tap("output", out)

    def project(
        self, x: Float[Tensor, "B T D"], rotation: Rotation | None = None, tap: Tap | None = None
    ) -> tuple[Float[Tensor, "B N T H"], Float[Tensor, "B K T H"], Float[Tensor, "B K T H"]]:
        """Queries, keys and values, one row of heads each; queries and keys rotated if positions are rotary."""
        q = self._split(self.query(x), self.heads)
        k = self._split(self.query(x) if self.key is None else self.key(x), self.kv_heads)
        v = self._split(self.value(x), self.kv_heads)
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        if tap is not None:
            q, k, v = tap("q", q), tap("k", k), tap("v", v)
        if rotation is not None:
            q, k = rotation(q), rotation(k)
            if tap is not None:
                q, k = tap("q_rotated", q), tap("k_rotated", k)
        return q, k, v

    def _open(self, q: Tensor, k: Tensor, v: Tensor, readable: Readable, dropout: float, tap: Tap) -> Tensor:
        scores = tap("scores", attention_scores(q, k, scale=self.scale))
        if tap.wants("masked_scores"):
            tap("masked_scores", mask_scores(scores, readable))
        weights = tap("weights", attention_weights(scores, readable))
        return mix(F.dropout(weights, dropout, self.training), v)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:-1], heads, self.head_width).transpose(1, 2)
