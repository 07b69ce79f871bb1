"""Splitting and packing: the layout of the stream, reuse, and what happens when things go wrong half-way."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback import files
from lookback.data import Corpus, Prepared, TokenFile, open_corpus, prepare
from lookback.errors import InputError
from lookback.tokenizers import Tokenizer, learn

SHAKESPEARE = Path(__file__).parents[2] / "../shared/data/tinyshakespeare/input.txt"


def folder_of(folder: Path, texts: list[str]) -> Corpus:
    folder.mkdir()
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "documents.jsonl").write_text(lines)
    return open_corpus(folder)


def characters(corpus: Corpus) -> Tokenizer:
    return learn(corpus.documents, "character")


def documents(tokens: TokenFile | None, tokenizer: Tokenizer) -> list[str]:
    """The documents of a stream, after a look at its layout."""
    assert tokens is not None
    ids = tokens.ids.tolist()
    assert ids[0] == tokenizer.end
    starts = [place for place, token in enumerate(ids) if token == tokenizer.end]
    stops = starts[1:] if starts[-1] == len(ids) - 1 else [*starts[1:], len(ids)]
    return [tokenizer.decode(ids[start + 1 : stop]) for start, stop in zip(starts, stops, strict=False)]


def numbers(tokens: TokenFile | None) -> tuple[int, int, int]:
    assert tokens is not None
    return len(tokens), tokens.documents, tokens.text_bytes


@pytest.fixture
def novel(tmp_path: Path) -> Corpus:
    (tmp_path / "novel.txt").write_text("床前明月光" * 20)
    return open_corpus(tmp_path / "novel.txt")


def test_one_document_is_cut_by_position_and_only_its_end_is_closed(tmp_path: Path, novel: Corpus) -> None:
    tokenizer = characters(novel)
    prepared = prepare(novel, tokenizer, hold_out="position", folder=tmp_path / "data")
    train, held_out = prepared.train, prepared.held_out
    assert held_out is not None
    assert documents(train, tokenizer) == ["床前明月光" * 18]
    assert documents(held_out, tokenizer) == ["床前明月光" * 2]
    assert numbers(train) == (1 + 90, 1, 3 * 90) and train.ids[-1] != tokenizer.end
    assert numbers(held_out) == (1 + 10 + 1, 1, 3 * 10) and held_out.ids[-1] == tokenizer.end
    assert {file.name for file in (tmp_path / "data").iterdir()} == {"train.bin", "held_out.bin", "data.json"}
    assert train.ids.dtype == np.uint16 and (tmp_path / "data/train.bin").stat().st_size == 2 * 91


@pytest.mark.skipif(not SHAKESPEARE.exists(), reason="../shared is absent")
def test_the_usual_split_of_tinyshakespeare(tmp_path: Path) -> None:
    corpus = open_corpus(SHAKESPEARE)
    tokenizer = characters(corpus)
    prepared = prepare(corpus, tokenizer, hold_out="position", folder=tmp_path)
    assert numbers(prepared.train) == (1_003_854 + 1, 1, 1_003_854)
    assert numbers(prepared.held_out) == (111_540 + 2, 1, 111_540)
    text = SHAKESPEARE.read_text()
    assert tokenizer.decode(prepared.train.ids[:100]) == text[:99]
    assert documents(prepared.held_out, tokenizer) == [text[-111_540:]]


@given(
    texts=st.lists(st.text(alphabet="ab月😀", min_size=2, max_size=30), min_size=2, max_size=8),
    hold_out=st.sampled_from(["position", "document", "none"]),
    fraction=st.sampled_from([0.01, 0.1, 0.5, 0.99]),
)
def test_every_document_is_on_one_side_whole(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], hold_out: str, fraction: float
) -> None:
    folder = tmp_path_factory.mktemp("split")
    corpus = folder_of(folder / "corpus", texts)
    tokenizer = characters(corpus)
    prepared = prepare(corpus, tokenizer, hold_out=hold_out, fraction=fraction, folder=folder / "data")
    parts = [prepared.train] + ([prepared.held_out] if prepared.held_out else [])
    assert (len(parts) == 1) == (hold_out == "none")
    assert all(part.ids[-1] == tokenizer.end for part in parts)
    found = [documents(part, tokenizer) for part in parts]
    assert all(found)
    assert sorted(text for part in found for text in part) == sorted(texts)
    assert [part.documents for part in parts] == [len(part) for part in found]
    assert [part.text_bytes for part in parts] == [len("".join(part).encode()) for part in found]
    if hold_out == "position":
        assert found[0] + found[1] == texts
        # One document fewer held out would be too few, unless there must be one.
        cut = int(len("".join(texts)) * (1 - fraction))
        assert len(found[0]) == 1 or len("".join(found[0])) <= cut
        assert len(found[1]) == 1 or len("".join(found[0]) + found[1][0]) > cut


def test_documents_are_picked_by_their_number_about_as_many_as_asked(tmp_path: Path) -> None:
    corpus = folder_of(tmp_path / "corpus", [f"{number:04}" for number in range(2000)])
    tokenizer = characters(corpus)
    prepared = prepare(corpus, tokenizer, hold_out="document", fraction=0.1, folder=tmp_path / "data")
    held_out = documents(prepared.held_out, tokenizer)
    assert 150 < len(held_out) < 250  # binomial: 200, standard deviation 13.4
    assert held_out == sorted(held_out) and int(held_out[len(held_out) // 2]) in range(800, 1200)
    longer = folder_of(tmp_path / "longer", [f"{number:04}" for number in range(2500)])
    again = prepare(longer, tokenizer, hold_out="document", fraction=0.1, folder=tmp_path / "data2")
    assert documents(again.held_out, tokenizer)[: len(held_out)] == held_out


@pytest.mark.parametrize(
    ("hold_out", "fraction", "says"),
    [
        ("document", 0.1, "use --hold-out position"),
        ("random", 0.1, "use one of: position, document, none"),
        ("position", 0.0, "not between 0 and 1"),
        ("position", 1.0, "not between 0 and 1"),
        ("position", float("nan"), "not between 0 and 1"),
        ("position", 1e-18, "too small"),
        ("position", 0.995, "too small"),
    ],
)
def test_splits_that_cannot_be_leave_nothing(
    tmp_path: Path, novel: Corpus, hold_out: str, fraction: float, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        prepare(novel, characters(novel), hold_out=hold_out, fraction=fraction, folder=tmp_path / "data")
    assert not (tmp_path / "data").exists() or not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize(("text", "train", "held_out"), [("月", 0, 1), ("月光", 1, 1)])
def test_too_small_a_corpus_says_how_small(tmp_path: Path, text: str, train: int, held_out: int) -> None:
    (tmp_path / "a.txt").write_text(text)
    corpus = open_corpus(tmp_path / "a.txt")
    says = f"{train} of its tokens would be trained on and {held_out} held out, and at least 2 and 1 are needed"
    with pytest.raises(InputError, match=says):
        prepare(corpus, characters(corpus), hold_out="position", folder=tmp_path / "data")


def test_a_large_vocabulary_takes_four_bytes(tmp_path: Path, novel: Corpus) -> None:
    tokenizer = characters(novel)
    for size, width in ((1 << 16, 2), ((1 << 16) + 1, 4)):
        tokenizer.size = size
        prepared = prepare(novel, tokenizer, hold_out="position", folder=tmp_path / str(size))
        assert prepared.train.ids.dtype.itemsize == width
        assert documents(prepared.train, tokenizer) == ["床前明月光" * 18]


def test_progress_goes_up_to_one(tmp_path: Path) -> None:
    corpus = folder_of(tmp_path / "corpus", ["one", "two", "three", "four"])
    seen: list[float] = []
    for _ in range(2):
        prepare(corpus, characters(corpus), hold_out="none", folder=tmp_path / "data", progress=seen.append)
        assert seen == sorted(seen) and seen[-1] == 1.0
        seen.clear()


class Reuse:
    """Prepares the same again and tells whether anything was tokenized for it."""

    def __init__(self, folder: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.corpus, self.tokenizer, self.patch = folder, corpus, characters(corpus), monkeypatch

    def __call__(self, corpus: Corpus | None = None, **options: object) -> tuple[Prepared, bool]:
        calls: list[str] = []
        ids = Tokenizer.ids

        def counted(tokenizer: Tokenizer, text: str) -> object:
            calls.append(text)
            return ids(tokenizer, text)

        settings = {"hold_out": "position", "folder": self.folder} | options
        tokenizer = settings.pop("tokenizer", self.tokenizer)
        with self.patch.context() as patch:
            patch.setattr(Tokenizer, "ids", counted)
            prepared = prepare(corpus or self.corpus, tokenizer, **settings)  # type: ignore[arg-type]
        return prepared, bool(calls)


@pytest.fixture
def reuse(tmp_path: Path, novel: Corpus, monkeypatch: pytest.MonkeyPatch) -> Reuse:
    reuse = Reuse(tmp_path / "data", novel, monkeypatch)
    assert reuse()[1]
    return reuse


def test_what_did_not_change_is_reused(reuse: Reuse, novel: Corpus) -> None:
    prepared, tokenized = reuse()
    assert not tokenized
    assert numbers(prepared.train) == (91, 1, 270) and numbers(prepared.held_out) == (12, 1, 30)
    assert isinstance(prepared.train.ids, np.memmap)
    assert not reuse(open_corpus(novel.files[0]))[1]


def test_what_changed_is_prepared_anew(reuse: Reuse, novel: Corpus) -> None:
    assert reuse(fraction=0.2)[1]
    prepared, tokenized = reuse(hold_out="none")
    assert tokenized and prepared.held_out is None and numbers(prepared.train) == (102, 1, 300)
    assert not (reuse.folder / "held_out.bin").exists()
    assert reuse()[1]
    assert reuse(tokenizer=learn(novel.documents, "bpe", vocabulary=300))[1]
    assert reuse()[1]
    novel.files[0].write_text("床前明月光" * 19 + "光月明前床")  # as long as before
    prepared, tokenized = reuse(open_corpus(novel.files[0]))
    assert tokenized and documents(prepared.held_out, reuse.tokenizer) == ["床前明月光光月明前床"]


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 3)  # more than data.json's last line break


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0\0")


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("name", ["train.bin", "held_out.bin", "data.json"])
@pytest.mark.parametrize("damage", [cut, lengthen, flip, empty, Path.unlink])
def test_damaged_files_are_noticed(reuse: Reuse, name: str, damage: Callable[[Path], None]) -> None:
    damage(reuse.folder / name)
    prepared, tokenized = reuse()
    assert tokenized
    assert numbers(prepared.train) == (91, 1, 270) and numbers(prepared.held_out) == (12, 1, 30)
    assert not reuse()[1]


@pytest.mark.parametrize("value", [10**18, -1, 0, 91.5, "91", None, [], {}])
@pytest.mark.parametrize("place", ["tokens", "documents", "text_bytes", "dtype", "train"])
def test_wild_records_are_noticed(reuse: Reuse, place: str, value: object) -> None:
    record = json.loads((reuse.folder / "data.json").read_text())
    if place == "train":
        record["train"] = value
    else:
        record["train"][place] = value
    (reuse.folder / "data.json").write_text(json.dumps(record))
    prepared, tokenized = reuse()
    assert tokenized and numbers(prepared.train) == (91, 1, 270)


@pytest.mark.parametrize("content", ["[]", "{}", "3", "null", '"text"', "{", "\udcff"])
def test_records_that_are_no_records_are_noticed(reuse: Reuse, content: str) -> None:
    (reuse.folder / "data.json").write_bytes(content.encode(errors="surrogateescape"))
    assert reuse()[1]


def test_two_runs_with_other_options_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    corpus = folder_of(tmp_path / "corpus", ["one", "two", "three", "four"])
    tokenizer = characters(corpus)
    others: list[Prepared] = []

    def between(_: float) -> None:
        if not others:
            others.append(prepare(corpus, tokenizer, hold_out="none", folder=tmp_path / "data"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.os, "getpid", iter(range(10**6)).__next__)  # as if they were two processes
        prepared = prepare(corpus, tokenizer, hold_out="position", folder=tmp_path / "data", progress=between)
    assert documents(prepared.train, tokenizer) == ["one", "two", "three"]
    assert documents(prepared.held_out, tokenizer) == ["four"]
    assert documents(others[0].train, tokenizer) == ["one", "two", "three", "four"]


def test_a_run_overtaken_by_another_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = folder_of(tmp_path / "corpus", ["one", "two", "three", "four"])
    tokenizer = characters(corpus)
    prepare(corpus, tokenizer, hold_out="position", folder=tmp_path / "data")
    other = (tmp_path / "data/train.bin").read_bytes()
    rename = Path.replace

    def overtaken(self: Path, target: Path) -> Path:
        renamed = rename(self, target)
        if target.name == "data.json":
            (tmp_path / "data/train.bin").write_bytes(other)
        return renamed

    monkeypatch.setattr(Path, "replace", overtaken)
    with pytest.raises(InputError, match="give each run its own folder"):
        prepare(corpus, tokenizer, hold_out="none", folder=tmp_path / "data")


def prepare_once(source: Path, folder: Path) -> tuple[int, int, int]:
    corpus = open_corpus(source)
    return numbers(prepare(corpus, characters(corpus), hold_out="position", folder=folder).train)


def test_processes_that_prepare_the_same_at_once_agree(tmp_path: Path, novel: Corpus) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        found = pool.starmap(prepare_once, [(novel.files[0], tmp_path / "data")] * 9, chunksize=1)
    assert found == [(91, 1, 270)] * 9
    assert {file.name for file in (tmp_path / "data").iterdir()} == {"train.bin", "held_out.bin", "data.json"}


def test_a_full_disk_leaves_what_was_there(reuse: Reuse, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {file.name: file.read_bytes() for file in reuse.folder.iterdir()}

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(files, "_sync", full)
        reuse(fraction=0.2)
    assert {file.name: file.read_bytes() for file in reuse.folder.iterdir()} == before
    assert not reuse()[1]


def test_an_unknown_character_is_refused_and_leaves_what_was_there(reuse: Reuse, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("床前明月夜" * 20)
    with pytest.raises(InputError, match="夜"):
        reuse(open_corpus(tmp_path / "other.txt"))
    assert not reuse()[1]


@pytest.mark.parametrize("kind", ["word", "bpe", "wordpiece"])
def test_other_tokenizers(tmp_path: Path, kind: str) -> None:
    corpus = folder_of(tmp_path / "corpus", ["the moon is bright", "frost on the ground", "I look at the moon"])
    tokenizer = learn(corpus.documents, kind, vocabulary=300)
    prepared = prepare(corpus, tokenizer, hold_out="position", folder=tmp_path / "data")
    expected = [tokenizer.end, *tokenizer.ids("I look at the moon"), tokenizer.end]
    assert prepared.held_out is not None
    assert prepared.held_out.ids.tolist() == expected
    assert prepared.held_out.text_bytes == 18
