"""Reading a configuration that somebody else wrote: each value checked, each refusal one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lookback.errors import InputError

_V = TypeVar("_V")
_MOST = 2**31


@dataclass(frozen=True)
class Options:
    """A JSON record with typed look-ups; ``family`` names it in messages."""

    record: Mapping[str, Any]
    family: str

    def count(self, name: str, default: int | None) -> int:
        """A whole number of at least 0 (a missing or null one is ``default``)."""
        value = self._value(name, default)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
            raise self._refusal(name, value, "a whole number")
        return value

    def number(self, name: str, default: float) -> float:
        """A number of at least 0."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
            raise self._refusal(name, value, "a number")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self._refusal(name, value, "true or false")
        return value

    def names(self, name: str) -> list[str]:
        """A list of words; a missing or null one is empty."""
        value = self._value(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._refusal(name, value, "a list of names")
        return value

    def one_of(self, name: str, default: str, allowed: Mapping[str, _V]) -> _V:
        """What ``allowed`` makes of the value."""
        value = self._value(name, default)
        if not isinstance(value, str) or value not in allowed:
            raise self._refusal(name, value, ", ".join(allowed))
        return allowed[value]

    def must(self, name: str, value: object) -> None:
        """Refuse any other value: the option changes the arithmetic in a way that is not built here."""
        if self._value(name, value) != value:
            raise self._refusal(name, self.record[name], str(value))

    def _value(self, name: str, default: Any) -> Any:
        value = self.record.get(name)
        return default if value is None else value

    def _refusal(self, name: str, got: object, allowed: str) -> InputError:
        return InputError(
            "this {family} model has {name} = {got}; supported: {allowed}",
            family=self.family,
            name=name,
            got=got,
            allowed=allowed,
        )
