"""From ids to text as it is written: whole characters only, and nothing of a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from lookback.errors import InputError
from lookback.tokenizers import Tokenizer


def checked_stops(stop: Sequence[str]) -> tuple[str, ...]:
    """The stop strings, none of them empty; a single string counts as one."""
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    if "" in stops:
        raise InputError("a stop string is empty; give at least one character, or no stop string")
    return stops


class TextStream:
    """The text of one sample, made of ids that come one at a time.

    It goes on from ``prompt``, of which it shows nothing: a word gets the space before it that it needs there, and a
    character begun there is finished. It holds back an unfinished character and whatever might yet become a stop
    string, nothing else. Where several stop strings occur, the one that is complete first counts, however the text is
    cut into tokens.
    """

    def __init__(self, tokenizer: Tokenizer, stops: tuple[str, ...], prompt: Sequence[int]) -> None:
        self._decoder = tokenizer.stream()
        for token in prompt:
            self._decoder.push(token)
        self._stops = stops
        self._held = ""
        self._written: list[str] = []
        self.stopped = False

    @property
    def text(self) -> str:
        """All that has been given out."""
        return "".join(self._written)

    def push(self, token: int) -> str:
        """The text that can be given out after ``token``; `stopped` then says whether a stop string was met."""
        self._held += self._decoder.push(token)
        found = [(at + len(stop), at) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.stopped = True
            return self._give(min(found)[1])
        return self._give(len(self._held) - self._possible())

    def finish(self) -> str:
        """What was held back, if no stop string was met; a character that was not finished is left out."""
        return "" if self.stopped else self._give(len(self._held))

    def _possible(self) -> int:
        """How many characters at the end may be the beginning of a stop string."""
        longest = max(map(len, self._stops), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stops):
                return length
        return 0

    def _give(self, length: int) -> str:
        given, self._held = self._held[:length], self._held[length:]
        if given:
            self._written.append(given)
        return given
