from __future__ import annotations

import subprocess
import sys

import pytest

from lookback.errors import InputError
from lookback.tokenizers import END, MASK, UNKNOWN, learn
from lookback.tokenizers.learning import _sample

ENGLISH = "It was the best of times, it was the worst of times; the naïve rested.\n"
CHINESE = "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n"


def child(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout


def test_characters_are_all_of_them_sorted_by_code_point():
    made = learn(lambda: iter(["b光a", "", "\n\r\t 😀"]), "character", vocabulary=3, sample_bytes=1)
    assert [made.token_text(token) for token in range(made.size)] == [END, MASK, *"\t\n\r ab光😀"]
    assert learn(lambda: iter(["ab"]), "character", allow_unknown=True).token_text(2) == UNKNOWN


@pytest.mark.parametrize("vocabulary", [258, 259, 280])
def test_bpe_has_every_byte_and_the_size_asked_for(vocabulary):
    made = learn(lambda: iter([ENGLISH * 5]), "bpe", vocabulary=vocabulary)
    assert made.size == vocabulary
    assert learn(lambda: iter(["ab"]), "bpe").size == 258  # Nothing in this text is worth a token.


def test_words_are_the_most_frequent_ones():
    made = learn(lambda: iter(["b a a c c c 明月 明月"]), "word", vocabulary=6)
    assert [made.token_text(token) for token in range(made.size)] == [END, MASK, UNKNOWN, "c", "a", "明月"]


@pytest.mark.parametrize("vocabulary", [4, 5, 20, 60])
def test_a_wordpiece_vocabulary_never_exceeds_what_is_asked(vocabulary):
    made = learn(lambda: iter([(ENGLISH + CHINESE) * 5]), "wordpiece", vocabulary=vocabulary)
    assert made.size <= vocabulary
    assert made.size > vocabulary - 2  # A character may need two tokens, "x" and "##x".


def test_wordpiece_leaves_out_the_rarest_characters():
    made = learn(lambda: iter([CHINESE * 400 + "龘"]), "wordpiece")
    names = {made.token_text(token) for token in range(made.size)}
    assert names >= set("床前明月光，。")
    assert "龘" not in names


@pytest.mark.parametrize("kind", ["character", "bpe", "wordpiece", "word"])
def test_the_same_texts_give_the_same_file(kind):
    script = (
        "from lookback.tokenizers import learn\n"
        f"texts = [{ENGLISH!r} * 4, {CHINESE!r} * 4, 'zyxwvutsrqponmlkjihgfedcba jackdaws love my big sphinx']\n"
        f"print(learn(lambda: iter(texts), {kind!r}, vocabulary=330).fingerprint)"
    )
    assert len({child(script) for _ in range(2)}) == 1


@pytest.mark.parametrize("kind", ["character", "bpe", "wordpiece", "word"])
@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_an_error(kind, texts):
    with pytest.raises(InputError, match="no text to learn tokens from"):
        learn(lambda: iter(texts), kind)


@pytest.mark.parametrize("kind", ["wordpiece", "word"])
def test_white_space_has_no_words(kind):
    with pytest.raises(InputError, match="no text to learn tokens from"):
        learn(lambda: iter([" \t  "]), kind)


@pytest.mark.parametrize(("kind", "least"), [("bpe", 258), ("word", 4), ("wordpiece", 4)])
def test_too_small_a_vocabulary_is_an_error(kind, least):
    with pytest.raises(
        InputError, match=f"a vocabulary of {least - 1} is too small for {kind} tokens; ask for {least}"
    ):
        learn(lambda: iter([ENGLISH]), kind, vocabulary=least - 1)


def test_other_mistakes_are_named():
    with pytest.raises(InputError, match="syllable is no kind of token; allowed: character, word, bpe, wordpiece"):
        learn(lambda: iter([ENGLISH]), "syllable")
    with pytest.raises(InputError, match="a sample of 0 bytes"):
        learn(lambda: iter([ENGLISH]), "bpe", sample_bytes=0)
    for kind in ("character", "bpe"):
        with pytest.raises(InputError, match=r"lone surrogate \(U\+DC80\) at position 2"):
            learn(lambda: iter(["ok\udc80"]), kind)


@pytest.mark.parametrize("documents", [1, 7, 1000])
def test_a_sample_is_spread_evenly(documents):
    """Each tenth of the text, marked by its own letter, has its tenth of the sample."""
    text = "".join(letter * 1_000_000 for letter in "abcdefghij")
    step = len(text) // documents + 1
    sample = _sample(lambda: (text[i : i + step] for i in range(0, len(text), step)), 1_000_000, lambda done: None)
    joined = "".join(sample)
    assert len(joined) == pytest.approx(1_000_000, rel=0.02)
    assert [joined.count(letter) for letter in "abcdefghij"] == pytest.approx([100_000] * 10, rel=0.2)


def test_a_sample_larger_than_the_text_is_the_text():
    texts = [CHINESE * 2000, "", ENGLISH]
    assert "".join(_sample(lambda: iter(texts), 10**9, lambda done: None)) == "".join(texts)


@pytest.mark.parametrize("kind", ["character", "bpe"])
def test_the_texts_are_read_twice_at_most_and_progress_rises_to_1(kind):
    reads: list[int] = []
    told: list[float] = []

    def texts():
        reads.append(1)
        return iter([ENGLISH, CHINESE])

    learn(texts, kind, progress=told.append)
    assert len(reads) == (1 if kind == "character" else 2)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


@pytest.mark.slow
def test_100_megabytes_of_chinese_take_little_memory():
    """Learning from, and tokenizing, one document of 100 MB, with no space in its lines."""
    script = """
import random, resource
from itertools import accumulate
from lookback.tokenizers import learn

def text():
    dice = random.Random(0)
    often = list(accumulate(1 / (i + 1) for i in range(50_000)))
    characters = [chr(0x4E00 + i) for i in range(6000)]
    words = ["".join(dice.choices(characters, cum_weights=often[:6000], k=dice.randint(1, 4))) for _ in range(50_000)]
    clauses = ["".join(dice.choices(words, cum_weights=often, k=6)) + "，" for _ in range(300_000)]
    lines = ["".join(dice.choices(clauses, k=10)) + "。\\n" for _ in range(60_000)]
    return "".join(dice.choices(lines, k=220_000))

document = text()
assert len(document.encode()) > 100_000_000
tokenizer = learn(lambda: iter([document]), "bpe")
ids = tokenizer.ids(document)
assert tokenizer.size == 4096 and len(ids) > 10_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
    assert int(child(script)) < 1_500_000_000
