"""Where prepared tokens are kept: made once, found again, and no reason to stop where that is not possible."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import SMALL

from lookback.data import open_corpus, packed
from lookback.session import cache, train
from lookback.session.cache import tokens_of
from lookback.tokenizers import Tokenizer, learn


@pytest.fixture
def tokenizer(documents: Path) -> Tokenizer:
    return learn(open_corpus(documents).documents, "character")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOKBACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_place_is_the_persons_choice_or_the_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKBACK_CACHE", "/somewhere/else")
    assert cache.root() == Path("/somewhere/else")
    monkeypatch.delenv("LOOKBACK_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.root() == Path("/xdg/lookback")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.root() == Path.home() / ".cache" / "lookback"


def test_tokens_are_made_once(
    documents: Path, tokenizer: Tokenizer, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(documents)
    made = tokens_of(corpus, tokenizer, "position", 0.1)
    assert made.folder.is_relative_to(empty_cache)

    def never(self: Tokenizer, text: str) -> None:
        raise AssertionError("tokenized again")

    with monkeypatch.context() as patch:
        patch.setattr(Tokenizer, "ids", never)
        found = tokens_of(open_corpus(documents), tokenizer, "position", 0.1)
        with pytest.raises(AssertionError, match="again"):
            tokens_of(corpus, tokenizer, "position", 0.2)
    assert found.folder == made.folder
    assert found.train.ids.tolist() == made.train.ids.tolist()


def test_other_text_tokens_or_splits_are_kept_apart(
    documents: Path, tokenizer: Tokenizer, empty_cache: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(documents.read_bytes()[: documents.stat().st_size // 2].rpartition(b"\n")[0] + b"\n")
    unknown = learn(open_corpus(documents).documents, "character", allow_unknown=True)
    asked: list[tuple[Path, Tokenizer, str, float]] = [
        (documents, tokenizer, "position", 0.1),
        (documents, tokenizer, "document", 0.1),
        (documents, tokenizer, "none", 0.1),
        (documents, tokenizer, "position", 0.2),
        (documents, unknown, "position", 0.1),
        (other, tokenizer, "position", 0.1),
    ]
    folders = {tokens_of(open_corpus(source), *rest).folder for source, *rest in asked}  # type: ignore[arg-type]
    assert len(folders) == len(asked)


def test_training_uses_it(documents: Path, empty_cache: Path, tmp_path: Path) -> None:
    train(documents, model="gru", out=tmp_path / "run", steps=1, **SMALL)
    assert list(empty_cache.rglob("train.bin"))
    assert not list((tmp_path / "run").rglob("*.bin"))


def fall_back(documents: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tokens come out right, from a temporary folder that goes when the process ends."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    at_exit: list[Callable[[], Any]] = []
    monkeypatch.setattr("atexit.register", lambda work, *args, **kw: at_exit.append(lambda: work(*args, **kw)))
    prepared = tokens_of(open_corpus(documents), tokenizer, "position", 0.1)
    assert prepared.folder.parent == tmp_path
    assert prepared.folder.name.startswith("lookback-")
    assert len(prepared.train) > 100
    for work in at_exit:
        work()
    assert not prepared.folder.exists()


@pytest.mark.parametrize("place", ["a file", "below a file"])
def test_a_place_that_cannot_be_a_folder(
    place: str, documents: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("LOOKBACK_CACHE", str(tmp_path / ("file" if place == "a file" else "file/below")))
    fall_back(documents, tokenizer, monkeypatch, tmp_path)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("what", ["mkdir", "open"])
def test_a_place_that_may_not_be_written_to(
    what: str,
    code: int,
    documents: Path,
    tokenizer: Tokenizer,
    empty_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether the folder cannot be made, or stands and takes no file (as root no file mode would say so)."""
    real = getattr(Path, what)

    def closed(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.is_relative_to(empty_cache) and (what == "mkdir" or "wb" in args):
            raise OSError(code, os.strerror(code), str(self))
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, what, closed)
    fall_back(documents, tokenizer, monkeypatch, tmp_path)


def test_a_read_only_place_that_holds_the_tokens_is_read(
    documents: Path, tokenizer: Tokenizer, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tokens_of(open_corpus(documents), tokenizer, "position", 0.1)

    def closed(*args: Any, **kwargs: Any) -> Any:
        raise PermissionError(errno.EACCES, "closed")

    monkeypatch.setattr(packed, "write_aside", closed)
    assert tokens_of(open_corpus(documents), tokenizer, "position", 0.1).folder == made.folder


def test_a_full_disk_is_said_and_not_worked_around(
    documents: Path, tokenizer: Tokenizer, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tokens_of(open_corpus(documents), tokenizer, "position", 0.1)
    assert not [path for path in empty_cache.rglob("*") if path.is_file()]
