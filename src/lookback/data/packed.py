"""A corpus as packed files of token ids, prepared once, memory-mapped, and reused while nothing changes.

A folder holds ``train.bin``, ``held_out.bin`` (token ids, little endian, 2 bytes each where the vocabulary allows it,
else 4) and ``data.json``, which says what they were made from and how. Every document stands in a file as its end token
and then its tokens, and one more end token closes the file: a document begins AT its end token, and its last token
predicts the next one. Only a training part that was cut off inside a document has no such close.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from lookback.data.corpus import Corpus
from lookback.data.split import check_hold_out, split
from lookback.errors import InputError
from lookback.files import write_aside
from lookback.tokenizers import Tokenizer

_VERSION = 1
_TRAIN, _HELD_OUT, _RECORD = "train.bin", "held_out.bin", "data.json"


@dataclass(frozen=True)
class TokenFile:
    """Token ids [tokens] on disk; ``text_bytes`` counts the text behind them in UTF-8, end tokens not counted."""

    ids: npt.NDArray[np.unsignedinteger[Any]]
    documents: int
    text_bytes: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Prepared:
    """Both parts of a corpus as token files; ``held_out`` is None if nothing was held out."""

    train: TokenFile
    held_out: TokenFile | None
    folder: Path


def prepare(
    corpus: Corpus,
    tokenizer: Tokenizer,
    *,
    hold_out: str,
    fraction: float = 0.1,
    folder: Path,
    progress: Callable[[float], None] | None = None,
) -> Prepared:
    """Split and tokenize ``corpus`` into ``folder``, or open what is there if it was made from the same by the same.

    ``hold_out`` is "position", "document" or "none" (see `split`); ``progress`` is told the fraction done. Raises
    InputError for options or a corpus that cannot be split so, OSError as the disk does; either leaves what was there.
    """
    check_hold_out(hold_out, fraction)
    origin = {
        "version": _VERSION,
        "corpus": corpus.fingerprint,
        "tokenizer": tokenizer.fingerprint,
        "hold_out": hold_out,
        "fraction": fraction,
    }
    if (prepared := _reopen(folder, origin)) is None:
        _write(corpus, tokenizer, origin, folder, progress or (lambda _: None))
        prepared = _reopen(folder, origin)
    if prepared is None:
        raise InputError("another run is preparing other data in {folder}; give each run its own folder", folder=folder)
    if progress:
        progress(1.0)
    return prepared


class _Writer:
    """One part on its way to disk."""

    def __init__(self, handle: IO[bytes], tokenizer: Tokenizer) -> None:
        self.handle = handle
        self.tokenizer = tokenizer
        self.dtype = np.dtype("<u2" if tokenizer.size <= 1 << 16 else "<u4")
        self.tokens = self.documents = self.text_bytes = self.text_tokens = self.checksum = 0

    def document(self, text: str) -> None:
        ids = self.tokenizer.ids(text)
        self._append(np.array([self.tokenizer.divider]))
        self._append(ids)
        self.documents += 1
        self.text_tokens += len(ids)
        self.text_bytes += sum(len(text[at : at + (1 << 20)].encode()) for at in range(0, len(text), 1 << 20))

    def close(self) -> None:
        self._append(np.array([self.tokenizer.divider]))

    def _append(self, ids: npt.NDArray[np.integer[Any]]) -> None:
        packed = ids.astype(self.dtype)
        self.handle.write(packed.data)
        self.tokens += len(packed)
        self.checksum = zlib.crc32(packed.data, self.checksum)

    def record(self) -> dict[str, object]:
        names = ("tokens", "documents", "text_bytes", "checksum")
        return {"dtype": self.dtype.name} | {name: getattr(self, name) for name in names}


def _write(
    corpus: Corpus, tokenizer: Tokenizer, origin: dict[str, Any], folder: Path, progress: Callable[[float], None]
) -> None:
    """Write the parts aside, then rename them, and the record last: parts are trusted only if the record fits them."""
    held_back = origin["hold_out"] != "none"
    with ExitStack() as stack:
        names = (_TRAIN, _HELD_OUT) if held_back else (_TRAIN,)
        asides = [stack.enter_context(write_aside(folder / name)) for name in names]
        parts = [_Writer(stack.enter_context(aside.open("wb")), tokenizer) for aside in asides]
        _fill(parts, corpus, origin["hold_out"], origin["fraction"], progress)
    records = [part.record() for part in parts] + [None]
    fields = origin | {"vocabulary": tokenizer.size, "train": records[0], "held_out": records[1]}
    with write_aside(folder / _RECORD) as aside:
        aside.write_text(json.dumps(fields | {"digest": _digest(fields)}, indent=2) + "\n", encoding="utf-8")
    if not held_back:
        (folder / _HELD_OUT).unlink(missing_ok=True)


def _fill(
    parts: list[_Writer], corpus: Corpus, hold_out: str, fraction: float, progress: Callable[[float], None]
) -> None:
    lengths = [len(text) for text in corpus.documents()]
    total, done = sum(lengths), 0
    cut_off = False
    for piece in split(corpus, lengths, hold_out, fraction):
        parts[piece.held_out].document(piece.text)
        cut_off |= not piece.ends
        done += len(piece.text)
        progress(done / total)
    for part in parts[cut_off:]:
        part.close()
    _check_sizes(corpus.name, parts)


def _check_sizes(name: str, parts: list[_Writer]) -> None:
    tokens = [part.text_tokens for part in parts] + [0]
    least = len(parts) - 1
    if tokens[0] < 2 or tokens[1] < least:
        raise InputError(
            "{name} is too small: {train} of its tokens would be trained on and {held_out} held out, "
            "and at least 2 and {least} are needed; give more text",
            name=name,
            train=tokens[0],
            held_out=tokens[1],
            least=least,
        )


def _digest(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _reopen(folder: Path, origin: dict[str, Any]) -> Prepared | None:
    """What stands in ``folder`` if it was made from ``origin`` and is whole, else None."""
    try:
        fields = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        digest = fields.pop("digest")
        if digest != _digest(fields) or fields | origin != fields:
            return None
        train = _open_part(folder / _TRAIN, fields["train"])
        held_out = _open_part(folder / _HELD_OUT, fields["held_out"]) if fields["held_out"] else None
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return Prepared(train, held_out, folder)


def _open_part(file: Path, record: dict[str, Any]) -> TokenFile:
    """Raises OSError or ValueError if the file is not the one that ``record`` was written for."""
    ids = np.memmap(file, dtype=np.dtype(record["dtype"]).newbyteorder("<"), mode="r")
    if len(ids) != record["tokens"] or zlib.crc32(ids.data) != record["checksum"]:
        raise ValueError(f"{file} is not what its record says")
    return TokenFile(ids, record["documents"], record["text_bytes"])
