"""What a position may look back at: masks as rules over absolute positions.

A `Rule` answers, for any query position and any key position, whether the one may read the other. Rules are combined by
AND and become tensors only for the queries and keys at hand (`At`), so a cached step with fewer queries than keys is
aligned by the positions themselves and cannot be off by one. A position of -1 holds nothing: padding or an unused slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True)
class At:
    """Where the queries and keys at hand stand, as absolute positions (-1: nothing there).

    ``dense`` is known on the host: no row has padding or documents, all rows are equally long, and the keys are the S
    positions up to and including the last query.
    """

    query: Int[Tensor, "#B T"]
    key: Int[Tensor, "#B S"]
    query_document: Int[Tensor, "B T"] | None = None
    key_document: Int[Tensor, "B S"] | None = None
    dense: bool = False


class Rule(Protocol):
    """One condition on who may read whom."""

    def allowed(self, at: At) -> Bool[Tensor, "#B T S"]:
        """True where the query may read the key."""
        ...

    def idle(self, queries: int, keys: int) -> bool:
        """Whether the rule allows everything in a dense layout of this size, so that no tensor is needed."""
        ...


@dataclass(frozen=True)
class Causal:
    """A query reads itself and what stands before it (Vaswani et al. 2017, section 3.2.3)."""

    def allowed(self, at: At) -> Bool[Tensor, "#B T S"]:
        return at.key[:, None, :] <= at.query[:, :, None]

    def idle(self, queries: int, keys: int) -> bool:
        return queries == 1


@dataclass(frozen=True)
class SlidingWindow:
    """A query reads at most the ``width`` positions that end with itself (Beltagy et al. 2020; Jiang et al. 2023)."""

    width: int

    def allowed(self, at: At) -> Bool[Tensor, "#B T S"]:
        return at.key[:, None, :] > at.query[:, :, None] - self.width

    def idle(self, queries: int, keys: int) -> bool:
        return keys <= self.width


@dataclass(frozen=True)
class Present:
    """Padding and unused slots are never read and read nothing."""

    def allowed(self, at: At) -> Bool[Tensor, "#B T S"]:
        return (at.key[:, None, :] >= 0) & (at.query[:, :, None] >= 0)

    def idle(self, queries: int, keys: int) -> bool:
        return True


@dataclass(frozen=True)
class SameDocument:
    """A query reads within its own document only."""

    def allowed(self, at: At) -> Bool[Tensor, "#B T S"]:
        if at.query_document is None or at.key_document is None:
            return torch.ones(1, at.query.shape[1], at.key.shape[1], dtype=torch.bool, device=at.key.device)
        return at.query_document[:, :, None] == at.key_document[:, None, :]

    def idle(self, queries: int, keys: int) -> bool:
        return True


@dataclass(frozen=True)
class Readable:
    """Which keys each query at hand may read: the AND of ``rules`` (none: everything, the bidirectional mask)."""

    rules: tuple[Rule, ...]
    at: At

    @cached_property
    def tensor(self) -> Bool[Tensor, "#B 1 T S"]:
        """The mask itself; the axis of size 1 stands for the heads."""
        allowed = torch.ones(
            1, self.at.query.shape[1], self.at.key.shape[1], dtype=torch.bool, device=self.at.key.device
        )
        for rule in self.rules:
            allowed = allowed & rule.allowed(self.at)
        return allowed[:, None]

    @cached_property
    def empty(self) -> Bool[Tensor, "#B 1 T 1"] | None:
        """Query rows that may read nothing; None where the layout rules them out."""
        return None if self.at.dense else ~self.tensor.any(-1, keepdim=True)

    @cached_property
    def shape(self) -> Literal["everything", "triangle", "tensor"]:
        """The mask's shape as far as the host knows it, so that the common cases need no tensor at all."""
        if not self.at.dense:
            return "tensor"
        queries, keys = self.at.query.shape[1], self.at.key.shape[1]
        busy = [rule for rule in self.rules if not rule.idle(queries, keys)]
        if not busy:
            return "everything"
        return "triangle" if busy == [Causal()] and queries == keys else "tensor"


@dataclass(frozen=True)
class Padding:
    """How many columns of each row hold no token, on its left and on its right.

    ``length`` is T, the number of columns. What is padding is said by the caller, never guessed from ids.

    >>> Padding(4, left=(0, 2), right=(1, 0)).counts
    (3, 2)
    """

    length: int
    left: tuple[int, ...]
    right: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.left) != len(self.right) or min((*self.left, *self.right, *self.counts), default=0) < 0:
            raise ValueError(f"padding of {self.left} and {self.right} columns does not fit rows of {self.length}")

    @classmethod
    def after(cls, counts: Sequence[int], length: int) -> Padding:
        """Padding on the right of rows that hold ``counts`` tokens."""
        return cls(length, left=(0,) * len(counts), right=tuple(length - n for n in counts))

    @property
    def counts(self) -> tuple[int, ...]:
        """Real tokens in each row."""
        return tuple(self.length - a - b for a, b in zip(self.left, self.right, strict=True))

    def real(self, device: torch.device | None = None) -> Bool[Tensor, "B T"]:
        """True where a token stands."""
        column = torch.arange(self.length, device=device)
        left = torch.tensor(self.left, device=device)[:, None]
        right = self.length - torch.tensor(self.right, device=device)[:, None]
        return (column >= left) & (column < right)
