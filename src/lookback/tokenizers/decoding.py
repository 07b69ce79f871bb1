"""From ids back to text: the bytes of each token, how words are joined, and a decoder for streams."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lookback.errors import InputError

# Written without spaces between words: Chinese and Japanese characters and punctuation, full-width forms.
_SPACELESS = re.compile("[\u2e80-\u312f\u31a0-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U000323af\n]")
_CLOSING = frozenset(".,;:!?)]}%’”…")
_OPENING = frozenset("([{‘“")
_INVALID = re.compile("[\udc80-\udcff]+")


@dataclass(frozen=True)
class Pieces:
    """For every id: the bytes it stands for, and whether it joins its neighbours without a space between.

    ``indent`` is the number of spaces that encoding puts before a text and decoding takes away again.
    """

    raw: list[bytes]
    joins_before: list[bool]
    joins_after: list[bool]
    indent: int = 0

    @classmethod
    def of_bytes(cls, raw: list[bytes], indent: int = 0) -> Pieces:
        """Tokens that are simply put one after the other (characters, byte-level BPE, SentencePiece)."""
        return cls(raw, [True] * len(raw), [True] * len(raw), indent)

    @classmethod
    def of_words(cls, texts: Sequence[str], continues: Sequence[bool]) -> Pieces:
        """Words, with a space between any two unless a script or punctuation does without, or one ``continues``."""
        before = [
            inner or not text or text[0] in _CLOSING or bool(_SPACELESS.match(text[0]))
            for text, inner in zip(texts, continues, strict=True)
        ]
        after = [not text or text[-1] in _OPENING or bool(_SPACELESS.match(text[-1])) for text in texts]
        return cls([text.encode() for text in texts], before, after)


class StreamDecoder:
    """Decodes ids one at a time; holds back the bytes of an unfinished character and nothing else.

    All pushes and `finish` together are what `Tokenizer.decode` gives for the same ids, whatever these are.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._previous: int | None = None
        self._indent = pieces.indent

    def push(self, token: int) -> str:
        """The text that an id completes, "" inside a character and for special tokens. InputError for no such id."""
        pieces = self._pieces
        if not 0 <= token < len(pieces.raw):
            raise InputError(
                "{token} is no token of this tokenizer; its ids go from 0 to {last}",
                token=token,
                last=len(pieces.raw) - 1,
            )
        raw = pieces.raw[token]
        if not raw:
            return ""
        if not (self._previous is None or pieces.joins_before[token] or pieces.joins_after[self._previous]):
            raw = b" " + raw
        self._previous = token
        return self._bytes.decode(self._outdent(raw) if self._indent else raw)

    def _outdent(self, raw: bytes) -> bytes:
        text = raw.lstrip(b" ")
        spaces = min(len(raw) - len(text), self._indent)
        self._indent = 0 if text else self._indent - spaces
        return raw[spaces:]

    def finish(self) -> str:
        """What was held back: "" or, for a character whose end never came, U+FFFD."""
        return self._bytes.decode(b"", final=True)


@cache
def byte_alphabet() -> Mapping[str, int]:
    """The characters that stand for the 256 bytes in byte-level BPE vocabularies (GPT-2's ``bytes_to_unicode``).

    Printable bytes stand for themselves, the others are shifted past Latin-1 in order.
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(hidden)}


def show_bytes(raw: bytes) -> str:
    """The characters in ``raw``, and ⟨E4 BD⟩ for bytes that are only a piece of one."""
    text = raw.decode("utf-8", "surrogateescape")
    return _INVALID.sub(lambda found: "⟨" + " ".join(f"{ord(c) - 0xDC00:02X}" for c in found[0]) + "⟩", text)
