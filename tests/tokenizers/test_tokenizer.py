from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenizers
from lookback.errors import InputError
from lookback.tokenizers import END, MASK, UNKNOWN, Span, Tokenizer
from lookback.tokenizers import tokenizer as module

KINDS = ["character", "open", "bpe", "wordpiece", "word"]
COVERED = "We had not said 'tis 床前明月光，疑是地上霜。\n\r\t 😀e\u0301"
# Every code point, and often those between which the patterns decide.
texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(COVERED + "'slve09.,，_##")))

# What lies beside a cut in a long text: spaces of every number, runs longer than the caps, contractions.
fragments = st.sampled_from(
    ["a", "ab'll", "'l", "'", " ", "   ", "\n", " \n\n ", "光", "月" * 30, "x" * 30, "，", "12345", "é"]
)
broken = st.lists(fragments | st.characters(exclude_categories=["Cs"]), max_size=60).map("".join)


def library_ids(tokenizer: Tokenizer, folder: Path, text: str) -> list[int]:
    tokenizer.save(folder)
    return list(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids)


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first(tokenizer, kind):
    made = tokenizer(kind)
    assert made.kind == ("character" if kind == "open" else kind)
    assert (made.end, made.mask) == (0, 1)
    assert made.unknown == (2 if kind in ("open", "word", "wordpiece") else None)
    names = [END, MASK, UNKNOWN] if made.unknown else [END, MASK]
    assert [made.token_text(token) for token in range(len(names))] == names
    assert [made.token_bytes(token) for token in range(len(names))] == [b""] * len(names)
    assert made.reversible == (kind in ("character", "bpe"))
    assert made.size == len({made.token_text(token) for token in range(made.size)})


@given(text=texts)
def test_bpe_gives_back_every_text(tokenizer, text):
    assert tokenizer("bpe").decode(tokenizer("bpe").ids(text)) == text


@given(text=st.text(st.sampled_from(COVERED)))
def test_characters_give_back_every_covered_text(tokenizer, text):
    made = tokenizer("character")
    ids = made.ids(text)
    assert ids.dtype == np.int32
    assert len(ids) == len(text)
    assert made.decode(ids) == text


