"""Small taps for tests: one that records, one that wants nothing, one that changes a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Recorder:
    """Keeps every activation whose full name satisfies ``picks``, in the order of the calls, and changes nothing."""

    picks: Callable[[str], bool] = lambda name: True
    prefix: str = ""
    seen: list[tuple[str, int | None, Tensor]] = field(default_factory=list)

    def __call__(self, name: str, value: Tensor, step: int | None = None) -> Tensor:
        if self.wants(name):
            self.seen.append((self.prefix + name, step, value))
        return value

    def wants(self, name: str) -> bool:
        return self.picks(self.prefix + name)

    def inside(self, prefix: str) -> Recorder:
        return Recorder(self.picks, f"{self.prefix}{prefix}.", self.seen)

    @property
    def names(self) -> set[str]:
        return {name for name, _, _ in self.seen}

    def values(self, name: str) -> list[Tensor]:
        """All that was recorded under ``name``."""
        return [value for seen, _, value in self.seen if seen == name]


def idle() -> Recorder:
    """A tap that wants nothing."""
    return Recorder(lambda name: False)


@dataclass(frozen=True)
class Editor:
    """Replaces the activation called ``name`` by ``change`` of it."""

    name: str
    change: Callable[[Tensor], Tensor]
    prefix: str = ""

    def __call__(self, name: str, value: Tensor, step: int | None = None) -> Tensor:
        return self.change(value) if self.wants(name) else value

    def wants(self, name: str) -> bool:
        return self.prefix + name == self.name

    def inside(self, prefix: str) -> Editor:
        return Editor(self.name, self.change, f"{self.prefix}{prefix}.")
