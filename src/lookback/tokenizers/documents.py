"""The ``tokenizer.json`` of a vocabulary that comes without one: byte-level BPE, WordPiece, SentencePiece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lookback.tokenizers.specification import CONTINUES, SPACE, Part

# What the pre-tokenizers of GPT-2 (Radford et al. 2019), Llama 3, Qwen2 and Mistral's Tekken look for.
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}"
QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGITS: Part = {"type": "Digits", "individual_digits": True}
NFC: Part = {"type": "NFC"}


def split(pattern: str) -> Part:
    """A pre-tokenizer that keeps what ``pattern`` finds apart from what lies between."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def byte_level(
    vocabulary: Mapping[str, int],
    merges: Iterable[str],
    *,
    before: Sequence[Part] = (),
    gpt2: bool = True,
    normalizer: Part | None = None,
    prefix_space: bool = False,
    ignore_merges: bool = False,
) -> Part:
    """Byte-level BPE (Radford et al. 2019): ``before`` splits first, then GPT-2's own pattern if ``gpt2`` says so."""
    level = {"type": "ByteLevel", "add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": gpt2}
    model = {"type": "BPE", "vocab": vocabulary, "merges": list(merges), "ignore_merges": ignore_merges}
    return _document(
        model,
        normalizer=normalizer,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [*before, level]} if before else level,
        decoder=level,
    )


def wordpiece(
    vocabulary: Mapping[str, int],
    *,
    unknown: str,
    lower: bool,
    chinese: bool = True,
    strip_accents: bool | None = None,
) -> Part:
    """BERT's WordPiece (Devlin et al. 2018). ``strip_accents`` None goes with ``lower``."""
    return _document(
        {
            "type": "WordPiece",
            "vocab": vocabulary,
            "unk_token": unknown,
            "continuing_subword_prefix": CONTINUES,
            "max_input_chars_per_word": 100,
        },
        normalizer={
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": chinese,
            "strip_accents": strip_accents,
            "lowercase": lower,
        },
        pre_tokenizer={"type": "BertPreTokenizer"},
        decoder={"type": "WordPiece", "prefix": CONTINUES, "cleanup": True},
    )


def sentencepiece(vocabulary: Mapping[str, int], merges: Iterable[list[str]], *, unknown: str, prefix: bool) -> Part:
    """SentencePiece's BPE with byte fallback (Kudo and Richardson 2018), as in Llama; ``prefix`` puts a space first."""
    spaces: Part = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    before: list[Part] = [{"type": "Prepend", "prepend": SPACE}] if prefix else []
    after: list[Part] = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    back: Part = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    model = {"type": "BPE", "vocab": vocabulary, "merges": list(merges), "unk_token": unknown}
    return _document(
        model | {"fuse_unk": True, "byte_fallback": True},
        normalizer={"type": "Sequence", "normalizers": [*before, spaces]},
        decoder={"type": "Sequence", "decoders": [back, {"type": "ByteFallback"}, {"type": "Fuse"}, *after]},
    )


def merges_by_score(scores: Mapping[str, float]) -> list[list[str]]:
    """The merges that are SentencePiece's: any two pieces that make a third, the piece of the best score first."""
    order = {piece: place for place, piece in enumerate(scores)}
    found = []
    for piece, score in scores.items():
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            if left in scores and right in scores:
                found.append((-score, order[piece], order[left], order[right], left, right))
    return [[left, right] for *_, left, right in sorted(found)]


def added(name: str, token: int, *, special: bool) -> Part:
    """An entry for a token that is found in raw text."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token, "content": name, **flags, "special": special}


def around(document: Part, prefix: Sequence[tuple[str, int]], suffix: Sequence[tuple[str, int]]) -> None:
    """Have a document put tokens, given by name and id, before and after each text."""
    if not prefix and not suffix:
        return
    text: list[Part] = [{"Sequence": {"id": "A", "type_id": 0}}]
    before, behind = ([{"SpecialToken": {"id": name, "type_id": 0}} for name, _ in side] for side in (prefix, suffix))
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [*before, *text, *behind],
        "pair": [*before, *text, *behind, {"Sequence": {"id": "B", "type_id": 1}}, *behind],
        "special_tokens": {name: {"id": name, "ids": [token], "tokens": [name]} for name, token in (*prefix, *suffix)},
    }


def _document(model: Part, *, normalizer: Part | None = None, pre_tokenizer: Part | None = None, decoder: Part) -> Part:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }
