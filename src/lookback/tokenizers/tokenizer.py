"""`Tokenizer`: one interface over four kinds, kept as the `tokenizers` library's ``tokenizer.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import tokenizers
from lookback.errors import InputError
from lookback.files import write_aside
from lookback.tokenizers import segmentation
from lookback.tokenizers.decoding import Pieces, StreamDecoder, byte_alphabet, show_bytes

END = "<|end|>"
MASK = "[MASK]"
UNKNOWN = "[UNK]"
CONTINUES = "##"

Ids: TypeAlias = npt.NDArray[np.int32]
_BLOCK = 1 << 16  # characters given to the library at once
_BATCH = 32  # blocks tokenized in parallel
_CODE_POINTS = 0x110000


class Span(NamedTuple):
    """Where a token lies in the original text, in UTF-8 bytes and in characters (code points)."""

    byte_start: int
    byte_stop: int
    start: int
    stop: int


@dataclass(frozen=True)
class Encoding:
    """The ids of a text and, one for each, their spans in it.

    Pieces of one character all have that character's span; a piece with bytes of two characters has the span of both.
    """

    ids: list[int]
    spans: list[Span]


class Tokenizer:
    """Text to ids and back.

    ``kind`` is "character", "word", "bpe" or "wordpiece"; ``size`` is V; ``end``, ``mask`` and ``unknown`` are the ids
    of the special tokens (``unknown`` is None where there is none); ``reversible`` says that ``decode(ids(x)) == x``,
    byte for byte, for every x that can be encoded; ``fingerprint`` is the SHA-256 of the ``tokenizer.json``.

    Special tokens are entries of the vocabulary but are not registered to be found in raw text, so "<|end|>" in a
    person's text is plain text, here and in any other program that opens the file. Other programs give the same ids,
    but for one thing: they don't run jieba, so a word tokenizer needs Chinese words separated by spaces there.
    """

    def __init__(self, contents: str) -> None:
        """Take the text of a ``tokenizer.json``; raises ValueError (or what the library raises) if it can't be used."""
        self._contents = contents
        self._library = tokenizers.Tokenizer.from_str(contents)
        self._library.encode_special_tokens = True
        self._splitter = self._library.pre_tokenizer
        self.kind, self.reversible = _kind(json.loads(contents))
        self._vocabulary = self._library.get_vocab()
        self._names = sorted(self._vocabulary, key=self._vocabulary.__getitem__)
        self.size = len(self._names)
        if [self._vocabulary[name] for name in self._names] != list(range(self.size)):
            raise ValueError("its ids have gaps")
        needed = {END, MASK, UNKNOWN} if self.kind in ("word", "wordpiece") else {END, MASK}
        if missing := needed - self._vocabulary.keys():
            raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
        if self._splitter is None:
            raise ValueError("it has no pre-tokenizer")
        self.end, self.mask = self._vocabulary[END], self._vocabulary[MASK]
        self.unknown: int | None = self._vocabulary.get(UNKNOWN)
        self.reversible = self.reversible and self.unknown is None
        self._specials = {self.end, self.mask, self.unknown}
        self._pieces = self._make_pieces()
        self._table = self._make_table() if self.kind == "character" else None
        self.fingerprint = hashlib.sha256(contents.encode()).hexdigest()

    def _make_pieces(self) -> Pieces:
        texts = ["" if token in self._specials else name for token, name in enumerate(self._names)]
        if self.kind == "bpe":
            alphabet = byte_alphabet()
            return Pieces.of_bytes([bytes(alphabet[letter] for letter in text) for text in texts])
        if self.kind == "character":
            return Pieces.of_bytes([text.encode() for text in texts])
        continues = [self.kind == "wordpiece" and len(text) > 2 and text.startswith(CONTINUES) for text in texts]
        return Pieces.of_words(
            [text[2:] if inner else text for text, inner in zip(texts, continues, strict=True)], continues
        )

    def _make_table(self) -> Ids:
        """From code point to id, [0x110000]; -1 where there is no token."""
        table = np.full(_CODE_POINTS, -1 if self.unknown is None else self.unknown, dtype=np.int32)
        for token, name in enumerate(self._names):
            if token not in self._specials:
                table[ord(name)] = token
        return table

    def encode(self, text: str) -> Encoding:
        """The ids and spans of ``text``; no special token ever comes out of text but [UNK].

        Raises InputError for a character outside a character vocabulary and for a lone surrogate.
        """
        segmentation.check_text(text)
        if self.kind == "character":
            return Encoding(self.ids(text).tolist(), _spans(text, ((i, i + 1) for i in range(len(text)))))
        if self.kind == "word":
            found = list(segmentation.words(text, self._splitter))
            offsets = ((start, start + len(word)) for word, start in found)
            return Encoding(self._word_ids(word for word, _ in found), _spans(text, offsets))
        encoded = self._library.encode(text, add_special_tokens=False)
        return Encoding(encoded.ids, _spans(text, encoded.offsets))

    def ids(self, text: str) -> Ids:
        """The ids alone, int32 [T]: the same as `encode` gives, in bulk and in little memory."""
        segmentation.check_text(text)
        parts = list(self._look_up(text) if self.kind == "character" else self._encode_blocks(text))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)

    def _look_up(self, text: str) -> Iterator[Ids]:
        assert self._table is not None
        for start in range(0, len(text), _BLOCK):
            ids = self._table[np.frombuffer(text[start : start + _BLOCK].encode("utf-32-le"), dtype="<u4")]
            if (missing := ids < 0).any():
                position = start + int(missing.argmax())
                raise InputError(
                    "the character {character} (U+{code:04X}) at position {position} is not in the vocabulary; "
                    "leave it out, or train with a text that has it or with an unknown token",
                    character=repr(text[position]),
                    code=ord(text[position]),
                    position=position,
                )
            yield ids

    def _encode_blocks(self, text: str) -> Iterator[Ids]:
        remaining = segmentation.blocks(text, self._splitter, _BLOCK)
        if self.kind == "word":
            for block in remaining:
                ids = self._word_ids(word for word, _ in segmentation.words(block, self._splitter))
                yield np.array(ids, dtype=np.int32)
            return
        while batch := list(islice(remaining, _BATCH)):
            for encoded in self._library.encode_batch_fast(batch, add_special_tokens=False):
                yield np.array(encoded.ids, dtype=np.int32)

    def _word_ids(self, found: Iterable[str]) -> list[int]:
        unknown = self._vocabulary[UNKNOWN]
        return [self._vocabulary.get(word, unknown) for word in found]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``: special tokens left out, bytes that make no character as U+FFFD.

        Words are joined by a space, Chinese and Japanese ones and punctuation by nothing. InputError for an unknown id.
        """
        stream = self.stream()
        return "".join([stream.push(token) for token in ids]) + stream.finish()

    def stream(self) -> StreamDecoder:
        """A decoder for ids that come one at a time."""
        return StreamDecoder(self._pieces)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of text that a token stands for; b"" for special tokens."""
        return self._pieces.raw[token]

    def token_text(self, token: int) -> str:
        """For display: characters, ⟨E4 BD⟩ for a piece of one, "##ing" inside a word, a special token's name."""
        if self.kind != "bpe" or token in self._specials:
            return self._names[token]
        return show_bytes(self._pieces.raw[token])

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, and the ``tokenizer_config.json`` by which transformers' Auto classes open it."""
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END,
            "eos_token": END,
            "mask_token": MASK,
            **({} if self.unknown is None else {"unk_token": UNKNOWN}),
            "split_special_tokens": True,  # transformers registers the tokens above, but must not find them in text.
            "clean_up_tokenization_spaces": False,
        }
        with write_aside(folder / "tokenizer.json") as path:
            path.write_bytes(self._contents.encode())
        with write_aside(folder / "tokenizer_config.json") as path:
            path.write_bytes((json.dumps(config, indent=2) + "\n").encode())

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Open the ``tokenizer.json`` in ``folder``; InputError if it is missing, damaged or of no known kind."""
        path = folder / "tokenizer.json"
        try:
            return cls(path.read_bytes().decode())
        except FileNotFoundError:
            raise InputError(
                "{folder} has no tokenizer.json; give the folder of a trained model", folder=folder
            ) from None
        except OSError as error:
            raise InputError("{path} can't be read: {reason}", path=path, reason=error.strerror) from None
        except Exception as error:  # The library raises bare Exceptions.
            raise InputError(
                "{path} is damaged or of no known kind ({reason}); restore it, or train the model again",
                path=path,
                reason=error,
            ) from None


def _kind(spec: dict[str, Any]) -> tuple[str, bool]:
    """The kind of a parsed ``tokenizer.json`` and whether its text comes back as it was; ValueError if not ours."""
    model, splitter = spec["model"]["type"], json.dumps(spec["pre_tokenizer"], sort_keys=True)
    plain = spec["normalizer"] is None
    if model == "WordLevel":
        single = json.dumps(segmentation.EVERY_CHARACTER) in splitter
        return ("character", plain) if single else ("word", False)
    if model == "BPE" and '"ByteLevel"' in splitter:
        return "bpe", plain and '"add_prefix_space": true' not in splitter
    if model == "WordPiece":
        return "wordpiece", False
    raise ValueError(f"its model is {model}")


def _spans(text: str, offsets: Iterable[tuple[int, int]]) -> list[Span]:
    """Spans from character offsets into ``text``."""
    code = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    widths = 1 + (code >= 0x80).astype(np.int64) + (code >= 0x800) + (code >= 0x10000)
    at = [0, *np.cumsum(widths).tolist()]
    return [Span(at[start], at[stop], start, stop) for start, stop in offsets]
