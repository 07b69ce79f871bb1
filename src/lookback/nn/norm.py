"""The two normalisations Transformers use."""

from __future__ import annotations

from typing import Literal

from torch import nn

NormKind = Literal["layer", "rms"]


def norm(kind: NormKind, width: int, epsilon: float) -> nn.Module:
    """LayerNorm (Ba et al. 2016): (x − mean)/√(var + ε) · γ + β.

    RMSNorm (Zhang & Sennrich 2019): x/√(mean x² + ε) · γ.
    """
    return nn.LayerNorm(width, eps=epsilon) if kind == "layer" else nn.RMSNorm(width, eps=epsilon)
