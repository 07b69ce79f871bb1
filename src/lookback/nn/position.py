"""Where a token stands: sinusoidal vectors and rotary turns. (Learned positions are a plain embedding.)

Both are functions of the positions given, so nothing is kept per length and a cached step gets the same numbers as a
whole pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


def sinusoidal(positions: Int[Tensor, "*B T"], width: int) -> Float[Tensor, "*B T D"]:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(the same) (Vaswani et al. 2017, section 3.5), in fp32."""
    even = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device)
    angle = positions[..., None].float() * 10_000.0 ** (-even / width)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., :width]


@dataclass(frozen=True)
class Rotation:
    """Rotary positions (Su et al. 2021): pairs of a head's entries turned by an angle that grows with the position.

    Entry i is paired with entry i + H/2, as Llama's weights expect. q·k after the turn depends on the distance of the
    two positions only. Angles are computed in fp32, like the reference implementations do.
    """

    cos: Float[Tensor, "#B 1 T H"]
    sin: Float[Tensor, "#B 1 T H"]

    @classmethod
    def at(cls, positions: Int[Tensor, "#B T"], head_width: int, base: float, dtype: torch.dtype) -> Rotation:
        """The turns for ``positions``; ``head_width`` must be even."""
        even = torch.arange(0, head_width, 2, dtype=torch.float32, device=positions.device)
        angle = positions[:, None, :, None].float() * (1.0 / base ** (even / head_width))
        angle = torch.cat((angle, angle), dim=-1)
        return cls(angle.cos().to(dtype), angle.sin().to(dtype))

    def __call__(self, x: Float[Tensor, "B N T H"]) -> Float[Tensor, "B N T H"]:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-second, first), dim=-1) * self.sin
