"""Learning a vocabulary from a person's text, in one pass for characters and two for the other kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from tokenizers.pre_tokenizers import ByteLevel

from lookback.errors import InputError
from lookback.tokenizers import segmentation
from lookback.tokenizers.convention import END, MASK, UNKNOWN
from lookback.tokenizers.specification import CONTINUES
from lookback.tokenizers.tokenizer import Tokenizer
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, trainers

Texts = Callable[[], Iterator[str]]
Progress = Callable[[float], None]

_WINDOW = 1 << 14  # characters that are sampled in one place
_COVERAGE = 0.9995  # of a WordPiece sample's characters have tokens; the rest, the rarest, are [UNK]
_SMALLEST = {"bpe": 2 + 256, "word": 3 + 1, "wordpiece": 3 + 1}


def learn(
    texts: Texts,
    kind: str,
    *,
    vocabulary: int = 4096,
    sample_bytes: int = 5_000_000,
    allow_unknown: bool = False,
    progress: Progress | None = None,
) -> Tokenizer:
    """Learn a tokenizer of ``kind`` "character", "word", "bpe" or "wordpiece" from the documents of ``texts()``.

    Characters: every character of the texts, whatever ``vocabulary`` says, sorted by code point; with
    ``allow_unknown`` there is a token for all others. The other kinds have at most ``vocabulary`` tokens, special ones
    counted (fewer if the text has no more), learnt from about ``sample_bytes`` of UTF-8 spread evenly over the texts;
    word and WordPiece always have an unknown token and byte-level BPE needs none. The same texts give the same
    ``tokenizer.json``, byte for byte. ``progress`` is told the fraction done.

    Sources: byte-level BPE, Radford et al. 2019; WordPiece, Devlin et al. 2018, with merges chosen by frequency.

    Raises InputError for an unknown kind, a vocabulary too small, no text, and Chinese words where jieba is missing.
    """
    report = progress or (lambda done: None)
    report(0.0)
    if kind == "character":
        library = _learn_characters(texts, allow_unknown)
    else:
        _check_request(kind, vocabulary, sample_bytes)
        sample = _sample(texts, sample_bytes, report)
        train = {"bpe": _learn_bpe, "word": _learn_words, "wordpiece": _learn_wordpiece}[kind]
        library = train(sample, vocabulary)
    report(1.0)
    return Tokenizer(library.to_str())


def _check_request(kind: str, vocabulary: int, sample_bytes: int) -> None:
    if kind not in _SMALLEST:
        raise InputError("{kind} is no kind of token; allowed: character, word, bpe, wordpiece", kind=kind)
    if vocabulary < _SMALLEST[kind]:
        raise InputError(
            "a vocabulary of {vocabulary} is too small for {kind} tokens; ask for {least} or more",
            vocabulary=vocabulary,
            kind=kind,
            least=_SMALLEST[kind],
        )
    if sample_bytes < 1:
        raise InputError("a sample of {sample_bytes} bytes is no text; ask for 1 or more", sample_bytes=sample_bytes)


def _require(found: object) -> None:
    if not found:
        raise InputError("there is no text to learn tokens from; give a text that isn't empty")


def _assemble(kind: str, model: models.Model, decoder: decoders.Decoder | None = None) -> Library:
    library = Library(model)
    library.pre_tokenizer = segmentation.pre_tokenizer(kind)
    if decoder is not None:
        library.decoder = decoder
    return library


def _numbered(names: list[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _learn_characters(texts: Texts, allow_unknown: bool) -> Library:
    found: set[str] = set()
    for text in texts():
        segmentation.check_text(text)
        found.update(text)
    _require(found)
    names = [END, MASK, *([UNKNOWN] if allow_unknown else []), *sorted(found)]
    return _assemble("character", models.WordLevel(_numbered(names), unk_token=UNKNOWN), decoders.Fuse())


def _at_most(vocabulary: int, sample: list[str]) -> int:
    """``vocabulary``, or as many tokens as the sample could give: the library sets memory aside for what is asked."""
    return min(vocabulary, _SMALLEST["bpe"] + sum(len(text.encode()) for text in sample))


def _learn_bpe(sample: list[str], vocabulary: int) -> Library:
    trainer = trainers.BpeTrainer(
        vocab_size=_at_most(vocabulary, sample),
        min_frequency=2,
        special_tokens=[END, MASK],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    library = _assemble("bpe", models.BPE())
    library.train_from_iterator(sample, trainer)
    # A new one around the same model: training has registered the special tokens to be found in raw text.
    return _assemble("bpe", library.model, decoders.ByteLevel())


def _learn_words(sample: list[str], vocabulary: int) -> Library:
    splitter = segmentation.pre_tokenizer("word")
    counts = Counter(word for text in sample for word, _ in segmentation.words(text, splitter))
    _require(counts)
    specials = [END, MASK, UNKNOWN]
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    names = specials + ranked[: vocabulary - len(specials)]
    return _assemble("word", models.WordLevel(_numbered(names), unk_token=UNKNOWN))


def _learn_wordpiece(sample: list[str], vocabulary: int) -> Library:
    specials = [END, MASK, UNKNOWN]
    alphabet, dropped = _wordpiece_alphabet(sample, vocabulary - len(specials))
    trainer = trainers.WordPieceTrainer(
        vocab_size=_at_most(vocabulary, sample),
        min_frequency=2,
        # The trainer numbers "##x" in the order of a hash table, which changes from run to run; those named here first
        # have fixed numbers.
        special_tokens=specials + alphabet,
        show_progress=False,
    )
    library = _assemble("wordpiece", models.WordPiece(unk_token=UNKNOWN))
    library.train_from_iterator((text.translate(dropped) for text in sample), trainer)
    return _assemble("wordpiece", library.model, decoders.WordPiece(CONTINUES, cleanup=False))


def _wordpiece_alphabet(sample: list[str], limit: int) -> tuple[list[str], dict[int, str]]:
    """The one-character tokens, "x" and "##x", at most ``limit``, and a `str.translate` table that drops the rest."""
    splitter = segmentation.pre_tokenizer("wordpiece")
    counts = Counter(word for text in sample for word, _ in splitter.pre_tokenize_str(text))
    _require(counts)
    characters: Counter[str] = Counter()
    inner: set[str] = set()
    for word, count in counts.items():
        inner.update(word[1:])
        for character in word:
            characters[character] += count
    rest = characters.total() * (1 - _COVERAGE)
    ranked = sorted(characters, key=lambda character: (characters[character], character))
    tokens = len(characters) + len(inner)
    dropped: dict[int, str] = {}
    for character in ranked:
        rest -= characters[character]
        if rest < 0 and tokens <= limit:
            break
        tokens -= 1 + (character in inner)
        dropped[ord(character)] = " "
    kept = [character for character in sorted(characters) if ord(character) not in dropped]
    return kept + [CONTINUES + character for character in kept if character in inner], dropped


def _sample(texts: Texts, sample_bytes: int, report: Progress) -> list[str]:
    """About ``sample_bytes`` of the texts: windows at even distances over all of them laid end to end."""
    characters = size = 0
    for text in texts():
        segmentation.check_text(text)
        characters += len(text)
        size += sum(len(text[i : i + _WINDOW].encode()) for i in range(0, len(text), _WINDOW))
    _require(characters)
    report(1 / 3)
    wanted = max(1, characters * sample_bytes // size)
    window = min(_WINDOW, wanted)
    period = max(window, window * characters // wanted)
    sample: list[str] = []
    position = 0
    for text in texts():
        for start in range(position // period * period, position + len(text), period):
            if part := text[max(0, start - position) : max(0, start - position + window)]:
                sample.append(part)
        position += len(text)
        report(1 / 3 + min(1.0, position / characters) / 3)
    return sample
