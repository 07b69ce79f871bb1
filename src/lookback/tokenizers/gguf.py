"""The tokenizer in a GGUF file's metadata -> a ``tokenizer.json`` and its convention.

The keys and their meaning are those of the GGUF specification, read as llama.cpp reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookback.tokenizers import documents
from lookback.tokenizers.convention import Convention
from lookback.tokenizers.documents import DIGITS, LLAMA3, NFC, QWEN2, TEKKEN, split
from lookback.tokenizers.specification import CONTINUES, SPACE, Part, UnsupportedError

_KEY = "tokenizer.ggml."
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_SPECIAL = (_UNKNOWN, _CONTROL, _UNUSED)
_TEMPLATE = "tokenizer.chat_template"

# What each named pre-tokenizer is, by the arguments of `documents.byte_level`.
_GPT2: Part = {}
_DIGITS: Part = {"before": [DIGITS]}
_QWEN2: Part = {"before": [split(QWEN2)], "gpt2": False, "normalizer": NFC}
_LLAMA3: Part = {"before": [split(LLAMA3)], "gpt2": False, "ignore_merges": True}
_TEKKEN: Part = {"before": [split(TEKKEN)], "gpt2": False, "ignore_merges": True}
_BYTE_LEVEL: Mapping[str, Part] = {
    **dict.fromkeys(("gpt-2", "phi-2"), _GPT2),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), _QWEN2),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), _LLAMA3),
    **dict.fromkeys(("smollm", "starcoder", "refact"), _DIGITS),
    "tekken": _TEKKEN,
}
# Where a file names none, or "default", its architecture may have only one.
_BY_ARCHITECTURE = {"qwen2": "qwen2", "qwen3": "qwen2", "llama": "default"}
_BEGINS = ("llama-bpe", "llama3", "llama-v3", "tekken")  # A beginning is put before a text.

# The ids of a role, and the one that a file without the key means.
_ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",  # So spelt.
    "pad": "padding_token_id",
    "cls": "cls_token_id",
    "mask": "mask_token_id",
    "eot": "eot_token_id",
    "eom": "eom_token_id",
}
_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unk": 0},
    "bert": {"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
    "gpt2": {},
}
# Control tokens that end a turn or a text, whatever a file's keys say.
_ENDS = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<|end_of_text|>",
}


def read(metadata: Mapping[str, Any]) -> tuple[Part, Convention]:
    """The document and convention of ``metadata``. Raises UnsupportedError, or whatever damaged contents cause."""
    kind = metadata[_KEY + "model"]
    if kind not in _DEFAULTS:
        raise UnsupportedError(f"{kind} (tokenizer.ggml.model)")
    tokens: Sequence[str] = [token or f"<empty {place}>" for place, token in enumerate(metadata[_KEY + "tokens"])]
    types: Sequence[int] = metadata.get(_KEY + "token_type") or [_NORMAL] * len(tokens)
    if len(types) != len(tokens) or len(set(tokens)) != len(tokens):
        raise ValueError("its tokens and their types don't match, or a token occurs twice")
    roles = _roles(metadata, kind, len(tokens))
    build = {"gpt2": _byte_level, "llama": _sentencepiece, "bert": _wordpiece}[kind]
    document, names = build(metadata, tokens, types, roles)
    specials = {token for token, type_ in enumerate(types) if type_ in _SPECIAL} | set(roles.values())
    found = {token for token, type_ in enumerate(types) if type_ == _USER_DEFINED} | specials
    document["added_tokens"] = [
        documents.added(names[token], token, special=token in specials) for token in sorted(found)
    ]
    prefix, suffix = _around(metadata, kind, roles)
    documents.around(document, [(names[t], t) for t in prefix], [(names[t], t) for t in suffix])
    last = [roles[role] for role in ("eos", "sep", "eot", "eom") if role in roles]
    named = [token for token, name in enumerate(names) if name in _ENDS and types[token] == _CONTROL]
    ends = tuple(dict.fromkeys([*last, *named]))
    return document, Convention(roles, frozenset(specials), ends, prefix, suffix, _templates(metadata))


def _roles(metadata: Mapping[str, Any], kind: str, size: int) -> dict[str, int]:
    given = {role: metadata[_KEY + key] for role, key in _ROLES.items() if _KEY + key in metadata}
    ids = {**_DEFAULTS[kind], **given}
    if kind == "bert":
        ids = {"cls": ids.pop("bos")} | ids  # llama.cpp calls it so.
    return {role: int(token) for role, token in ids.items() if 0 <= token < size}


def _byte_level(
    metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int], roles: Mapping[str, int]
) -> tuple[Part, Sequence[str]]:
    pre = metadata.get(_KEY + "pre") or "default"
    if pre == "default":
        pre = _BY_ARCHITECTURE.get(metadata.get("general.architecture", ""), "gpt-2")
    if pre not in _BYTE_LEVEL:
        raise UnsupportedError(f"byte-level BPE with the pre-tokenizer {pre} (tokenizer.ggml.pre)")
    vocabulary = {name: token for token, name in enumerate(tokens)}
    prefix = bool(metadata.get(_KEY + "add_space_prefix", False))
    return documents.byte_level(vocabulary, metadata[_KEY + "merges"], prefix_space=prefix, **_BYTE_LEVEL[pre]), tokens


def _sentencepiece(
    metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int], roles: Mapping[str, int]
) -> tuple[Part, Sequence[str]]:
    scores = metadata[_KEY + "scores"]
    normal = {name: score for name, score, type_ in zip(tokens, scores, types, strict=True) if type_ == _NORMAL}
    return documents.sentencepiece(
        {name: token for token, name in enumerate(tokens)},
        documents.merges_by_score(normal),
        unknown=tokens[roles["unk"]],
        prefix=bool(metadata.get(_KEY + "add_space_prefix", True)),
    ), tokens


def _wordpiece(
    metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int], roles: Mapping[str, int]
) -> tuple[Part, Sequence[str]]:
    """GGUF writes "▁" before what begins a word, and nothing before what continues one."""
    special = {token for token, type_ in enumerate(types) if type_ in _SPECIAL} | set(roles.values())
    names = [
        name
        if token in special or (name.startswith("[") and name.endswith("]"))
        else name[1:]
        if name.startswith(SPACE) and name != SPACE
        else CONTINUES + name
        for token, name in enumerate(tokens)
    ]
    capitals = any(name.lower() != name for token, name in enumerate(names) if token not in special and name[0] != "[")
    lower = bool(metadata.get(_KEY + "normalizer.lowercase", not capitals))
    return documents.wordpiece(
        {name: token for token, name in enumerate(names)},
        unknown=names[roles["unk"]],
        lower=lower,
        strip_accents=metadata.get(_KEY + "normalizer.strip_accents"),
    ), names


def _around(
    metadata: Mapping[str, Any], kind: str, roles: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before and after a text: the flags' word, or what the kind does without them."""
    begins = kind != "gpt2" or metadata.get(_KEY + "pre") in _BEGINS
    asked = [
        (metadata.get(_KEY + "add_bos_token", begins), roles.get("cls" if kind == "bert" else "bos")),
        (metadata.get(_KEY + "add_eos_token", False), roles.get("eos")),
        (metadata.get(_KEY + "add_sep_token", kind == "bert"), roles.get("sep")),
    ]
    for flag, token in asked:
        if flag and token is None:
            raise ValueError("it asks for a token around each text and doesn't say which")
    ids = [token if flag else None for flag, token in asked]
    return tuple(t for t in ids[:1] if t is not None), tuple(t for t in ids[1:] if t is not None)


def _templates(metadata: Mapping[str, Any]) -> dict[str, str]:
    named = {
        key.removeprefix(_TEMPLATE + "."): text for key, text in metadata.items() if key.startswith(_TEMPLATE + ".")
    }
    return named | ({"default": metadata[_TEMPLATE]} if _TEMPLATE in metadata else {})