@pytest.mark.parametrize("kind", ["open", "bpe", "wordpiece", "word"])
@given(text=broken, block=st.integers(1, 60))
def test_ids_in_blocks_are_those_of_encode(tokenizer, kind, text, block):
    made = tokenizer(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        patch.setattr(module, "_BATCH", 3)
        assert made.ids(text).tolist() == made.encode(text).ids


@pytest.mark.parametrize("kind", ["open", "bpe", "wordpiece", "word"])
@pytest.mark.parametrize(
    "text",
    ["GATTACA" * 3_000, "床前明月光" * 3_000, "a" + " " * 20_000 + "b", "don't we'll\n" * 2_000, "x'll" * 5_000],
)
def test_long_texts_without_breaks(tokenizer, kind, text, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1 << 12)
    assert tokenizer(kind).ids(text).tolist() == tokenizer(kind).encode(text).ids


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_gives_no_ids(tokenizer, kind):
    assert tokenizer(kind).ids("").tolist() == tokenizer(kind).encode("").ids == []
    assert tokenizer(kind).ids("").dtype == np.int32
    assert tokenizer(kind).decode([]) == ""


@given(text=texts)
def test_spans_of_byte_pieces_are_those_of_the_characters_they_touch(tokenizer, text):
    made = tokenizer("bpe")
    owner = [place for place, character in enumerate(text) for _ in character.encode()]
    first = [owner.index(place) for place in range(len(text))] + [len(owner)]
    done = 0
    for token, span in zip(*vars(made.encode(text)).values(), strict=True):
        start, stop = owner[done], owner[done + len(made.token_bytes(token)) - 1] + 1
        assert span == Span(first[start], first[stop], start, stop)
        done += len(made.token_bytes(token))
    assert done == len(owner)


@pytest.mark.parametrize("kind", ["open", "wordpiece", "word"])
@given(text=texts)
def test_spans_of_whole_tokens_hold_their_text(tokenizer, kind, text):
    made = tokenizer(kind)
    encoding = made.encode(text)
    stops = 0
    for token, span in zip(encoding.ids, encoding.spans, strict=True):
        assert span.start >= stops
        stops = span.stop
        assert text.encode()[span.byte_start : span.byte_stop].decode() == text[span.start : span.stop] != ""
        if token != made.unknown:
            assert made.token_bytes(token).decode() == text[span.start : span.stop]


def test_pieces_of_one_character_share_its_span(tokenizer):
    encoding = tokenizer("bpe").encode("a\U0001f9ff")
    assert encoding.spans == [Span(0, 1, 0, 1)] + [Span(1, 5, 1, 2)] * 4
    assert [tokenizer("bpe").token_text(token) for token in encoding.ids] == ["a", "⟨F0⟩", "⟨9F⟩", "⟨A7⟩", "⟨BF⟩"]


def test_wordpiece_keeps_case_and_continues_words(tokenizer):
    made = tokenizer("wordpiece")
    pieces = [made.token_text(token) for token in made.encode("Wesaid 明月").ids]
    assert pieces[0][0] == "W"
    assert all(piece.startswith("##") for piece in pieces[1:-2])
    assert pieces[-2:] == ["明", "月"]
    assert made.decode(made.ids("Wesaid a word, 明月 ,")) == "Wesaid a word,明月,"


def test_words_are_joined_by_space_and_chinese_by_nothing(tokenizer):
    made = tokenizer("word")
    text = "He didn't  say (a) word; 我们用苹果手机看电影。\nWe"
    assert [made.token_text(token) for token in made.ids("我们用苹果手机看电影")] == [
        "我们",
        "用",
        "苹果",
        "手机",
        "看",
        "电影",
    ]
    assert made.decode(made.ids("he didn't  say one; 我们用苹果手机。\nWe")) == "he didn't say one;我们用苹果手机。\nWe"
    assert made.unknown in made.ids(text)


def test_a_character_outside_the_vocabulary_is_named(tokenizer):
    with pytest.raises(InputError, match=r"'龘' \(U\+9F98\) at position 70000 "):
        tokenizer("character").ids("光" * 70_000 + "龘")
    with pytest.raises(InputError, match=r"'龘' \(U\+9F98\) at position 1 "):
        tokenizer("character").encode("光龘")
    assert tokenizer("open").encode("光龘").ids[1] == tokenizer("open").unknown


@pytest.mark.parametrize("kind", KINDS)
def test_lone_surrogates_are_refused(tokenizer, kind):
    for method in (tokenizer(kind).ids, tokenizer(kind).encode):
        with pytest.raises(InputError, match=r"lone surrogate \(U\+D83D\) at position 1"):
            method("光\ud83d")


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_is_the_same(tokenizer, kind, tmp_path):
    made = tokenizer(kind)
    made.save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    loaded = Tokenizer.load(tmp_path)
    fields = ["kind", "size", "end", "mask", "unknown", "reversible", "fingerprint"]
    assert [getattr(loaded, field) for field in fields] == [getattr(made, field) for field in fields]
    text = f"We had 床前明月 {END}{MASK}".translate({ord(c): "a" for c in "[]<>|MASK"} if kind == "character" else {})
    assert loaded.encode(text) == made.encode(text)


@pytest.mark.parametrize("kind", ["open", "bpe", "wordpiece"])
def test_the_library_opens_it_with_the_same_ids(tokenizer, kind, tmp_path):
    text = f"We  had, {END} {MASK}{UNKNOWN} 床前明月光\r\n\t😀 naïve e\u0301 "
    assert library_ids(tokenizer(kind), tmp_path, text) == tokenizer(kind).encode(text).ids


def test_the_library_needs_chinese_words_apart(tokenizer, tmp_path):
    made = tokenizer("word")
    apart = f"We had 'tis {END} 我们 用 苹果 手机 看 电影 。\n"
    assert library_ids(made, tmp_path, apart) == made.encode(apart.replace(" 用 苹果 手机 ", "用苹果手机")).ids


@pytest.mark.parametrize("kind", ["open", "bpe", "wordpiece"])
@pytest.mark.parametrize("model_type", [None, "gpt2", "bert", "llama", "qwen3"])
def test_transformers_opens_it_offline_with_the_same_ids(tokenizer, kind, model_type, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a request leaves the machine")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    made = tokenizer(kind)
    made.save(tmp_path)
    if model_type:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    text = f"We  had, {END} {MASK}{UNKNOWN} 床前明月光\r\n\t😀 naïve e\u0301 "
    for opened in (AutoTokenizer.from_pretrained(tmp_path), PreTrainedTokenizerFast.from_pretrained(tmp_path)):
        assert opened(text)["input_ids"] == made.encode(text).ids
        assert (opened.eos_token_id, opened.mask_token_id, opened.unk_token_id) == (made.end, made.mask, made.unknown)
        assert len(opened) == made.size
        if made.reversible:
            assert opened.decode([made.end, *made.ids(text), made.mask], skip_special_tokens=True) == text


def damaged(contents: str) -> dict[str, str]:
    return {
        "empty": "",
        "cut short": contents[: len(contents) // 2],
        "not a tokenizer": "{}",
        "a list": "[]",
        "no end token": contents.replace(END, "x"),
        "gaps": contents.replace('"W":', '"W":9'),
    }


@pytest.mark.parametrize("how", damaged("{}"))
def test_a_damaged_file_is_one_sentence(tokenizer, how, tmp_path):
    tokenizer("character").save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(damaged(path.read_text("utf-8"))[how], "utf-8")
    with pytest.raises(InputError, match=r"tokenizer.json is damaged or of no known kind") as caught:
        Tokenizer.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf8_missing_or_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"has no tokenizer.json, no vocab.txt"):
        Tokenizer.load(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="damaged"):
        Tokenizer.load(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="can't be read"):
        Tokenizer.load(tmp_path)
