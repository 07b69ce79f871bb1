"""Two tasks on symbols without meaning: recalling what stood after a key, and copying a whole text."""

from __future__ import annotations

from lookback.data.made.made import SYMBOLS, Made, Question, check_range, random_for


def associative_recall(pairs: int, *, seed: int, count: int, keys: int = 64) -> Made:
    """``count`` texts ``k1 v1 k2 v2 … ？ki vi`` without the spaces: key i is asked for, value i the answer.

    Keys are ``pairs`` different ones of ``keys`` symbols, values of as many others; the source is the value's first
    place. Knowing all values but not which, one is right once in ``pairs`` times. InputError if ``pairs`` > ``keys``.
    """
    check_range("keys", keys, 2, len(SYMBOLS) // 2)
    check_range("pairs", pairs, most=keys)
    check_range("count", count)
    key_symbols, value_symbols = SYMBOLS[:keys], SYMBOLS[keys : 2 * keys]
    random = random_for(f"associative_recall {pairs} {keys}", seed)
    documents, questions = [], []
    for _ in range(count):
        drawn = list(zip(random.sample(key_symbols, pairs), random.sample(value_symbols, pairs), strict=True))
        asked = random.randrange(pairs)
        key, value = drawn[asked]
        documents.append("".join(map("".join, drawn)) + f"？{key}{value}")
        questions.append((Question(2 * pairs + 1, value, 2 * asked + 1),))
    return Made(tuple(documents), tuple(questions), (tuple(value_symbols),), chance=1 / pairs)


def copy(length: int, *, seed: int, count: int, size: int = 64) -> Made:
    """``count`` texts of ``length`` symbols out of ``size``, then ＝, then the same again, where each is asked for."""
    check_range("size", size, 2, len(SYMBOLS))
    check_range("length", length)
    check_range("count", count)
    vocabulary = SYMBOLS[:size]
    random = random_for(f"copy {length} {size}", seed)
    originals = ["".join(random.choices(vocabulary, k=length)) for _ in range(count)]
    questions = tuple(
        tuple(Question(length + place, symbol, place) for place, symbol in enumerate(original))
        for original in originals
    )
    documents = tuple(f"{original}＝{original}" for original in originals)
    return Made(documents, questions, (tuple(vocabulary),) * length, chance=1 / size)
