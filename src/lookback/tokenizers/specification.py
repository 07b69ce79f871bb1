"""A ``tokenizer.json``, read: what kind it is, its tokens, and what the library is given of it.

The format is the `tokenizers` library's: normalizer, pre-tokenizer, model, and tokens that are found in raw text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any, TypeAlias

from lookback.tokenizers import segmentation
from lookback.tokenizers.decoding import Pieces, byte_alphabet
from lookback.tokenizers.segmentation import Cutter

Part: TypeAlias = dict[str, Any]

CONTINUES = "##"
SPACE = "▁"  # How SentencePiece writes a space.
_UNKNOWN = " unknown "  # No text becomes this: in every kind a space is either replaced or a place to split.
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_INNER_SPACE = re.compile(f"[^{SPACE}]{SPACE}")
_LOCAL = frozenset(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer", "Prepend"])
_SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
_IN_UTF8 = frozenset(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}


class UnsupportedError(ValueError):
    """A tokenizer that is whole, but of a kind that isn't supported; says which."""


class Specification:
    """``kind`` is "character", "word", "bpe", "wordpiece" or "sentencepiece".

    ``names`` has each id's token, "" if there is none. ``special`` and ``loose`` are the entries for tokens found in
    raw text, by id: those marked special, and the others. ``unknown`` is the id that text without a token gets. Raises
    UnsupportedError, or whatever damaged contents cause.
    """

    def __init__(self, document: Part) -> None:
        self.document = document
        self.model: Part = document["model"]
        self.normalizers = leaves(document.get("normalizer"))
        self.splitters = leaves(document.get("pre_tokenizer"))
        self.kind = self._kind()
        entries: list[Part] = document.get("added_tokens") or []
        self.vocabulary: dict[str, int] = {entry["content"]: int(entry["id"]) for entry in entries}
        self.vocabulary |= self.model["vocab"]
        by_id = {self.vocabulary[entry["content"]]: entry for entry in entries}
        self.special = {token: entry for token, entry in by_id.items() if entry["special"]}
        self.loose = {token: entry for token, entry in by_id.items() if not entry["special"]}
        self.names = self._by_id()
        self.unknown: int | None = self.vocabulary.get(self.model.get("unk_token") or "")
        if self.kind == "sentencepiece" and self.unknown is None and not self._has_all_bytes():
            raise UnsupportedError("SentencePiece with neither an unknown token nor one for every byte")

    def _has_all_bytes(self) -> bool:
        return bool(self.model.get("byte_fallback")) and all(f"<0x{byte:02X}>" in self.vocabulary for byte in _IN_UTF8)

    def _kind(self) -> str:
        types = {leaf["type"] for leaf in self.splitters}
        model = self.model.get("type") or ("BPE" if "merges" in self.model else "WordPiece")  # Old files don't say.
        if model == "WordLevel" and types == {"Split"}:
            single = self.splitters[0]["pattern"] == {"Regex": segmentation.EVERY_CHARACTER}
            return "character" if single else "word"
        if model == "WordPiece" and types and self.model["continuing_subword_prefix"] == CONTINUES:
            return "wordpiece"
        affixes = self.model.get("continuing_subword_prefix") or self.model.get("end_of_word_suffix")
        if model == "BPE" and not affixes:
            if "ByteLevel" in types:
                return "bpe"
            if self.model.get("byte_fallback") or "Metaspace" in types:
                return "sentencepiece"
        raise UnsupportedError(f"{model} behind {' and '.join(sorted(types)) or 'no'} pre-tokenizer")

    def _by_id(self) -> list[str]:
        ids = self.vocabulary.values()
        size = max(ids) + 1
        limit = len(self.vocabulary) if self.model["type"] == "WordLevel" else 2 * len(self.vocabulary) + 4096
        if len(set(ids)) < len(ids) or min(ids) < 0 or size > limit:
            raise ValueError("its ids have gaps or occur twice")
        names = [""] * size
        for name, token in self.vocabulary.items():
            names[token] = name
        return names

    @cached_property
    def prefixing(self) -> str:
        """Whether a space is put before the "first" stretch of text, "all" between special tokens, or "none"."""
        for leaf in (*self.normalizers, *self.splitters):
            if leaf["type"] == "Prepend" or (leaf["type"] == "ByteLevel" and leaf["add_prefix_space"]):
                return "all"
            if leaf["type"] == "Metaspace" and (scheme := _scheme(leaf)) != "never":
                return "first" if scheme == "first" else "all"
        return "none"

    def plain(self, specials: Collection[int], *, inner: bool = False) -> str:
        """The library's ``tokenizer.json`` for a person's text: it has never heard of ``specials``.

        Nothing is added around a text, nothing truncated, padded or dropped at random. ``inner`` is for what lies in
        the midst of a text and has no space put before it.
        """
        taken = {self.names[token] for token in specials}
        model = dict(self.model)
        model["vocab"] = {name: token for name, token in self.vocabulary.items() if token not in specials}
        if self.unknown is not None:
            model["vocab"][_UNKNOWN] = self.unknown
            model["unk_token"] = _UNKNOWN
        if model["type"] == "BPE":
            model["dropout"] = None
            model["merges"] = [
                [left, right] for left, right in self._merges() if not taken & {left, right, left + right}
            ]
        normalizer, splitter = self.document.get("normalizer"), self.document.get("pre_tokenizer")
        document = {
            "version": "1.0",
            "added_tokens": [entry for token, entry in self.loose.items() if token not in specials],
            "normalizer": _without_prefix(normalizer) if inner else normalizer,
            "pre_tokenizer": _without_prefix(splitter) if inner else splitter,
            "model": model,
        }
        return json.dumps(document, ensure_ascii=False)

    def _merges(self) -> Iterator[tuple[str, str]]:
        for merge in self.model["merges"]:
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            yield left, right

    def pieces(self, specials: Collection[int]) -> Pieces:
        """What each token is as text; nothing for special ones."""
        texts = ["" if token in specials else name for token, name in enumerate(self.names)]
        if self.kind == "bpe":
            return Pieces.of_bytes([self._byte_level(token, text) for token, text in enumerate(texts)])
        if self.kind == "sentencepiece":
            indents = [_indent(leaf) for leaf in leaves(self.document.get("decoder"))]
            raw = [self._sentencepiece(token, text) for token, text in enumerate(texts)]
            return Pieces.of_bytes(raw, max(indents, default=0))
        if self.kind == "character":
            return Pieces.of_bytes([text.encode() for text in texts])
        continues = [self.kind == "wordpiece" and len(text) > 2 and text.startswith(CONTINUES) for text in texts]
        return Pieces.of_words(
            [text[2:] if inner else text for text, inner in zip(texts, continues, strict=True)], continues
        )

    def _byte_level(self, token: int, text: str) -> bytes:
        alphabet = byte_alphabet()
        if token in self.loose or not alphabet.keys() >= set(text):
            return text.encode()
        return bytes(alphabet[letter] for letter in text)

    def _sentencepiece(self, token: int, text: str) -> bytes:
        if token in self.loose:
            return text.encode()
        if self.model.get("byte_fallback") and (byte := _BYTE.fullmatch(text)):
            return bytes([int(byte[1], 16)])
        return text.replace(SPACE, " ").encode()

    @cached_property
    def missing_bytes(self) -> bytes:
        """The bytes that a text may hold and byte-level BPE would lose without a word: it has no token for them."""
        if self.kind != "bpe" or self.unknown is not None:
            return b""
        return bytes(
            byte for letter, byte in byte_alphabet().items() if byte in _IN_UTF8 and letter not in self.vocabulary
        )

    @property
    def reversible(self) -> bool:
        """Whether every text that can be encoded comes back as it was.

        SentencePiece takes "▁" for a space, so it is not, though it changes nothing else; nor what normalizes.
        """
        exact = self.kind in ("character", "bpe") and self.unknown is None
        eats_spaces = any(entry["lstrip"] or entry["rstrip"] for entry in self.loose.values())
        return exact and not self.normalizers and self.prefixing == "none" and not eats_spaces

    def cutter(self, splitter: Any) -> Cutter:
        """How to slice long texts; ``splitter`` is the library's pre-tokenizer."""
        odd = any(entry["lstrip"] or entry["rstrip"] or entry["single_word"] for entry in self.loose.values())
        repeated = self.prefixing != "none" and len(self.splitters) > 1  # It puts a space before each piece.
        if odd or repeated or any(leaf["type"] not in _LOCAL and leaf != _SPACES for leaf in self.normalizers):
            return Cutter(None)
        if self.kind == "sentencepiece":
            names = [name for token, name in enumerate(self.names) if token not in self.special | self.loose]
            if any(map(_INNER_SPACE.search, names)):
                return Cutter(None)
            splitter = segmentation.before_spaces(not any("\n" in name and name != "\n" for name in names))
        contents = [re.escape(entry["content"]) for entry in self.loose.values()]
        return Cutter(splitter, bool(self.normalizers), re.compile("|".join(contents)) if contents else None)


