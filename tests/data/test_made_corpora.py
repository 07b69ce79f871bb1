"""Made corpora: the answer follows from its source, and from nothing else."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.data import open_corpus, prepare
from lookback.data.made import (
    SENSES,
    VERBS,
    Made,
    ambiguous_word,
    associative_recall,
    ba_sentences,
    copy,
    three_roles,
    three_values,
)
from lookback.data.made.made import SYMBOLS
from lookback.errors import InputError
from lookback.tokenizers import learn

MAKERS: dict[str, Callable[[int, int], Made]] = {
    "ba_sentences near": lambda seed, count: ba_sentences(5, seed=seed, count=count),
    "ba_sentences far": lambda seed, count: ba_sentences(100, seed=seed, count=count),
    "ambiguous_word": lambda seed, count: ambiguous_word(seed=seed, count=count),
    "associative_recall": lambda seed, count: associative_recall(6, seed=seed, count=count),
    "copy": lambda seed, count: copy(7, seed=seed, count=count),
    "three_values": lambda seed, count: three_values(seed=seed, count=count),
    "three_roles": lambda seed, count: three_roles(seed=seed, count=count),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
NEXT_CHARACTER = ["ba_sentences near", "ba_sentences far", "associative_recall", "copy"]


@every
def test_a_made_corpus_is_a_pure_function_of_its_arguments(make: Callable[[int, int], Made]) -> None:
    assert make(3, 50) == make(3, 50)
    assert make(3, 50).documents != make(4, 50).documents


@every
@pytest.mark.parametrize("count", [1, 2, 33])
def test_questions_lie_in_their_documents_and_have_candidates(make: Callable[[int, int], Made], count: int) -> None:
    made = make(5, count)
    assert len(made.documents) == len(made.questions) == count
    assert 0 < made.chance < 1
    for text, questions in zip(made.documents, made.questions, strict=True):
        assert len(questions) == len(made.candidates)
        for question, candidates in zip(questions, made.candidates, strict=True):
            assert question.answer in candidates and len(set(candidates)) == len(candidates)
            assert 0 <= question.position < len(text) and 0 <= question.source < len(text)


@pytest.mark.parametrize("name", NEXT_CHARACTER)
def test_in_next_character_tasks_the_answer_comes_next(name: str) -> None:
    made = MAKERS[name](5, 40)
    for text, questions in zip(made.documents, made.questions, strict=True):
        for question in questions:
            assert text[question.position + 1] == question.answer
            assert question.source <= question.position


@every
def test_answers_are_spread_over_the_candidates(make: Callable[[int, int], Made]) -> None:
    made = make(5, 1600)
    for number, candidates in enumerate(made.candidates):
        counts = Counter(questions[number].answer for questions in made.questions)
        share = 1600 / len(candidates)
        twice = {"手机": 2} if "手机" in candidates else {}  # two of the words can mean a phone
        if twice:
            share = 1600 / (len(candidates) + 1)
        for candidate in candidates:
            expected = share * twice.get(candidate, 1)
            assert abs(counts[candidate] - expected) < 5 * expected**0.5 + 1


@every
def test_the_ordinary_tools_read_it(make: Callable[[int, int], Made], tmp_path: Path) -> None:
    made = make(5, 40)
    corpus = open_corpus(made.write(tmp_path / "made"))
    assert tuple(corpus.documents()) == made.documents
    tokenizer = learn(corpus.documents, "character")
    prepared = prepare(corpus, tokenizer, hold_out="document", folder=tmp_path / "data")
    assert prepared.held_out is not None and prepared.train.documents + prepared.held_out.documents == 40
    # A character is a token, so that places in the text are places in the ids.
    for text, questions in zip(made.documents, made.questions, strict=True):
        for question in questions:
            assert tokenizer.decode([tokenizer.ids(text)[question.source]]) == text[question.source]
    first = json.loads((tmp_path / "made/made.jsonl").read_text().splitlines()[0])
    assert first["questions"][0] == made.questions[0][0]._asdict()


# 把-sentences


@given(distance=st.integers(2, 256), seed=st.integers(0, 10**6))
def test_the_verb_stands_exactly_as_far_as_asked_from_the_word_that_decides_it(distance: int, seed: int) -> None:
    made = ba_sentences(distance, seed=seed, count=8)
    assert {questions[0].answer for questions in made.questions} == set(VERBS.values())  # balanced
    for text, (question,) in zip(made.documents, made.questions, strict=True):
        deciding, middle = text[question.source], text[question.source + 1 : question.position + 1]
        assert question.position + 1 - question.source == distance
        assert text[question.position + 1 :] == VERBS[deciding] + "了。" == question.answer + "了。"
        assert text[: question.source].count("把") == 1 and middle.startswith("的")
        assert not set(text[: question.source] + middle) & {*VERBS, *VERBS.values()}
        if "都" in middle:
            items = middle[1:-1].replace("和弟弟一起", "").replace("和", "、").split("、")
            assert len(items) == len(set(items)) >= 2 and all(items)
        assert ("都" in middle) == (distance > 11)


def test_every_distance_works() -> None:
    for distance in range(2, 257):
        made = ba_sentences(distance, seed=1, count=1)
        assert made.questions[0][0].position + 1 - made.questions[0][0].source == distance


def test_the_running_sentence_counts_distance_the_same_way() -> None:
    sentence = "我把昨天在图书馆借的那本书还了"
    assert (sentence.index("还") - sentence.index("把"), sentence.index("把"), len(sentence)) == (12, 1, 15)
    assert VERBS["借"] == "还"


def backoff_accuracy(train: Made, test: Made, order: int) -> float:
    """How often the longest known suffix of up to ``order`` characters before the verb foretells it."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def contexts(made: Made) -> list[tuple[list[str], str]]:
        found = []
        for text, (question,) in zip(made.documents, made.questions, strict=True):
            stop = question.position + 1
            found.append(([text[max(0, stop - n) : stop] for n in range(order, -1, -1)], question.answer))
        return found

    for suffixes, answer in contexts(train):
        for suffix in suffixes:
            counts[suffix][answer] += 1
    right = 0
    for suffixes, answer in contexts(test):
        known = next(suffix for suffix in suffixes if suffix in counts)
        right += max(sorted(counts[known]), key=counts[known].__getitem__) == answer
    return right / len(test.documents)


