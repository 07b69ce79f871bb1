"""`Tokenizer`: one interface over five kinds, kept as the `tokenizers` library's ``tokenizer.json``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import tokenizers
from lookback.errors import InputError
from lookback.files import write_aside
from lookback.tokenizers import folder as folders
from lookback.tokenizers import gguf, segmentation
from lookback.tokenizers.convention import END, MASK, Convention, Records, conclude
from lookback.tokenizers.decoding import StreamDecoder, show_bytes
from lookback.tokenizers.spans import Encoding, Offsets, spans, widen
from lookback.tokenizers.specification import Specification, UnsupportedError

Ids: TypeAlias = npt.NDArray[np.int32]
_BLOCK = 1 << 16  # characters given to the library at once
_BATCH = 32  # blocks tokenized in parallel
_CODE_POINTS = 0x110000


class Tokenizer:
    """Text to ids and back.

    ``kind`` is "character", "word", "bpe" (byte-level), "wordpiece" or "sentencepiece"; ``size`` is V, one more than
    the last id. ``begin`` is the id that may stand before a text and ``unknown`` what text without a token becomes, or
    None. ``ends`` are all ids that close a generation, ``prefix`` and ``suffix`` what this
    tokenizer's own convention puts around a text (a beginning for Llama; [CLS] and [SEP] for BERT; nothing for GPT-2,
    Qwen, and what is trained here), ``specials`` all special ids and those without a token. ``chat_templates`` are
    Jinja sources by name, "default" the usual one. ``reversible`` says that ``decode(ids(x)) == x``, byte for byte, for
    every x that can be encoded; ``fingerprint`` is a SHA-256 of all that decides on ids.

    No special token comes out of a person's text, here and in any other program that opens what was trained here.
    Other programs give the same ids, but for one thing: they don't run jieba, so a word tokenizer needs Chinese words
    separated by spaces there.
    """

    def __init__(self, contents: str, convention: Convention | None = None) -> None:
        """Take the text of a ``tokenizer.json``; raises ValueError (or what the library raises) if it can't be used."""
        self._contents = contents
        self._specification = Specification(json.loads(contents))
        self._convention = convention or conclude(self._specification, Records(), {})
        self._names, self._vocabulary = self._specification.names, self._specification.vocabulary
        self.kind, self.size = self._specification.kind, len(self._names)
        self.reversible, self.unknown = self._specification.reversible, self._specification.unknown
        if self.kind in ("character", "word") and (missing := {END, MASK} - self._vocabulary.keys()):
            raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
        if self.kind in ("word", "wordpiece") and self.unknown is None:
            raise ValueError("it has no unknown token")
        self.begin = self.roles.get("bos", self.roles.get("cls"))
        self.ends, self.prefix, self.suffix = self._convention.ends, self._convention.prefix, self._convention.suffix
        self.chat_templates = self._convention.templates
        self.specials = self._convention.specials | ({self.unknown} if self.unknown is not None else set())
        # The first is for a text's beginning, where a space may be put before it, the second for what follows.
        self._library = tokenizers.Tokenizer.from_str(self._specification.plain(self.specials))
        self._pieces = self._specification.pieces(self.specials)
        self._table = self._make_table() if self.kind == "character" else None
        self.fingerprint = hashlib.sha256(f"{contents}{self.prefix[:1]}{self.ends[:1]}".encode()).hexdigest()

    @property
    def end(self) -> int:
        """The id that closes a text (BERT's [SEP]). Raises InputError where there is none."""
        if not self.ends:
            raise InputError(
                "this tokenizer names no end token; give its eos_token in tokenizer_config.json, or eos_token_id in "
                "generation_config.json"
            )
        return self.ends[0]

    @property
    def divider(self) -> int:
        """The id that stands before every document: what the tokenizer puts before a text, else the end token."""
        return self.prefix[0] if self.prefix else self.end

    @property
    def mask(self) -> int:
        """The id that stands for a token to be filled in. Raises InputError where there is none."""
        if "mask" not in self.roles:
            raise InputError("this tokenizer has no mask token; use that of a BERT, or one trained here")
        return self.roles["mask"]

    @property
    def special_names(self) -> Mapping[str, int]:
        """The special tokens by name."""
        return {self._names[token]: token for token in self.specials if self._names[token]}

    @property
    def roles(self) -> Mapping[str, int]:
        """The ids of "bos", "eos", "unk", "pad", "sep", "cls" and "mask", as far as the tokenizer's files name them."""
        return self._convention.roles

    def encode(self, text: str, *, special_tokens: bool = False) -> Encoding:
        """The ids and spans of ``text``; no special token ever comes out of it but [UNK], unless they are asked for.

        Raises InputError for a character that has no token, where there is no unknown one, and for a lone surrogate.
        """
        return self.encode_pieces([(text, special_tokens)])

    def encode_pieces(self, pieces: Iterable[tuple[str, bool]]) -> Encoding:
        """The same for one text in pieces, each with whether special tokens are read in it."""
        pieces = list(pieces)
        text = "".join(piece for piece, _ in pieces)
        segmentation.check_text(text)
        ids: list[int] = []
        offsets: Offsets = []
        done = 0
        for start, stop, token in [*self._find_specials(text, pieces), (len(text), len(text), None)]:
            if done < start:
                more, places = self._encode_segment(text[done:start], done)
                ids += more
                offsets += [(done + first, done + last) for first, last in places]
            if token is not None:
                ids.append(token)
                offsets.append((start, stop))
            done = stop
        return Encoding(ids, spans(text, offsets))

    def _find_specials(self, text: str, pieces: Iterable[tuple[str, bool]]) -> Iterator[tuple[int, int, int | None]]:
        """Where special tokens stand in the pieces that may have them, with the spaces that they take in."""
        start = done = 0
        for piece, special_tokens in pieces:
            for found in self._special_pattern.finditer(piece) if special_tokens else ():
                first, last = start + found.start(), start + found.end()
                token = self._vocabulary[found[0]]
                entry = self._specification.special.get(token, {})
                alone = not (_is_letter(text[first - 1 : first]) or _is_letter(text[last : last + 1]))
                if first < done or (entry.get("single_word") and not alone):
                    continue
                if entry.get("lstrip"):
                    first = done + len(text[done:first].rstrip())
                if entry.get("rstrip"):
                    last = len(text) - len(text[last:].lstrip())
                yield first, last, token
                done = last
            start += len(piece)

    @cached_property
    def _special_pattern(self) -> re.Pattern[str]:
        names = sorted(self.special_names, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names)) or "(?!)")

    @cached_property
    def _inner(self) -> Any:
        """The library for what has text before it."""
        if self._specification.prefixing == "none":
            return self._library
        return tokenizers.Tokenizer.from_str(self._specification.plain(self.specials, inner=True))

    def _encode_segment(self, text: str, before: int) -> tuple[list[int], Offsets]:
        """Ids and character offsets of what lies between special tokens, ``before`` characters after the beginning."""
        if self.kind == "character":
            ids = [token for part in self._look_up(text, before) for token in part.tolist()]
            return ids, [(place, place + 1) for place in range(len(text))]
        if self.kind == "word":
            found = list(segmentation.words(text, self._library.pre_tokenizer))
            return self._word_ids(word for word, _ in found), [(start, start + len(word)) for word, start in found]
        self._check_bytes(text, before)
        library = self._inner if before and self._specification.prefixing == "first" else self._library
        encoded = library.encode(text, add_special_tokens=False)
        offsets: Offsets = list(encoded.offsets)
        if len(offsets) > 1 and self._pieces.raw[encoded.ids[0]] == b" " and offsets[1][0] < offsets[0][1]:
            offsets[0] = (0, 0)  # A space that was put there.
        if self._specification.normalizers:
            offsets = widen(text, offsets, everything=self.kind == "bpe")
        return encoded.ids, offsets

    def _check_bytes(self, text: str, before: int = 0) -> None:
        lost = self._specification.missing_bytes
        if lost and any(byte in lost for byte in set(text.encode())):
            position = next(place for place, character in enumerate(text) if set(character.encode()) & set(lost))
            raise _no_token(text[position], before + position)

    def _make_table(self) -> Ids:
        """From code point to id, [0x110000]; -1 where there is no token."""
        table = np.full(_CODE_POINTS, -1 if self.unknown is None else self.unknown, dtype=np.int32)
        for token, name in enumerate(self._names):
            if token not in self.specials:
                table[ord(name)] = token
        return table

    def ids(self, text: str) -> Ids:
        """The ids alone, int32 [T]: the same as `encode` gives, in bulk and in little memory."""
        segmentation.check_text(text)
        parts = list(self._look_up(text) if self.kind == "character" else self._encode_blocks(text))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)

    def _look_up(self, text: str, before: int = 0) -> Iterator[Ids]:
        assert self._table is not None
        for start in range(0, len(text), _BLOCK):
            ids = self._table[np.frombuffer(text[start : start + _BLOCK].encode("utf-32-le"), dtype="<u4")]
            if (missing := ids < 0).any():
                position = start + int(missing.argmax())
                raise _no_token(text[position], before + position)
            yield ids

    def _encode_blocks(self, text: str) -> Iterator[Ids]:
        remaining = self._cutter.blocks(text, _BLOCK)
        if self.kind == "word":
            for block in remaining:
                ids = self._word_ids(word for word, _ in segmentation.words(block, self._library.pre_tokenizer))
                yield np.array(ids, dtype=np.int32)
            return
        self._check_bytes(text)
        library = self._library
        batch = list(islice(remaining, 1 if self._specification.prefixing != "none" else _BATCH))
        while batch:
            for encoded in library.encode_batch_fast(batch, add_special_tokens=False):
                yield np.array(encoded.ids, dtype=np.int32)
            if batch := list(islice(remaining, _BATCH)):
                library = self._inner

    @cached_property
    def _cutter(self) -> segmentation.Cutter:
        return self._specification.cutter(self._inner.pre_tokenizer)

    def _word_ids(self, found: Iterable[str]) -> list[int]:
        assert self.unknown is not None
        return [self._vocabulary.get(word, self.unknown) for word in found]

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
        if self.kind not in ("bpe", "sentencepiece") or token in self.specials:
            return self._names[token]
        return show_bytes(self._pieces.raw[token])

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, and the ``tokenizer_config.json`` by which transformers' Auto classes open it.

        Where several ids close a generation, ``generation_config.json`` says so.
        """
        files = {folders.DOCUMENT: self._contents}
        files[folders.CONFIG] = _json(folders.config(self._convention, self._specification))
        if len(self.ends) > 1:
            files[folders.GENERATION] = _json({"eos_token_id": list(self.ends)})
        for name, contents in files.items():
            with write_aside(folder / name) as path:
                path.write_bytes(contents.encode())

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Open a folder of ours, or of Hugging Face's: ``tokenizer.json``, or what it can be made of.

        That is ``vocab.txt`` (WordPiece), or ``vocab.json`` and ``merges.txt`` (GPT-2 and Qwen2). InputError for any
        other kind, by name, and for a file that is missing or damaged.
        """
        return _open(lambda: cls(*folders.read(folder)), folders.source(folder))

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> Tokenizer:
        """The tokenizer of a GGUF file, from its metadata. InputError for a kind that isn't supported, or damage."""

        def make() -> Tokenizer:
            document, convention = gguf.read(metadata)
            return cls(json.dumps(document, ensure_ascii=False), convention)

        return _open(make, "the GGUF file's tokenizer")


def _open(make: Callable[[], Tokenizer], source: object) -> Tokenizer:
    try:
        return make()
    except InputError:
        raise
    except UnsupportedError as error:
        raise InputError(
            "{source} is of a kind that isn't supported: {kind}; supported are byte-level BPE, SentencePiece's BPE, "
            "WordPiece, and what was trained here",
            source=source,
            kind=error,
        ) from None
    except Exception as error:  # The library raises bare Exceptions.
        raise InputError(
            "{source} is damaged or of no known kind ({reason}); restore it, or get the model again",
            source=source,
            reason=f"no {error}" if isinstance(error, KeyError) else error,
        ) from None


def _no_token(character: str, position: int) -> InputError:
    return InputError(
        "the character {character} (U+{code:04X}) at position {position} is not in the vocabulary; "
        "leave it out, or train with a text that has it or with an unknown token",
        character=repr(character),
        code=ord(character),
        position=position,
    )


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
