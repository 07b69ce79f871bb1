"""Special tokens: which there are, what they are for, and where a tokenizer's own convention puts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lookback.tokenizers.specification import Part, Specification, leaves

END = "<|end|>"
MASK = "[MASK]"
UNKNOWN = "[UNK]"
OURS = {"bos": END, "eos": END, "mask": MASK, "unk": UNKNOWN}
BERT = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
# What the classes of transformers assume where a folder says nothing.
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "GPT2Tokenizer": {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "unk": "<|endoftext|>"},
    "Qwen2Tokenizer": {"eos": "<|endoftext|>", "unk": "<|endoftext|>", "pad": "<|endoftext|>"},
    "LlamaTokenizer": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
}
_FAMILIES = {"gpt2": "GPT2Tokenizer", "qwen2": "Qwen2Tokenizer", "qwen3": "Qwen2Tokenizer", "llama": "LlamaTokenizer"}
ROLES = ("bos", "eos", "unk", "pad", "sep", "cls", "mask")


@dataclass(frozen=True)
class Convention:
    """``roles`` gives the ids of "bos", "eos", "unk", "pad", "sep", "cls" and "mask", as far as there are such tokens.

    ``prefix`` and ``suffix`` are put around a text; ``ends`` close a generation, the end token first; ``specials`` are
    all ids that no text of a person's may turn into; ``templates`` are chat templates by name, "default" the usual one.
    """

    roles: Mapping[str, int]
    specials: frozenset[int]
    ends: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """The files beside a ``tokenizer.json`` that say what its special tokens are for; each may be empty."""

    tokenizer: Part = field(default_factory=dict)  # tokenizer_config.json
    special: Part = field(default_factory=dict)  # special_tokens_map.json
    model: Part = field(default_factory=dict)  # config.json
    generation: Part = field(default_factory=dict)  # generation_config.json

    @property
    def named(self) -> str:
        """The tokenizer's class in transformers, without "Fast", where a record names it; else ""."""
        named = self.tokenizer.get("tokenizer_class") or self.model.get("tokenizer_class") or ""
        return str(named).removesuffix("Fast")

    @property
    def family(self) -> str:
        """The class that is named, or that the model's type leads to; else ""."""
        return self.named or _FAMILIES.get(self.model.get("model_type", ""), "")

    def name(self, role: str) -> str | None:
        """The name of the token in a role, which stands alone or in a record of its own."""
        for record in (self.tokenizer, self.special):
            if (entry := record.get(f"{role}_token")) is not None:
                return str(entry["content"] if isinstance(entry, dict) else entry)
        return None

    def extra(self) -> Iterator[str]:
        """The names of further special tokens, however a folder tells them."""
        for record in (self.tokenizer, self.special):
            for key in ("additional_special_tokens", "extra_special_tokens"):
                listed = record.get(key) or []
                for entry in listed.values() if isinstance(listed, dict) else listed:
                    yield str(entry["content"] if isinstance(entry, dict) else entry)


def conclude(specification: Specification, records: Records, templates: Mapping[str, str]) -> Convention:
    """The convention of a folder: the records' word, then the class's defaults, then the post-processor's."""
    vocabulary = specification.vocabulary
    usual = BERT if specification.kind == "wordpiece" else DEFAULTS.get(records.family, {})
    defaults = OURS if END in vocabulary else usual
    names = {role: records.name(role) or defaults.get(role) for role in ROLES}
    roles = {role: vocabulary[name] for role, name in names.items() if name in vocabulary}
    extra = {vocabulary[name] for name in records.extra() if name in vocabulary}
    known = {*specification.special, *roles.values(), *extra}
    for role in ROLES:
        listed = [token for token in _ids(records, f"{role}_token_id", specification) if token in known]
        if listed and role not in roles:
            roles[role] = listed[0]
    last = [roles[role] for role in ("eos", "sep") if role in roles][:1]
    prefix, suffix = put_around(specification)
    flags = {role: records.tokenizer.get(f"add_{role}_token") for role in ("bos", "eos")}
    if any(isinstance(flag, bool) for flag in flags.values()):
        prefix = (roles["bos"],) if flags["bos"] and "bos" in roles else ()
        suffix = (roles["eos"],) if flags["eos"] and "eos" in roles else ()
    unused = {token for token, name in enumerate(specification.names) if not name}
    ends = tuple(dict.fromkeys([*last, *_ids(records, "eos_token_id", specification)]))
    return Convention(roles, frozenset(known | unused), ends, prefix, suffix, templates)


def _ids(records: Records, key: str, specification: Specification) -> list[int]:
    found: list[Any] = []
    for record in (records.generation, records.model):
        listed = record.get(key)
        found += listed if isinstance(listed, list) else [listed]
    return [token for token in found if type(token) is int and 0 <= token < len(specification.names)]


def put_around(specification: Specification) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that a document's post-processor puts before and after a text."""
    prefix: list[int] = []
    suffix: list[int] = []
    for leaf in leaves(specification.document.get("post_processor")):
        if leaf["type"] in ("BertProcessing", "RobertaProcessing"):
            prefix, suffix = [leaf["cls"][1]], [leaf["sep"][1]]
        elif leaf["type"] == "TemplateProcessing":
            at = next(place for place, item in enumerate(leaf["single"]) if "Sequence" in item)
            prefix, suffix = _template(leaf, leaf["single"][:at]), _template(leaf, leaf["single"][at + 1 :])
    return tuple(prefix), tuple(suffix)


def _template(leaf: Part, items: list[Any]) -> list[int]:
    return [token for item in items for token in leaf["special_tokens"][item["SpecialToken"]["id"]]["ids"]]