@pytest.mark.parametrize("distance", [17, 24, 64, 256])
def test_the_last_16_characters_say_nothing_of_the_verb(distance: int) -> None:
    train, test = (ba_sentences(distance, seed=seed, count=2400) for seed in (1, 2))
    accuracy = backoff_accuracy(train, test, order=16)
    error = (train.chance * (1 - train.chance) / 2400) ** 0.5
    assert abs(accuracy - train.chance) < 4 * error


@pytest.mark.parametrize("distance", [2, 3, 4, 6, 9, 12, 16])
def test_what_stands_between_says_nothing_and_the_word_before_it_everything(distance: int) -> None:
    train, test = (ba_sentences(distance, seed=seed, count=2400) for seed in (1, 2))
    error = (train.chance * (1 - train.chance) / 2400) ** 0.5
    assert abs(backoff_accuracy(train, test, order=distance - 1) - train.chance) < 4 * error
    if distance <= 4:  # further off, hardly a suffix comes twice
        assert backoff_accuracy(train, test, order=distance) > 0.8


def test_the_n_gram_model_would_notice_a_leak() -> None:
    def leaky(seed: int) -> Made:
        made = ba_sentences(64, seed=seed, count=2400)
        random = Random(seed)
        questions = tuple(
            ((question._replace(answer="还" if "碗" in text and random.random() < 0.5 else question.answer)),)
            for text, (question,) in zip(made.documents, made.questions, strict=True)
        )
        return Made(made.documents, questions, made.candidates, made.chance)

    accuracy = backoff_accuracy(leaky(1), leaky(2), order=16)
    assert accuracy > 1 / 8 + 4 * (7 / 64 / 2400) ** 0.5


def test_distances_have_sentences_of_their_own() -> None:
    near, far = (ba_sentences(distance, seed=1, count=100).documents for distance in (60, 61))
    assert sum(a[:20] == b[:20] for a, b in zip(near, far, strict=True)) < 5


# the ambiguous word


def test_only_what_follows_tells_the_sense() -> None:
    made = ambiguous_word(seed=1, count=400)
    senses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, (at_word, at_end) in zip(made.documents, made.questions, strict=True):
        assert at_word.answer == at_end.answer and at_end.position == len(text) - 1 and text[-1] == "。"
        assert at_word.position < at_word.source == at_end.source < at_end.position
        word = next(word for word in SENSES if text[: at_word.position + 1].endswith(word))
        assert text.count(word) == 1
        first = next(
            phrase for phrase in SENSES[word][at_word.answer] if text[at_word.source :].startswith(phrase + "，")
        )
        assert text[at_word.source + len(first) + 1 : -1] in set(SENSES[word][at_word.answer]) - {first}
        senses[text[: at_word.source]][at_word.answer] += 1
    # Up to where the senses part, every text occurs as often in the one sense as in the other.
    for prefix, counts in senses.items():
        assert len(counts) == 2 and len(set(counts.values())) == 1, prefix


def test_the_senses_of_a_word_share_no_phrase_and_no_phrase_names_a_word() -> None:
    for word, senses in SENSES.items():
        (one, other) = senses.values()
        assert len(set(one)) == len(one) >= 10 and len(set(other)) == len(other) >= 10
        assert not set(one) & set(other)
        assert not any(ambiguous in phrase for ambiguous in SENSES for phrase in one + other), word


def test_words_can_be_chosen() -> None:
    made = ambiguous_word(seed=1, count=30, among=("苹果",))
    assert all("苹果" in text for text in made.documents)
    assert made.candidates == (("水果", "手机"),) * 2
    with pytest.raises(InputError, match="香蕉 is not among the ambiguous words: 苹果, 小米"):
        ambiguous_word(seed=1, count=30, among=("香蕉",))


