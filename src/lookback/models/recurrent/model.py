"""One recurrent language model for three cells: embedding, stacked layers, output."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lookback.models.language_model import LanguageModel
from lookback.models.recurrent.config import RecurrentConfig
from lookback.models.state import HiddenState, State
from lookback.nn.mask import Padding
from lookback.nn.recurrent import Carried, Recurrence, Segments
from lookback.nn.tap import Tap


class RecurrentLM(LanguageModel):
    """Each layer reads the one below and its own past, squeezed into one vector (Mikolov et al. 2010)."""

    kind: ClassVar[str] = "recurrent"

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config: RecurrentConfig = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(Recurrence(config.width, config.cell) for _ in range(config.layers))
        self.output = None if config.tied_embeddings else nn.Linear(config.width, config.vocabulary, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(config.vocabulary))

    def start(self, batch: int, *, capacity: int = 64) -> HiddenState:
        """Zero vectors; ``capacity`` changes nothing, as the state does not grow."""
        return HiddenState([self._zeros(batch) for _ in self.layers], (0,) * batch)

    def encode(
        self,
        ids: Int[Tensor, "B T"],
        *,
        state: State | None = None,
        padding: Padding | None = None,
        documents: Int[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """Hidden vectors of the last layer (0 at padding)."""
        self._check(ids, state, padding, documents)
        if state is not None and not isinstance(state, HiddenState):
            raise ValueError("a recurrent model carries a hidden state; take one from its start()")
        batch, length = ids.shape
        plain = padding is None and documents is None
        segments = None if plain else Segments.of(batch, length, padding, documents, ids.device)
        carried = [self._zeros(batch) for _ in self.layers] if state is None else state.layers
        x = self.tokens(ids)
        if tap is not None:
            x = tap("embedding", x)
        after = []
        for number, (layer, before) in enumerate(zip(self.layers, carried, strict=True)):
            inside = None if tap is None else tap.inside(f"layers.{number}")
            x, new = layer(self.dropout(x), before, segments, inside)
            after.append(new)
        if tap is not None:
            x = tap("hidden", x)
        if state is not None:
            counts = (length,) * batch if padding is None else padding.counts
            state.layers = after
            state.lengths = tuple(n + c for n, c in zip(state.lengths, counts, strict=True))
        return self.dropout(x), state

    def unembed(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits from the last layer's hidden vectors."""
        weight = self.tokens.weight if self.output is None else self.output.weight
        return F.linear(hidden, weight, self.output_bias)

    def initialise(self, generator: torch.Generator) -> None:
        """Uniform in ±1/√D in the layers (PyTorch's), normal of deviation 1/√D in the embedding; biases 0.

        An LSTM's forget gates get ``forget_bias`` (PyTorch adds two biases: the second stays 0).
        """
        width = self.config.width
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim == 1:
                    parameter.zero_()
                elif "layers" in name:
                    parameter.uniform_(-(width**-0.5), width**-0.5, generator=generator)
                else:
                    parameter.normal_(0.0, width**-0.5, generator=generator)
            if self.config.cell == "lstm":
                for layer in self.layers:
                    layer.get_parameter("cell.bias_ih_l0")[width : 2 * width] = self.config.forget_bias

    def _zeros(self, batch: int) -> Carried:
        zero = self.tokens.weight.new_zeros(batch, self.config.width)
        return Carried(zero, zero if self.config.cell == "lstm" else None)
