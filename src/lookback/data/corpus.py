"""A corpus: documents of text out of a file, a folder or a bundled name, read in pieces."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from lookback import assets
from lookback.errors import InputError

ENDINGS = (".jsonl", ".md", ".txt")  # what is read out of a folder
_PIECE = 1 << 20  # bytes read at a time


@dataclass(frozen=True)
class Corpus:
    """Documents of text that can be read again and again; `open_corpus` makes one.

    ``files`` are in the order in which they are read; a bundled corpus has none. A .jsonl file holds one document a
    line, under ``field``; every other file is one document.
    """

    name: str
    files: tuple[Path, ...]
    encoding: str
    field: str
    of_folder: bool

    def documents(self) -> Iterator[str]:
        """The documents from the first on, one at a time; those with nothing but white space are left out.

        Raises InputError for what cannot be read as text, and if there is no document at all.
        """
        empty = True
        for text in self._texts():
            if text and not text.isspace():
                empty = False
                yield text
        if empty:
            raise InputError("{name} has no text in it; give a corpus with some text", name=self.name)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 over the contents and over how they are read; names and dates do not count."""
        digest = hashlib.sha256(json.dumps([self.encoding, self.field]).encode())
        for file in self.files:
            content = hashlib.sha256()
            for piece in _bytes(file):
                content.update(piece)
            digest.update(f"{_is_jsonl(file)} {content.hexdigest()}\n".encode())
        if not self.files:
            for text in self.documents():
                digest.update(hashlib.sha256(text.encode()).digest())
        return digest.hexdigest()

    @cached_property
    def default_hold_out(self) -> Literal["position", "document"]:
        """The end of one file; of a folder or a bundled corpus whole documents, if it has several."""
        if self.files and not self.of_folder:
            return "position"
        return "document" if len(list(islice(self.documents(), 2))) == 2 else "position"

    def _texts(self) -> Iterator[str]:
        if not self.files:
            yield from assets.documents(self.name)
        for file in self.files:
            if _is_jsonl(file):
                yield from _json_documents(file, self.encoding, self.field)
            else:
                yield "".join(_decoded(file, self.encoding))


def open_corpus(source: str | Path, *, encoding: str = "utf-8", field: str = "text") -> Corpus:
    """The corpus in a file, in a folder of .txt, .md and .jsonl files, or of a bundled name (a path of that name wins).

    ``encoding`` is a codec's name (a byte order mark may be there or not); ``field`` names the text in .jsonl lines.
    What is wrong with the path or the options is refused here, what is wrong inside a file when it is read.
    """
    codec = _codec(encoding)
    path = Path(source)
    bundled = str(source) in assets.BUNDLED and not path.exists()
    files = () if bundled else _files(path)
    if bundled and codec != "utf-8":
        raise InputError(
            "{name} is bundled and has no encoding to choose; leave out --encoding {encoding}",
            name=source,
            encoding=encoding,
        )
    if field != "text" and not any(map(_is_jsonl, files)):
        raise InputError(
            "{source} has no .jsonl file to read the field {field} from; leave that option out",
            source=source,
            field=field,
        )
    name = str(source) if bundled else path.resolve().name
    return Corpus(name, files, codec, field, of_folder=path.is_dir())


