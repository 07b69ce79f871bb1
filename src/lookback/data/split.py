"""Dividing a corpus into what is trained on and what is held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from lookback.data.corpus import Corpus
from lookback.errors import InputError

HOLD_OUTS = ("position", "document", "none")


class Piece(NamedTuple):
    """A document or one side of one; ``ends`` tells whether the document ends with it."""

    text: str
    held_out: bool
    ends: bool


def check_hold_out(hold_out: str, fraction: float) -> None:
    """Raises InputError unless both are allowed."""
    if hold_out not in HOLD_OUTS:
        raise InputError(
            "{hold_out} is no way to hold text out; use one of: {allowed}",
            hold_out=hold_out,
            allowed=", ".join(HOLD_OUTS),
        )
    if not 0 < fraction < 1:
        raise InputError(
            "a held-out fraction of {fraction} is not between 0 and 1; use for example 0.1", fraction=fraction
        )


def split(corpus: Corpus, lengths: list[int], hold_out: str, fraction: float) -> Iterator[Piece]:
    """The pieces of ``corpus`` in order; ``lengths`` are its documents' in characters.

    position: the last ``fraction`` of the characters, a cut inside the one document or between two of several.
    document: those documents, about ``fraction`` of them, that a hash of their number picks. none: nothing.
    """
    if hold_out == "position" and len(lengths) == 1:
        text = next(corpus.documents())
        cut = int(len(text) * (1 - fraction))
        yield Piece(text[:cut], held_out=False, ends=False)
        yield Piece(text[cut:], held_out=True, ends=True)
        return
    held_out = {"position": _last, "document": _picked, "none": _nothing}[hold_out](lengths, fraction)
    for text, held in zip(corpus.documents(), held_out, strict=True):
        yield Piece(text, held, ends=True)


def _nothing(lengths: list[int], fraction: float) -> list[bool]:
    return [False] * len(lengths)


def _last(lengths: list[int], fraction: float) -> list[bool]:
    """From the document on in which the cut falls, but never the first one."""
    cut = int(sum(lengths) * (1 - fraction))
    return [number > 0 and end > cut for number, end in enumerate(accumulate(lengths))]


def _picked(lengths: list[int], fraction: float) -> list[bool]:
    """By lots that depend on a document's number alone: documents added at the end leave the others where they are."""
    if len(lengths) < 2:
        raise InputError("one document alone cannot be divided by documents; use --hold-out position")
    lots = [_lot(number) for number in range(len(lengths))]
    picked = [lot < fraction for lot in lots]
    picked[lots.index(min(lots))] = True  # at least one on either side
    picked[lots.index(max(lots))] = False
    return picked


def _lot(number: int) -> float:
    """A number in [0, 1) that looks random."""
    digest = hashlib.sha256(f"lookback hold-out {number}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
