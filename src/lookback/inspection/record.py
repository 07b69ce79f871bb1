"""Recording: a forward pass that keeps named activations, at a cost that is stated before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from lookback.errors import InputError
from lookback.inspection.names import Activation, select, sizes
from lookback.models import LanguageModel, State
from lookback.nn.mask import Padding
from lookback.nn.tap import Tap

BUDGET = 2 * 1024**3


@dataclass
class Recorder:
    """A tap that keeps what is asked for and changes nothing; `values` puts the steps of a recurrent layer together."""

    wanted: frozenset[str]
    prefix: str = ""
    kept: dict[str, list[Tensor]] = field(default_factory=dict)

    def __call__(self, name: str, value: Tensor, step: int | None = None) -> Tensor:
        if self.wants(name):
            self.kept.setdefault(self.prefix + name, []).append(value)
        return value

    def wants(self, name: str) -> bool:
        return self.prefix + name in self.wanted

    def inside(self, prefix: str) -> Tap:
        return Recorder(self.wanted, f"{self.prefix}{prefix}.", self.kept)

    def values(self, steps: int) -> dict[str, Tensor]:
        """What was kept, by name; one value a time step becomes [B, T, D]."""
        return {
            name: torch.stack(parts, dim=1) if parts[0].ndim == 2 and len(parts) == steps else parts[0]
            for name, parts in self.kept.items()
        }


@dataclass(frozen=True)
class Trace(Mapping[str, Tensor]):
    """Recorded activations by name, with the ``ids`` [B, T] that went in. Gradients flow through them."""

    ids: Int[Tensor, "B T"]
    values_by_name: Mapping[str, Tensor]

    def __getitem__(self, name: str) -> Tensor:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def cost(model: LanguageModel, wanted: Sequence[Activation], batch: int, queries: int, keys: int | None = None) -> int:
    """Bytes that recording takes."""
    letters = sizes(model, batch, queries, keys)
    size = next(model.parameters()).element_size()
    return size * sum(one.numbers(letters) for one in wanted)


def record(
    model: LanguageModel,
    ids: Int[Tensor, "B T"],
    patterns: Sequence[str],
    *,
    state: State | None = None,
    padding: Padding | None = None,
    documents: Int[Tensor, "B T"] | None = None,
    budget: int = BUDGET,
) -> Trace:
    """One forward pass that keeps the activations that ``patterns`` name; with a state, of the new tokens.

    What is recorded is what the pass computed with. Raises InputError for a name that there is not, and before anything
    runs where the activations would take more than ``budget`` bytes.
    """
    wanted = select(model, patterns)
    keys = ids.shape[1] + (max(state.lengths, default=0) if state is not None else 0)
    needed = cost(model, wanted, ids.shape[0], ids.shape[1], keys)
    if needed > budget:
        raise InputError(
            "recording {names} activations would take {needed} MB, more than the budget of {budget} MB; name fewer, "
            "shorten the text, or raise the budget",
            names=len(wanted),
            needed=f"{needed / 1e6:,.0f}",
            budget=f"{budget / 1e6:,.0f}",
        )
    recorder = Recorder(frozenset(one.name for one in wanted))
    model(ids, state=state, padding=padding, documents=documents, tap=recorder)
    return Trace(ids, recorder.values(ids.shape[1]))