def _codec(encoding: str) -> str:
    try:
        "a".encode(encoding)  # also refuses codecs that are not for text, such as hex
        codecs.getincrementaldecoder(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:
        raise InputError(
            "{encoding} is no text encoding known here; use for example utf-8, gb18030, big5 or utf-16",
            encoding=encoding,
        ) from error


def _files(path: Path) -> tuple[Path, ...]:
    """The files behind a path, sorted by relative path; InputError if there is none or not a byte in them."""
    try:
        if path.is_dir():
            files = _files_in(path)
        elif path.is_file():
            files = (path,)
        elif path.exists():
            raise InputError("{path} is neither a file nor a folder; give a text file or a folder of them", path=path)
        else:
            raise InputError(
                "{path} does not exist; give a text file, a folder of .txt, .md and .jsonl files or one of: {bundled}",
                path=path,
                bundled=", ".join(assets.BUNDLED),
            )
        if not any(file.stat().st_size for file in files):
            raise InputError("{path} is empty; give a corpus with some text in it", path=path)
    except OSError as error:
        raise _unreadable(error, path) from error
    return files


def _files_in(folder: Path) -> tuple[Path, ...]:
    def stop(error: OSError) -> None:
        raise error

    found = []
    for root, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (name for name in names if not name.startswith("."))
        found += [Path(root, name) for name in visible if name.lower().endswith(ENDINGS)]
    if not found:
        raise InputError(
            "{folder} holds no text; files that end in {endings} count", folder=folder, endings=", ".join(ENDINGS)
        )
    return tuple(sorted(found, key=lambda file: file.relative_to(folder).as_posix()))


def _is_jsonl(file: Path) -> bool:
    return file.name.lower().endswith(".jsonl")


def _unreadable(error: OSError, path: Path) -> InputError:
    return InputError(
        "{path} cannot be read ({reason}); give a file or folder that can be",
        path=error.filename or path,
        reason=error.strerror,
    )


def _bytes(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as handle:
            while piece := handle.read(_PIECE):
                yield piece
    except OSError as error:
        raise _unreadable(error, file) from error


def _decoded(file: Path, encoding: str) -> Iterator[str]:
    """The text of a file in pieces, without a byte order mark; characters that span two pieces stay whole."""
    decoder = codecs.getincrementaldecoder(encoding)()
    wide = b"\0" in "a".encode(encoding)  # utf-16 and utf-32 have zero bytes in ordinary text
    read = 0
    start = True
    for piece in chain(_bytes(file), [b""]):
        read += len(piece)
        if not wide and b"\0" in piece:
            raise _binary(file)
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeError as error:
            # The decoder counts from the start of what it held back and this piece, whose end is all that was read.
            position = read - len(error.object) + error.start if isinstance(error, UnicodeDecodeError) else 0
            raise _undecodable(file, encoding, position) from error
        if "\0" in text:
            raise _binary(file)
        yield text.removeprefix("\ufeff") if start else text
        start = start and not text


def _binary(file: Path) -> InputError:
    return InputError(
        "{path} is a binary file (there are zero bytes in it), not text; if it is UTF-16 text, say --encoding utf-16",
        path=file,
    )


def _undecodable(file: Path, encoding: str, position: int) -> InputError:
    example = "gb18030" if encoding == "utf-8" else "utf-8"
    return InputError(
        "{path} is not {encoding} text at byte {position}; name its encoding, for example --encoding {example}",
        path=file,
        encoding=encoding,
        position=position,
        example=example,
    )


def _json_documents(file: Path, encoding: str, field: str) -> Iterator[str]:
    for number, line in enumerate(_lines(_decoded(file, encoding)), start=1):
        if line and not line.isspace():
            yield _json_document(line, field, file, number)


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    """Lines by "\\n" alone: a JSON string may hold the other characters that `str.splitlines` divides at."""
    unfinished: list[str] = []
    for piece in pieces:
        first, *others = piece.split("\n")
        unfinished.append(first)
        for line in others:
            yield "".join(unfinished)
            unfinished = [line]
    yield "".join(unfinished)


def _json_document(line: str, field: str, file: Path, number: int) -> str:
    where = {"path": file, "line": number}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("line {line} of {path} is not JSON; write one object on each line", **where) from error
    if not isinstance(value, dict):
        raise InputError('line {line} of {path} is not an object; write it as {{"text": "…"}}', **where)
    if field not in value:
        raise InputError(
            "line {line} of {path} has no field {field}; name one that it has with --field: {fields}",
            field=field,
            fields=", ".join(value) or "–",
            **where,
        )
    text = value[field]
    if not isinstance(text, str):
        raise InputError(
            "field {field} in line {line} of {path} is not a string; it must be text", field=field, **where
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "field {field} in line {line} of {path} holds half a character (a lone surrogate); write it whole",
            field=field,
            **where,
        ) from error
    return text
