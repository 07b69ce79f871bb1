"""Weight maps: tables of names and named transforms that run both ways.

A `Row` says that some of our parameters are one tensor of theirs, seen through a `Transform`. A family is a list of
rows, a function from their configuration to ours, and one back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import torch
from torch import Tensor

from lookback.errors import InputError
from lookback.models import TransformerConfig

Record = Mapping[str, Any]


class Transform(Protocol):
    """How one of their tensors relates to some of ours."""

    def ours(self, theirs: Tensor) -> list[Tensor]:
        """Our tensors out of theirs."""
        ...

    def theirs(self, ours: Sequence[Tensor]) -> Tensor:
        """Their tensor out of ours."""
        ...


@dataclass(frozen=True)
class Same:
    """The very tensor."""

    def ours(self, theirs: Tensor) -> list[Tensor]:
        return [theirs]

    def theirs(self, ours: Sequence[Tensor]) -> Tensor:
        return ours[0]


@dataclass(frozen=True)
class Stacked:
    """Several of ours above each other, of equal height; ``transposed`` where theirs is stored as [in, out]."""

    parts: int = 1
    transposed: bool = False

    def ours(self, theirs: Tensor) -> list[Tensor]:
        return list((theirs.T if self.transposed else theirs).chunk(self.parts))

    def theirs(self, ours: Sequence[Tensor]) -> Tensor:
        stacked = torch.cat(list(ours))
        return stacked.T if self.transposed else stacked


@dataclass(frozen=True)
class Interleaved:
    """The rows of a rotary projection: ours pair entry i of a head with i + H/2, theirs with its neighbour.

    GGUF stores Llama's queries and keys so.
    """

    heads: int

    def ours(self, theirs: Tensor) -> list[Tensor]:
        pairs = theirs.view(self.heads, -1, 2, *theirs.shape[1:])
        return [pairs.transpose(1, 2).reshape(theirs.shape)]

    def theirs(self, ours: Sequence[Tensor]) -> Tensor:
        halves = ours[0].view(self.heads, 2, -1, *ours[0].shape[1:])
        return halves.transpose(1, 2).reshape(ours[0].shape)


@dataclass(frozen=True)
class Row:
    """``ours`` are one or several parameter names; ``theirs`` is one tensor name."""

    ours: tuple[str, ...]
    theirs: str
    transform: Transform = Same()


def per_layer(config: TransformerConfig, rows: Sequence[Row]) -> Iterator[Row]:
    """Rows with ``{i}`` for the layer's number, written out for every layer."""
    for i in range(config.layers):
        for row in rows:
            yield Row(tuple(name.format(i=i) for name in row.ours), row.theirs.format(i=i), row.transform)


@dataclass(frozen=True)
class Names:
    """One family of names.

    ``read`` makes our configuration of theirs, ``write`` theirs of ours as far as it can; the family has exactly our
    architecture if reading what was written gives it back. ``prefix`` is what files of the bare model leave out.
    ``twins`` are tensors that repeat another one where a model ties the two. ``ignored`` are endings of tensors that
    hold no parameter of ours. ``older`` are endings that an old version of the library wrote, with today's.
    """

    model_type: str
    architecture: str
    prefix: str
    read: Callable[[Record], TransformerConfig]
    write: Callable[[TransformerConfig], dict[str, Any]]
    rows: Callable[[TransformerConfig], Iterator[Row]]
    twins: Mapping[str, str]
    ignored: tuple[str, ...] = ()
    older: Mapping[str, str] = field(default_factory=dict)

    def today(self, name: str) -> str:
        """A tensor's name as the library writes it today."""
        old = next((ending for ending in self.older if name.endswith(ending)), None)
        return name if old is None else name.removesuffix(old) + self.older[old]

    def obstacles(self, config: TransformerConfig) -> list[str]:
        """The options of ``config`` that this architecture does not have; none means that it is exactly this one."""
        try:
            back = self.read({"model_type": self.model_type, **self.write(config)})
        except InputError as error:
            return [str(error)]
        return [f.name for f in fields(config) if getattr(back, f.name) != getattr(config, f.name)]
