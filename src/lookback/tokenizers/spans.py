"""Where tokens lie in the original text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

Offsets: TypeAlias = list[tuple[int, int]]


class Span(NamedTuple):
    """Where a token lies in the original text, in UTF-8 bytes and in characters (code points)."""

    byte_start: int
    byte_stop: int
    start: int
    stop: int


@dataclass(frozen=True)
class Encoding:
    """The ids of a text and, one for each, their spans in it.

    Pieces of one character all have that character's span; a piece with bytes of two characters has the span of both;
    what a normalizer changed has the span of what stood there; a space put before the text has an empty one.
    """

    ids: list[int]
    spans: list[Span]


def widen(text: str, offsets: Offsets, *, everything: bool) -> Offsets:
    """Offsets that take in what a normalizer composed with a token's last character: marks, or ``everything``."""
    starts = [*(start for start, _ in offsets[1:]), len(text)][: len(offsets)]
    widened: Offsets = []
    limit = len(text)
    for (start, stop), following in zip(reversed(offsets), reversed(starts), strict=True):
        if following > start:
            limit = following
        while start < stop < limit and (everything or unicodedata.category(text[stop]).startswith("M")):
            stop += 1
        widened.append((start, stop))
    return widened[::-1]


def spans(text: str, offsets: Iterable[tuple[int, int]]) -> list[Span]:
    """Spans from character offsets into ``text``."""
    code = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    widths = 1 + (code >= 0x80).astype(np.int64) + (code >= 0x800) + (code >= 0x10000)
    at = [0, *np.cumsum(widths).tolist()]
    return [Span(at[start], at[stop], start, stop) for start, stop in offsets]
