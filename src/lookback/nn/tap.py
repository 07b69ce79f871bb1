"""The one way to look at, or change, a named activation during a forward pass.

Every forward takes ``tap=None``. Where an activation is worth a name the code says::

    if tap is not None:
        x = tap("mlp.hidden", x)

so an untapped forward pays one ``is not None`` and nothing else.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Tap(Protocol):
    """What a forward pass calls at each named activation."""

    def __call__(self, name: str, value: Tensor, step: int | None = None) -> Tensor:
        """Take ``value`` and give back what the forward goes on with (the same tensor, if it is only recorded).

        ``step`` is the time step for activations that a recurrent layer makes one at a time, shape [B, D].
        """
        ...

    def wants(self, name: str) -> bool:
        """Whether ``name`` is recorded or changed: attention weights are only written out when somebody wants them."""
        ...

    def inside(self, prefix: str) -> Tap:
        """The same tap for a part of the model, whose names then begin with ``prefix.``."""
        ...
