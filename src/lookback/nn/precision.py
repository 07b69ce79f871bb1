"""Double precision, wherever the numbers are."""

from __future__ import annotations

from torch import Tensor


def double(x: Tensor) -> Tensor:
    """``x`` in fp64; on the CPU if its device has no such numbers (Apple's mps; not run there)."""
    return x.cpu().double() if x.device.type == "mps" else x.double()
