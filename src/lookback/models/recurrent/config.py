"""The shape of a recurrent language model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lookback.errors import InputError
from lookback.models.language_model import Family, check_size
from lookback.nn.recurrent import CellKind

_FAMILIES: dict[CellKind, Family] = {"rnn_tanh": "rnn", "rnn_relu": "rnn", "lstm": "lstm", "gru": "gru"}


@dataclass(frozen=True)
class RecurrentConfig:
    """``forget_bias`` is what an LSTM's forget gates start with (Jozefowicz et al. 2015 advise 1)."""

    vocabulary: int
    layers: int
    width: int
    cell: CellKind = "lstm"
    forget_bias: float = 1.0
    tied_embeddings: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.cell not in _FAMILIES:
            raise InputError("{got} is not a cell; allowed: {allowed}", got=self.cell, allowed=", ".join(_FAMILIES))
        for name in ("vocabulary", "layers", "width"):
            check_size(name, getattr(self, name))
        if not math.isfinite(self.forget_bias):
            raise InputError("forget_bias is {got}; it must be a finite number", got=self.forget_bias)
        if not 0 <= self.dropout < 1:
            raise InputError("dropout is {got}; it must be at least 0 and below 1", got=self.dropout)

    @property
    def family(self) -> Family:
        """rnn, lstm or gru."""
        return _FAMILIES[self.cell]

    @property
    def context(self) -> None:
        """No limit: the state has the same size however long the text."""
        return

    @property
    def causal(self) -> bool:
        """Always: a step knows only the steps before it."""
        return True
