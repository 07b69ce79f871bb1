"""The position-wise feed-forward layer: a GELU MLP or SwiGLU."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lookback.nn.tap import Tap

MLPKind = Literal["gelu", "gelu_tanh", "swiglu"]


class MLP(nn.Module):
    """``gelu``: W₂ gelu(W₁x) (BERT; ``gelu_tanh`` is GPT-2's approximation); ``swiglu``: W₂(silu(W_g x) · W₁x)
    (Shazeer 2020, Llama)."""

    def __init__(self, width: int, mlp_width: int, kind: MLPKind, *, bias: bool = True) -> None:
        super().__init__()
        self.kind = kind
        self.input = nn.Linear(width, mlp_width, bias=bias)
        self.gate = nn.Linear(width, mlp_width, bias=bias) if kind == "swiglu" else None
        self.output = nn.Linear(mlp_width, width, bias=bias)

    def forward(self, x: Float[Tensor, "B T D"], *, tap: Tap | None = None) -> Float[Tensor, "B T D"]:
        """Each position on its own."""
        if self.gate is not None:
            hidden = F.silu(self.gate(x)) * self.input(x)
        else:
            hidden = F.gelu(self.input(x), approximate="tanh" if self.kind == "gelu_tanh" else "none")
        if tap is not None:
            hidden = tap("hidden", hidden)
        out: Tensor = self.output(hidden)
        return out if tap is None else tap("output", out)
