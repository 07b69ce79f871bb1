from __future__ import annotations

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.tokenizers import segmentation
from lookback.tokenizers.segmentation import Cutter

han = st.text(st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF))


@pytest.mark.parametrize(("kind", "cap"), [("bpe", 25), ("wordpiece", 24), ("word", 260), ("character", 1)])
def test_pre_tokens_are_capped(kind, cap):
    splitter = segmentation.pre_tokenizer(kind)
    for unit in ("床", "a", "7", ".", " ", "\n", "a'"):
        pieces = splitter.pre_tokenize_str(unit * 2000)
        assert all(stop - start <= cap for _, (start, stop) in pieces)


@pytest.mark.parametrize("kind", ["bpe", "character"])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_reversible_kinds_cover_the_text(kind, text):
    pieces = segmentation.pre_tokenizer(kind).pre_tokenize_str(text)
    assert "".join(text[start:stop] for _, (start, stop) in pieces) == text


@given(text=han)
def test_words_of_chinese_keep_every_character_and_its_place(text):
    found = list(segmentation.words(text, segmentation.pre_tokenizer("word")))
    assert "".join(word for word, _ in found) == text
    assert all(text.startswith(word, start) for word, start in found)


def test_blocks_end_at_breaks_and_have_about_the_size_asked():
    cutter = Cutter(segmentation.pre_tokenizer("bpe"))
    blocks = list(cutter.blocks("one line of text\n" * 1000, 100))
    assert max(map(len, blocks)) <= 120
    assert all(block[0] in " \n" for block in blocks[1:])
    assert max(map(len, cutter.blocks("床前明月光" * 1000, 100))) <= 200


def test_without_jieba_chinese_words_are_refused_and_english_is_not(monkeypatch):
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "jieba":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    segmentation._segmenter.cache_clear()
    splitter = segmentation.pre_tokenizer("word")
    assert [word for word, _ in segmentation.words("No word", splitter)] == ["No", "word"]
    with pytest.raises(InputError, match="pip install jieba"):
        list(segmentation.words("明月", splitter))
