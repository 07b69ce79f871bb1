"""Where a token stands: sinusoidal vectors and rotary turns. (Learned positions are a plain embedding.)

Both are functions of the positions given, so nothing is kept per length and a cached step gets the same numbers as a
whole pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor


def sinusoidal(positions: Int[Tensor, "*B T"], width: int) -> Float[Tensor, "*B T D"]:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(the same) (Vaswani et al. 2017, section 3.5), in fp32."""
    even = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device)
    angle = positions[..., None].float() * 10_000.0 ** (-even / width)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., :width]


@dataclass(frozen=True)
class RotaryScaling:
    """How rotary angles are slowed down so that a model reads further than it was trained to.

    ``linear`` (Chen et al. 2023): every angle is divided by ``factor``. ``llama3``: only slow turns are, those that
    take more than ``original_context / low_frequency`` positions; fast ones, below ``original_context /
    high_frequency``, stay, with a ramp between. ``yarn`` (Peng et al. 2023): a ramp between ``beta_fast`` and
    ``beta_slow`` turns within the original context, and queries and keys multiplied by an attention factor.
    """

    kind: Literal["linear", "llama3", "yarn"]
    factor: float
    original_context: int
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    mscale: tuple[float, float] | None = None

    def frequencies(self, plain: Float[Tensor, "half"], base: float) -> Float[Tensor, "half"]:
        """The angle a position, for each pair, from the ``plain`` one."""
        slowed = plain / self.factor
        if self.kind == "linear":
            return slowed
        if self.kind == "llama3":
            turns = self.original_context * plain / (2 * math.pi)
            kept = ((turns - self.low_frequency) / (self.high_frequency - self.low_frequency)).clamp(0, 1)
        else:
            low, high = (self._pair(beta, len(plain), base) for beta in (self.beta_fast, self.beta_slow))
            if self.truncate:
                low, high = math.floor(low), math.ceil(high)
            low, high = max(low, 0), min(high, 2 * len(plain) - 1)
            pair = torch.arange(len(plain), dtype=torch.float32, device=plain.device)
            kept = 1 - ((pair - low) / max(high - low, 0.001)).clamp(0, 1)
        return slowed * (1 - kept) + plain * kept

    @property
    def attention(self) -> float:
        """What the rotated queries and keys are multiplied by."""
        if self.kind != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale is None:
            return self._temperature(1.0)
        return self._temperature(self.mscale[0]) / self._temperature(self.mscale[1])

    def _temperature(self, mscale: float) -> float:
        return 1.0 if self.factor <= 1 else 0.1 * mscale * math.log(self.factor) + 1.0

    def _pair(self, turns: float, pairs: int, base: float) -> float:
        """The pair that makes so many turns within the original context."""
        return pairs * math.log(self.original_context / (turns * 2 * math.pi)) / math.log(base)


@dataclass(frozen=True)
class Rotation:
    """Rotary positions (Su et al. 2021): pairs of a head's entries turned by an angle that grows with the position.

    Entry i is paired with entry i + H/2, as Llama's weights expect. q·k after the turn depends on the distance of the
    two positions only. Angles are computed in fp32, like the reference implementations do.
    """

    cos: Float[Tensor, "#B 1 T H"]
    sin: Float[Tensor, "#B 1 T H"]

    @classmethod
    def at(
        cls,
        positions: Int[Tensor, "#B T"],
        head_width: int,
        base: float,
        dtype: torch.dtype,
        scaling: RotaryScaling | None = None,
    ) -> Rotation:
        """The turns for ``positions``; ``head_width`` must be even."""
        even = torch.arange(0, head_width, 2, dtype=torch.float32, device=positions.device)
        frequencies = 1.0 / base ** (even / head_width)
        if scaling is not None:
            frequencies = scaling.frequencies(frequencies, base)
        angle = positions[:, None, :, None].float() * frequencies
        angle = torch.cat((angle, angle), dim=-1)
        factor = 1.0 if scaling is None else scaling.attention
        return cls((angle.cos() * factor).to(dtype), (angle.sin() * factor).to(dtype))

    def __call__(self, x: Float[Tensor, "B N T H"]) -> Float[Tensor, "B N T H"]:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-second, first), dim=-1) * self.sin
