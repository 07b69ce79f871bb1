"""The one protocol every family answers to."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lookback.errors import InputError
from lookback.models.state import State
from lookback.nn.mask import Padding
from lookback.nn.tap import Tap

Family = Literal["rnn", "lstm", "gru", "gpt", "bert"]
FAMILIES: tuple[Family, ...] = ("rnn", "lstm", "gru", "gpt", "bert")


_MOST_LAYERS = 1_000
_MOST = 2**31 - 1


def check_size(name: str, got: int) -> None:
    """Refuse a size below 1, and one so large that building the model would never end."""
    if got < 1:
        raise InputError("{name} is {got}; it must be at least 1", name=name, got=got)
    if got > (most := _MOST_LAYERS if name == "layers" else _MOST):
        raise InputError("{name} is {got}; it must be at most {most}", name=name, got=got, most=most)


class Config(Protocol):
    """What is common to the configurations of all families."""

    @property
    def family(self) -> Family: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def context(self) -> int | None:
        """The most positions a text may have; None for recurrent models, which have no such limit."""
        ...

    @property
    def causal(self) -> bool:
        """Whether a position reads only itself and what stands before it, so that the model can write."""
        ...


class LanguageModel(nn.Module):
    """ids → `encode` → hidden vectors → `unembed` → logits; `forward` is both.

    ``state`` is what earlier calls carried (None: nothing is carried), ``padding`` says which columns hold no token,
    ``documents`` are host numbers [B, T] that change where a document begins: nothing is read or carried across.
    """

    config: Config
    kind: ClassVar[str]

    def start(self, batch: int, *, capacity: int = 64) -> State:
        """A fresh state for ``batch`` rows with room for ``capacity`` tokens (it grows by itself)."""
        raise NotImplementedError  # abstract

    def encode(
        self,
        ids: Int[Tensor, "B T"],
        *,
        state: State | None = None,
        padding: Padding | None = None,
        documents: Int[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        """Hidden vectors at every position, and ``state`` with these tokens appended."""
        raise NotImplementedError  # abstract

    def unembed(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits over the vocabulary from hidden vectors."""
        raise NotImplementedError  # abstract

    def initialise(self, generator: torch.Generator) -> None:
        """Draw all parameters anew."""
        raise NotImplementedError  # abstract

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        *,
        state: State | None = None,
        padding: Padding | None = None,
        documents: Int[Tensor, "B T"] | None = None,
        tap: Tap | None = None,
    ) -> tuple[Float[Tensor, "B T V"], State | None]:
        """Logits at every position, and the state."""
        hidden, state = self.encode(ids, state=state, padding=padding, documents=documents, tap=tap)
        logits = self.unembed(hidden)
        return (logits if tap is None else tap("logits", logits)), state

    @property
    def parameters_count(self) -> int:
        """Number of trained numbers; tied ones count once."""
        return sum(p.numel() for p in self.parameters())

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    def _check(
        self,
        ids: Int[Tensor, "B T"],
        state: State | None,
        padding: Padding | None,
        documents: Int[Tensor, "B T"] | None,
    ) -> None:
        """Refuse what would otherwise be read wrongly: a size mismatch, or more tokens than the context holds."""
        batch, length = ids.shape
        if documents is not None and (state is not None or padding is not None):
            raise ValueError("documents go with neither a state nor padding: give each document a row of its own")
        if state is not None and len(state.lengths) != batch:
            raise ValueError(f"{batch} rows of ids, but a state for {len(state.lengths)}")
        if padding is not None and (padding.length, len(padding.left)) != (length, batch):
            raise ValueError(
                f"padding for {len(padding.left)} rows of {padding.length}, but ids of shape {batch}, {length}"
            )
        counts = (length,) * batch if padding is None else padding.counts
        before = (0,) * batch if state is None else state.lengths
        longest = max((n + c for n, c in zip(before, counts, strict=True)), default=0)
        if self.config.context is not None and longest > self.config.context:
            raise InputError(
                "{got} tokens are more than this model's context of {context}; shorten the text",
                got=longest,
                context=self.config.context,
            )
