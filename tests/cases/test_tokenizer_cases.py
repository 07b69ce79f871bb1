"""Public bugs of other tools that tokenizers could have: round trip, special tokens in text, characters in streams."""

from __future__ import annotations

import pytest

from lookback.tokenizers import Tokenizer, learn

HARD = [
    "hello !",
    "  leading spaces",
    "\ttabs\t\tand trailing \t",
    "line\r\nline\n\n\rline",
    "mixed 脚本 и кириллица עברית ไทย कि e\u0301 é ﷽",
    "don't <|endoftext|> <|end|> [MASK] [UNK] </s>",
    "\ufeffBOM \x00 \u200b \u3000 \u00a0",
    "👩‍👩‍👧 😀",
]


@pytest.fixture(scope="module", params=["character", "bpe"])
def reversible(request, tmp_path_factory) -> Tokenizer:
    """Learnt from the texts, saved and opened again."""
    folder = tmp_path_factory.mktemp(request.param)
    learn(lambda: iter(HARD), request.param, vocabulary=300).save(folder)
    return Tokenizer.load(folder)


@pytest.mark.parametrize("text", HARD)
def test_round_trip(reversible, text):
    assert reversible.reversible
    assert reversible.decode(reversible.encode(text).ids).encode() == text.encode()
    assert reversible.decode(reversible.ids(text)).encode() == text.encode()


@pytest.mark.parametrize("kind", ["word", "wordpiece"])
def test_what_cannot_come_back_is_marked(kind):
    made = learn(lambda: iter(HARD), kind)
    assert not made.reversible
    assert made.decode(made.ids("hello  !")) != "hello  !"


@pytest.mark.parametrize("kind", ["character", "bpe", "word", "wordpiece"])
def test_special_tokens_in_text_are_plain_text(kind, tmp_path):
    texts = ["<|end|>", "[MASK]", "[UNK]", "a<|end|>b [MASK]"]
    learn(lambda: iter(texts), kind, vocabulary=300).save(tmp_path)
    made = Tokenizer.load(tmp_path)
    for text in texts:
        for ids in (made.encode(text).ids, made.ids(text).tolist()):
            assert not {made.end, made.mask, made.unknown} & set(ids)
        assert made.decode(made.ids(text)).replace(" ", "") == text.replace(" ", "")


def bytes_only() -> Tokenizer:
    return learn(lambda: iter(["x"]), "bpe")


def test_an_emoji_of_four_tokens_streams_whole():
    made = bytes_only()
    ids = made.encode("😀").ids
    assert len(ids) == 4
    stream = made.stream()
    assert [stream.push(token) for token in ids] == ["", "", "", "😀"]
    assert stream.finish() == ""


def test_chinese_of_three_tokens_streams_whole():
    made = bytes_only()
    stream = made.stream()
    assert [stream.push(token) for token in made.ids("你好")] == ["", "", "你", "", "", "好"]


def test_a_limit_inside_a_character_ends_cleanly():
    made = bytes_only()
    ids = made.encode("a😀").ids[:3]
    stream = made.stream()
    assert [stream.push(token) for token in ids] == ["a", "", ""]
    assert stream.finish() == "\ufffd"
    assert made.decode(ids) == "a\ufffd"
