"""Corpora: what is read, in which order, and what is refused in which words."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.data import corpus as room
from lookback.data import open_corpus
from lookback.errors import InputError

POEM = "床前明月光，\r\n疑是地上霜。\n"


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(source: str | Path, **options: str) -> list[str]:
    return list(open_corpus(source, **options).documents())


def refusal(source: str | Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        read(source, **options)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


@pytest.mark.parametrize("name", ["poem.txt", "poem.md", "poem", "poem.TXT"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_file_is_one_document_byte_for_byte_without_its_mark(tmp_path: Path, name: str, mark: bytes) -> None:
    file = written(tmp_path / name, mark + POEM.encode())
    corpus = open_corpus(file)
    assert list(corpus.documents()) == list(corpus.documents()) == [POEM]
    assert corpus.name == name


def test_only_the_mark_at_the_start_is_left_out(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.txt", "\ufeff月\ufeff\ufeff光")) == ["月\ufeff\ufeff光"]


def test_one_character_opens(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.txt", "月")) == ["月"]


def test_a_folder_is_read_in_the_order_of_its_relative_paths_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/10.md", "a.txt", "c.TXT", "b.txt"):
        written(tmp_path / name, name)
    written(tmp_path / "b/lines.jsonl", '{"text": "one"}\n\n{"text": "two", "more": 1}\r\n')
    for name in (".hidden.txt", ".git/x.txt", "b/.cache/x.txt", "picture.png", "noending"):
        written(tmp_path / name, "not to be read")
    written(tmp_path / "b/empty.txt", "")
    written(tmp_path / "b/blank.txt", " \n")
    assert read(tmp_path) == ["a.txt", "b.txt", "b/10.md", "b/2.txt", "one", "two", "c.TXT"]


@pytest.mark.parametrize("encoding", ["gb18030", "GBK", "big5", "utf-16", "utf-16-le", "utf_32", "utf-8-sig", "gb2312"])
def test_other_encodings_by_option(tmp_path: Path, encoding: str) -> None:
    text = "山中人，天下大事。" * 9
    assert read(written(tmp_path / "a.txt", text.encode(encoding)), encoding=encoding) == [text]


@given(
    text=st.text(alphabet="ab\n月光😀é\u2028", min_size=1),
    piece=st.integers(1, 9),
    codec=st.sampled_from(["utf-8", "gb18030"]),
)
def test_the_size_of_the_pieces_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, text: str, piece: int, codec: str
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    plain = written(folder / "a.txt", (text + "x").encode(codec))
    lines = written(folder / "b.jsonl", f"{json.dumps({'text': text + 'x'}, ensure_ascii=False)}\n".encode(codec) * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_PIECE", piece)
        assert read(plain, encoding=codec) == [text + "x"]
        assert read(lines, encoding=codec) == [text + "x"] * 3


@given(before=st.text(alphabet="a月😀"), after=st.text(alphabet="a月😀"), piece=st.integers(1, 9))
def test_a_wrong_byte_is_named_with_its_position(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str, piece: int
) -> None:
    file = written(tmp_path_factory.mktemp("wrong") / "a.txt", before.encode() + b"\xff" + after.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_PIECE", piece)
        message = refusal(file)
    assert str(file) in message
    assert f"at byte {len(before.encode())};" in message
    assert message.endswith("--encoding gb18030")


@pytest.mark.parametrize(
    ("content", "encoding", "position"),
    [
        ("月光".encode()[:-1], "utf-8", 3),  # the last character is cut short
        ("月光".encode("gb18030")[:-1], "gb18030", 2),
        (b"ab\xffcd", "gb18030", 2),
        (b"\xff\xfea\x00b\x00\x00\xd8", "utf-16", 6),
        (b"a\x00b\x00", "utf-16", 0),  # has no byte order mark
        ("月光".encode("gb18030"), "utf-8", 0),
    ],
)
def test_undecodable_places_of_several_encodings(tmp_path: Path, content: bytes, encoding: str, position: int) -> None:
    message = refusal(written(tmp_path / "a.txt", content), encoding=encoding)
    assert f"is not {encoding} text at byte {position};" in message


@pytest.mark.parametrize("encoding", ["nonsense", "hex", "rot13", "undefined", "", "utf-8\0"])
def test_unknown_encodings_are_refused_when_opening(tmp_path: Path, encoding: str) -> None:
    file = written(tmp_path / "a.txt", "text")
    with pytest.raises(InputError, match="no text encoding known here"):
        open_corpus(file, encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-32-le"])
def test_binary_files_are_refused_as_such(tmp_path: Path, encoding: str) -> None:
    assert "binary" in refusal(written(tmp_path / "a.txt", b"text\0\0\0\0\0\0\0\0"), encoding=encoding)


def test_utf_16_without_the_option_is_told_which_to_use(tmp_path: Path) -> None:
    assert "--encoding utf-16" in refusal(written(tmp_path / "a.txt", "moon".encode("utf-16")))


def test_missing_empty_and_odd_paths_are_refused_when_opening(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere does not exist; .*tang, shakespeare"):
        open_corpus(tmp_path / "nowhere")
    with pytest.raises(InputError, match="empty"):
        open_corpus(written(tmp_path / "empty.txt", ""))
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"\.jsonl, \.md, \.txt count"):
        open_corpus(tmp_path / "folder")
    written(tmp_path / "folder/a.txt", "")
    with pytest.raises(InputError, match="empty"):
        open_corpus(tmp_path / "folder")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        open_corpus("/dev/null")
    with pytest.raises(InputError, match="cannot be read"):
        open_corpus("x" * 5000)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", "\ufeff"), ("a.txt", " \n\t\r\n"), ("a.jsonl", "\n\n"), ("a.jsonl", '{"text": " "}\n{"text": ""}')],
)
def test_no_text_at_all(tmp_path: Path, name: str, content: str) -> None:
    assert f"{name} has no text" in refusal(written(tmp_path / name, content))


def test_unreadable_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "a.txt", "text")

    def forbidden(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    corpus = open_corpus(file)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", forbidden)
        for use in (lambda: list(corpus.documents()), lambda: corpus.fingerprint):
            with pytest.raises(InputError, match=r"a\.txt cannot be read \(Permission denied\)"):
                use()
    (tmp_path / "broken.txt").symlink_to(tmp_path / "gone")
    assert "broken.txt cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{not json", "line 2 of {path} is not JSON"),
        ("[" * 100_000, "line 2 of {path} is not JSON"),
        ('["a list"]', "line 2 of {path} is not an object"),
        ('{"title": "a", "body": "b"}', "has no field text; name one that it has with --field: title, body"),
        ("{}", "has no field text"),
        ('{"text": 3}', "field text in line 2 of {path} is not a string"),
        ('{"text": "\\ud800"}', "half a character"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, line: str, says: str) -> None:
    file = written(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n{line}\n')
    assert says.format(path=file) in refusal(file)


def test_a_named_field(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", '{"body": "月\\n光", "text": 1}\n{"body": "b"}')
    assert read(file, field="body") == ["月\n光", "b"]


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", "text")
    with pytest.raises(InputError, match=r"no \.jsonl file to read the field body"):
        open_corpus(file, field="body")
    with pytest.raises(InputError, match=r"no \.jsonl file to read the field body"):
        open_corpus("tang", field="body")
    with pytest.raises(InputError, match="tang is bundled and has no encoding"):
        open_corpus("tang", encoding="gb18030")


def test_bundled_names_yield_to_a_path_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bundled = open_corpus("shakespeare")
    assert len(next(bundled.documents())) > 100
    written(tmp_path / "shakespeare", "mine")
    assert read("shakespeare") == ["mine"]
    assert open_corpus("shakespeare").fingerprint != bundled.fingerprint == bundled.fingerprint


def test_the_fingerprint_is_of_contents_and_of_how_they_are_read(tmp_path: Path) -> None:
    first = written(tmp_path / "one/a.txt", "text")
    same = written(tmp_path / "two/other name.md", b"text")
    assert open_corpus(first).fingerprint == open_corpus(same, encoding="UTF8").fingerprint
    written(tmp_path / "two/second.txt", "more")
    lines = written(tmp_path / "a.jsonl", '{"text": "a", "body": "b"}')
    as_text = written(tmp_path / "a.txt", '{"text": "a", "body": "b"}')
    different = [
        open_corpus(first),
        open_corpus(first, encoding="gb18030"),
        open_corpus(tmp_path / "two"),
        open_corpus(lines),
        open_corpus(lines, field="body"),
        open_corpus(as_text),
        open_corpus(written(tmp_path / "joined.txt", "textmore")),
    ]
    assert len({corpus.fingerprint for corpus in different}) == len(different)


def test_the_default_way_to_hold_out(tmp_path: Path) -> None:
    one = written(tmp_path / "folder/a.txt", "text")
    assert open_corpus(one).default_hold_out == "position"
    assert open_corpus(tmp_path / "folder").default_hold_out == "position"  # nothing to choose from
    written(tmp_path / "folder/b.txt", "text")
    assert open_corpus(tmp_path / "folder").default_hold_out == "document"
    assert open_corpus(written(tmp_path / "a.jsonl", '{"text": "a"}\n' * 9)).default_hold_out == "position"
    assert open_corpus("tang").default_hold_out == "document"


def test_a_large_file_is_not_held_more_than_about_twice(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", "床前明月光疑是" * 1_000_000)
    tracemalloc.start()
    (text,) = open_corpus(file).documents()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.3 * 2 * len(text)  # a character of this text takes two bytes in memory