def leaves(part: Part | None) -> list[Part]:
    """The normalizers, pre-tokenizers, post-processors or decoders in ``part``, those of sequences one by one."""
    if part is None:
        return []
    if part["type"] != "Sequence":
        return [part]
    (members,) = (value for key, value in part.items() if key != "type")
    return [leaf for member in members for leaf in leaves(member)]


def _scheme(metaspace: Part) -> str:
    old = "always" if metaspace.get("add_prefix_space", True) else "never"
    return str(metaspace.get("prepend_scheme", old))


def _indent(decoder: Part) -> int:
    """How many spaces at the beginning of a text a decoder takes away."""
    if decoder["type"] == "Strip" and decoder["content"] == " ":
        return int(decoder["start"])
    return int(decoder["type"] == "Metaspace" and _scheme(decoder) != "never")


def _without_prefix(part: Part | None) -> Part | None:
    """The same normalizer or pre-tokenizer without the space that it puts before a text."""
    kind = part and part["type"]
    if part is None or kind == "Prepend":
        return None
    if kind == "Sequence":
        ((key, members),) = ((key, value) for key, value in part.items() if key != "type")
        return part | {key: [kept for member in members if (kept := _without_prefix(member))]}
    if kind == "ByteLevel":
        return part | {"add_prefix_space": False}
    if kind == "Metaspace":
        rest = {key: value for key, value in part.items() if key != "add_prefix_space"}
        return rest | {"prepend_scheme": "never"}
    return part
