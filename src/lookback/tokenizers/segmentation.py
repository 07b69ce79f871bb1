"""Where text may be cut: the pre-tokenizer of each kind, safe places to slice a long text, jieba for Chinese words.

Every pattern caps the length of what it matches. Chinese has no spaces, and without a cap a paragraph would be one
pre-token, over which BPE training takes gigabytes. The patterns use no lookbehind, so a match depends only on where it
begins and on a few characters after its end; that is what makes `cut` exact.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import cache
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

# A known visible character, then a space or line break: a boundary under every pattern above, whatever came before.
_BREAK = re.compile(r"[0-9A-Za-z\u4e00-\u9fa5.,;:!?，。；：！？、”][ \n]")
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


def check_text(text: str) -> None:
    """Raise InputError if ``text`` holds half of a surrogate pair, which no UTF-8 can carry."""
    if found := _SURROGATE.search(text):
        raise InputError(
            "the text has a lone surrogate (U+{code:04X}) at position {position}, which is no character; "
            "read the text with its right encoding",
            code=ord(found[0]),
            position=found.start(),
        )


def blocks(text: str, splitter: PreTokenizer, size: int) -> Iterator[str]:
    """Cut ``text`` between pre-tokens into blocks of about ``size`` characters, tokenized as in the whole text."""
    start = 0
    while start < len(text):
        stop = cut(text, start, splitter, size)
        yield text[start:stop]
        start = stop


def cut(text: str, start: int, splitter: PreTokenizer, size: int) -> int:
    """A boundary between pre-tokens about ``size`` characters after ``start``, which is one itself.

    Where no plain break is near, a window is pre-tokenized: all its boundaries are those of the whole text but for
    the last few characters, where the pattern could have looked past the window's end.
    """
    if found := _BREAK.search(text, start + size, start + 2 * size):
        return found.start() + 1
    while start + size < len(text):
        words = splitter.pre_tokenize_str(text[start : start + size])
        stops = [stop for _, (_, stop) in words if stop <= size - _REACH]
        if stops:
            return start + stops[-1]
        size *= 2
    return len(text)


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