# symbols


def test_symbols_are_all_different() -> None:
    assert len(set(SYMBOLS)) == len(SYMBOLS) >= 128
    assert not set(SYMBOLS) & set("？＝甲乙丙")


@given(pairs=st.integers(1, 64), seed=st.integers(0, 10**6))
def test_the_value_of_the_key_is_recalled(pairs: int, seed: int) -> None:
    made = associative_recall(pairs, seed=seed, count=3)
    for text, (question,) in zip(made.documents, made.questions, strict=True):
        stored, asked = text.split("？")
        assert len(stored) == 2 * pairs and len(asked) == 2
        memory = dict(zip(stored[::2], stored[1::2], strict=True))
        assert len(memory) == len(set(memory.values())) == pairs and not set(memory) & set(memory.values())
        assert memory[asked[0]] == asked[1] == question.answer == text[question.source]
        assert question.position + 2 == len(text)
    assert made.chance == 1 / pairs


def test_any_pair_may_be_asked_for() -> None:
    made = associative_recall(4, seed=1, count=400)
    assert all(60 < count < 140 for count in Counter(q[0].source for q in made.questions).values())


@given(length=st.integers(1, 40), size=st.integers(2, 144), seed=st.integers(0, 10**6))
def test_copies_are_copies(length: int, size: int, seed: int) -> None:
    made = copy(length, seed=seed, count=3, size=size)
    for text, questions in zip(made.documents, made.questions, strict=True):
        original, again = text.split("＝")
        assert original == again and len(original) == length == len(questions)
        assert [(q.source, q.position, q.answer) for q in questions] == [
            (place, length + place, original[place]) for place in range(length)
        ]


@given(length=st.integers(6, 200), seed=st.integers(0, 10**6))
def test_three_marked_values_of_one_vocabulary(length: int, seed: int) -> None:
    made = three_values(seed=seed, count=4, length=length)
    places = set()
    for text, questions in zip(made.documents, made.questions, strict=True):
        body, answers = text.split("？")
        assert len(body) == length + 3 and set(body) <= {*SYMBOLS[:64], *"甲乙丙"}
        assert [body[body.index(mark) + 1] for mark in "甲乙丙"] == list(answers) == [q.answer for q in questions]
        assert [body[q.source - 1] for q in questions] == list("甲乙丙")
        assert {q.position for q in questions} == {length + 3}
        places.add(tuple(q.source for q in questions))
    assert len(places) == 1


def test_three_values_are_drawn_each_by_itself() -> None:
    made = three_values(seed=1, count=6400)
    pairs = Counter((a.answer, b.answer) for a, b, _ in made.questions)
    assert 0 < sum(count for (a, b), count in pairs.items() if a == b) < 160  # 100 expected
    assert len(pairs) > 3000  # 4096 · (1 − exp(−6400 / 4096)) = 3237 expected


def test_three_roles_have_vocabularies_of_their_own() -> None:
    made = three_roles(seed=1, count=300)
    property_, action, quantity = map(set, made.candidates)
    assert len(property_) == len(action) == len(quantity) == 8
    assert not property_ & action and not action & quantity and not property_ & quantity
    for text, questions in zip(made.documents, made.questions, strict=True):
        sentence, answers = text.split("？")
        assert sentence.index("很") + 1 == questions[0].source and sentence.index("了") - 1 == questions[1].source
        assert sentence.index("斤") - 1 == questions[2].source
        for question, role in zip(questions, (property_, action, quantity), strict=True):
            assert [character for character in sentence if character in role] == [question.answer]
            assert sentence[question.source] == question.answer
            assert text[question.position] == "？"
        assert answers == "".join(q.answer for q in questions)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ba_sentences(1, seed=1, count=1), "distance = 1 is not possible; it may be 2 to 256"),
        (lambda: ba_sentences(257, seed=1, count=1), "distance = 257"),
        (lambda: ba_sentences(9, seed=1, count=0), "count = 0"),
        (lambda: ambiguous_word(seed=1, count=0), "count = 0"),
        (lambda: associative_recall(65, seed=1, count=1), "pairs = 65 is not possible; it may be 1 to 64"),
        (lambda: associative_recall(9, seed=1, count=1, keys=100), "keys = 100 is not possible; it may be 2 to 72"),
        (lambda: copy(0, seed=1, count=1), "length = 0"),
        (lambda: copy(3, seed=1, count=1, size=1), "size = 1 is not possible; it may be 2 to 144"),
        (lambda: three_values(seed=1, count=1, size=63), "size = 63 is not possible; it may be 64 to 144"),
        (lambda: three_values(seed=1, count=1, length=5), "length = 5"),
        (lambda: three_roles(seed=1, count=0), "count = 0"),
    ],
)
def test_what_cannot_be_made_is_refused(make: Callable[[], Made], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()
