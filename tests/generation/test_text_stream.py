"""Streams of text: whole characters, and nothing of a stop string, however the text is cut into tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.generation import TextStream
from lookback.generation.stopping import checked_stops
from lookback.tokenizers import StreamDecoder, Tokenizer, learn
from lookback.tokenizers.decoding import Pieces


class Pieced:
    """A stand-in for a tokenizer whose token i is the i-th piece of bytes."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def stream(self) -> StreamDecoder:
        return StreamDecoder(Pieces.of_bytes(self.pieces))


def shown(pieces: list[bytes], stops: tuple[str, ...]) -> tuple[list[str], bool]:
    stream = TextStream(Pieced(pieces), stops, [])  # type: ignore[arg-type]
    texts = []
    for token in range(len(pieces)):
        texts.append(stream.push(token))
        if stream.stopped:
            break
    texts.append(stream.finish())
    assert stream.text == "".join(texts)
    return texts, stream.stopped


def first_to_be_complete(text: str, stops: tuple[str, ...]) -> str | None:
    """The text before the stop string that is complete first, read one character at a time."""
    for length in range(len(text) + 1):
        found = [text[:length].find(stop) for stop in stops if stop in text[:length]]
        if found:
            return text[: min(found)]
    return None


def cut(raw: bytes, at: set[int]) -> Iterator[bytes]:
    edges = [0, *sorted(a for a in at if 0 < a < len(raw)), len(raw)]
    for start, stop in pairwise(edges):
        yield raw[start:stop]


@given(
    st.text("ab字😀", max_size=14),
    st.lists(st.text("ab字😀", min_size=1, max_size=4), max_size=3).map(tuple),
    st.sets(st.integers(1, 60)),
)
def test_stops_are_cut_whatever_the_tokens(text: str, stops: tuple[str, ...], at: set[int]) -> None:
    pieces = list(cut(text.encode(), at))
    texts, stopped = shown(pieces, stops)
    right = first_to_be_complete(text, stops)
    assert stopped == (right is not None)
    assert "".join(texts) == (text if right is None else right)


@given(st.text("ab字😀", max_size=14), st.sets(st.integers(1, 60)))
def test_nothing_but_a_piece_of_a_character_is_held_back(text: str, at: set[int]) -> None:
    raw, sent, given_out = text.encode(), 0, ""
    pieces = list(cut(raw, at))
    stream = TextStream(Pieced(pieces), (), [])  # type: ignore[arg-type]
    for token, piece in enumerate(pieces):
        sent += len(piece)
        given_out += stream.push(token)
        assert given_out == raw[:sent].decode(errors="ignore")


def test_only_what_may_become_a_stop_is_held_back() -> None:
    texts, _ = shown([b"a", b"b", b"a", b"b", b"c"], ("abx",))
    assert texts == ["", "", "ab", "", "abc", ""]


def test_the_longest_possible_beginning_is_held_back() -> None:
    assert shown([b"xaa", b"b"], ("aab",)) == (["x", "", ""], True)


@pytest.mark.parametrize("pieces", [[b"xabc"], [b"x", b"a", b"b", b"c"], [b"xa", b"bc"]])
def test_the_stop_that_is_complete_first_counts(pieces: list[bytes]) -> None:
    assert "".join(shown(pieces, ("abc", "b"))[0]) == "xa"
    assert "".join(shown(pieces, ("abc", "bc"))[0]) == "x"


def test_the_prompt_is_gone_on_from_and_not_shown() -> None:
    stream = TextStream(Pieced([b"\xe5\xad", b"\x97", b"!"]), (), [2, 0])  # type: ignore[arg-type]
    assert stream.push(1) == "字"


def test_a_word_gets_its_space_after_the_prompt() -> None:
    tokenizer: Tokenizer = learn(lambda: iter(["the cat sat"]), "word")
    stream = TextStream(tokenizer, (), tokenizer.encode("the cat").ids)
    assert stream.push(tokenizer.encode("sat").ids[0]) == " sat"


def test_stop_strings_are_checked() -> None:
    assert checked_stops("Alice:") == ("Alice:",)
    with pytest.raises(InputError, match="at least one character"):
        checked_stops(["a", ""])
