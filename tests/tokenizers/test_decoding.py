from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.tokenizers.decoding import byte_alphabet, show_bytes

KINDS = ["character", "open", "bpe", "wordpiece", "word"]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_stream_gives_what_decode_gives(tokenizer, kind, data):
    made = tokenizer(kind)
    ids = data.draw(st.lists(st.integers(0, made.size - 1)))
    stream = made.stream()
    pushed = [stream.push(token) for token in ids]
    tail = stream.finish()
    assert "".join(pushed) + tail == made.decode(ids)
    if kind in ("character", "open", "bpe"):
        assert made.decode(ids) == b"".join(map(made.token_bytes, ids)).decode("utf-8", "replace")
    else:
        assert tail == ""
        assert made.decode(ids).replace(" ", "") == b"".join(map(made.token_bytes, ids)).decode()


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_stream_holds_back_an_unfinished_character_only(tokenizer, text):
    made = tokenizer("bpe")
    stream = made.stream()
    raw = shown = b""
    for token in made.ids(text):
        raw += made.token_bytes(token)
        shown += stream.push(token).encode()
        assert raw.startswith(shown)
        assert len(raw) - len(shown) < 4
        assert raw[len(shown) :].decode("utf-8", "ignore") == ""
    assert stream.finish() == ""
    assert shown.decode() == text


def test_special_tokens_do_not_part_a_character_or_words(tokenizer):
    made = tokenizer("bpe")
    pieces = made.ids("\U0001f9ff").tolist()
    assert made.decode([made.end, *pieces[:2], made.mask, *pieces[2:], made.end]) == "\U0001f9ff"
    words = tokenizer("word")
    assert words.decode([words.end, *words.ids("had"), words.end, *words.ids("not"), words.unknown]) == "had not"


@pytest.mark.parametrize("token", [-1, 10_000])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer, token):
    with pytest.raises(InputError, match=f"{token} is no token of this tokenizer; its ids go from 0 to 339"):
        tokenizer("bpe").decode([token])


def test_the_byte_alphabet_is_the_library_s(tokenizer):
    from tokenizers.pre_tokenizers import ByteLevel

    assert set(byte_alphabet()) == set(ByteLevel.alphabet())
    made = tokenizer("bpe")
    assert {made.token_bytes(token) for token in range(made.size)} >= {bytes([byte]) for byte in range(256)}


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("你".encode(), "你"),
        (b"\xe4\xbd", "⟨E4 BD⟩"),
        (b"\xa0\xe5\xa5\xbd\xe4", "⟨A0⟩好⟨E4⟩"),
        (b" \n", " \n"),
        (b"\xff\xfe", "⟨FF FE⟩"),
    ],
)
def test_bytes_are_shown_as_characters_and_pieces(raw, shown):
    assert show_bytes(raw) == shown
