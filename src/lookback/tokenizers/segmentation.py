"""Where text may be cut: the pre-tokenizer of each kind, safe places to slice a long text, jieba for Chinese words.

Every pattern of ours caps the length of what it matches. Chinese has no spaces, and without a cap a paragraph would be
one pre-token, over which BPE training takes gigabytes. The patterns use no lookbehind, so a match depends only on where
it begins and on a few characters after its end; that is what makes `Cutter` exact.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from tokenizers.pre_tokenizers import ByteLevel, PreTokenizer, Sequence, Split

from lookback.errors import InputError
from tokenizers import Regex

if TYPE_CHECKING:
    import jieba

EVERY_CHARACTER = r"[\s\S]"
# GPT-2's pattern (Radford et al. 2019) with marks counted as letters, three digits at most as in Llama 3, and caps.
_PIECES = r"'(?:[sdmt]|ll|ve|re)| ?[\p{L}\p{M}]{1,24}| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]{1,24}|\s{1,24}(?!\S)|\s{1,24}"
_LETTER = r"[[\p{L}\p{M}\p{N}_]&&[^\p{Han}]]"
_SUBWORDS = rf"\p{{Han}}|{_LETTER}{{1,24}}|\S"
_WORDS = rf"\p{{Han}}{{1,256}}|{_LETTER}{{1,64}}(?:['’]{_LETTER}{{1,64}}){{0,3}}|\n|\S"

# A known visible character before a space or line break: mostly a boundary, whatever came before.
_BREAK = re.compile(r"[0-9A-Za-z\u4e00-\u9fa5.,;:!?，。；：！？、”](?=[ \n])")
_TRIES = 8  # such places are looked at in one stretch of text
_NEAR = 40  # characters on either side are pre-tokenized to see that one is a boundary
# Characters that no normalizer composes with the one before: ASCII, Chinese and its punctuation.
_STARTER = re.compile("[\x00-\x7f\u3001-\u3020\u3400-\u9fff\uff01-\uff5e]")
_REACH = 16  # More characters than any pattern looks at after the end of its match.
_HAN = re.compile("[々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def pre_tokenizer(kind: str) -> PreTokenizer:
    """The library's pre-tokenizer for "character", "bpe", "wordpiece" or "word"."""
    if kind == "character":
        return Split(Regex(EVERY_CHARACTER), "isolated")
    if kind == "bpe":
        split = Split(Regex(_PIECES), "isolated")
        return Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    return Split(Regex(_SUBWORDS if kind == "wordpiece" else _WORDS), "removed", invert=True)


def before_spaces(newline_alone: bool) -> PreTokenizer:
    """For vocabularies in which a space only begins tokens (and a line break is one by itself): where tokens end."""
    return Split(Regex("[ ▁]+[^ ▁\n]*|\n|[^ ▁\n]+" if newline_alone else "[ ▁]+[^ ▁]*|[^ ▁]+"), "isolated")


def check_text(text: str) -> None:
    """Raise InputError if ``text`` holds half of a surrogate pair, which no UTF-8 can carry."""
    if found := _SURROGATE.search(text):
        raise InputError(
            "the text has a lone surrogate (U+{code:04X}) at position {position}, which is no character; "
            "read the text with its right encoding",
            code=ord(found[0]),
            position=found.start(),
        )


@dataclass(frozen=True)
class Cutter:
    """Slices a long text between pre-tokens, so that each block is tokenized as it is in the whole text.

    Without a ``splitter`` nothing is known to be safe and a text stays whole. ``composes`` says that a normalizer may
    join a character with the one before; ``added`` finds the tokens that are looked for in text before it is split.
    """

    splitter: PreTokenizer | None
    composes: bool = False
    added: re.Pattern[str] | None = None

    def blocks(self, text: str, size: int) -> Iterator[str]:
        """Cut ``text`` into blocks of about ``size`` characters."""
        start = 0
        while start < len(text):
            stop = self.cut(text, start, size)
            yield text[start:stop]
            start = stop

    def cut(self, text: str, start: int, size: int) -> int:
        """A boundary between pre-tokens about ``size`` characters after ``start``, which is one itself.

        Where no plain break is near, a window is pre-tokenized: all its boundaries are those of the whole text but for
        the last few characters, and a run of spaces or digits, where the pattern could have looked past the window.
        """
        if self.splitter is None:
            return len(text)
        for found in islice(_BREAK.finditer(text, start + size, start + 2 * size), _TRIES):
            if self._is_edge(text, found.end()) and self._is_free(text, found.end()):
                return found.end()
        while start + size < len(text):
            window = text[start : start + size]
            last = min(size - _REACH, _run(window))
            stops = [start + stop for _, (_, stop) in self.splitter.pre_tokenize_str(window) if 0 < stop <= last]
            for stop in reversed(stops):
                if self._is_free(text, stop):
                    return stop
            size *= 2
        return len(text)

    def _is_edge(self, text: str, place: int) -> bool:
        assert self.splitter is not None
        first = max(0, place - _NEAR)
        pieces = self.splitter.pre_tokenize_str(text[first : place + _NEAR])
        return any(first + stop == place for _, (_, stop) in pieces)

    def _is_free(self, text: str, place: int) -> bool:
        """Whether nothing is composed, and no added token lies, across ``place``."""
        if self.composes and not _STARTER.match(text, place):
            return False
        near = () if self.added is None else self.added.finditer(text, max(0, place - 256), place + 256)
        return not any(found.start() < place < found.end() for found in near)


def _run(text: str) -> int:
    """Where the spaces and digits at the end of ``text`` begin."""
    place = len(text)
    while place and (text[place - 1].isspace() or text[place - 1].isdigit()):
        place -= 1
    return place


def words(text: str, splitter: PreTokenizer) -> Iterator[tuple[str, int]]:
    """The words of ``text`` and the character position of each: the pattern's, and Chinese runs cut by jieba."""
    for run, (start, _) in splitter.pre_tokenize_str(text):
        if not _HAN.match(run):
            yield run, start
            continue
        for word in _segmenter().cut(run):
            yield word, start
            start += len(word)


@cache
def _segmenter() -> jieba.Tokenizer:
    try:
        import jieba
    except ImportError:
        raise InputError(
            "words of Chinese text are found by jieba, which is not installed; run: pip install jieba"
        ) from None
    jieba.setLogLevel(logging.CRITICAL)  # It reports the loading of its dictionary, and a cache it could not write.
    return jieba.Tokenizer()
