"""Tokenizers from GGUF metadata, against those that the metadata was made of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.tokenizers import Tokenizer

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
PRE = {"gpt2": "gpt-2", "smollm": "smollm", "qwen2": "qwen2", "llama3": "llama-bpe"}
KEYS = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "sep": "seperator",
    "pad": "padding",
    "cls": "cls",
    "mask": "mask",
}

parts = st.sampled_from(
    [
        "We",
        " had",
        "SAID",
        "naïve",
        "É",
        "e\u0301",
        "床前",
        "月",
        "。\n",
        "'ll",
        "1234",
        "\n",
        " ",
        "   ",
        "[MASK]",
        "<s>",
    ]
)
texts = st.lists(parts | st.characters(exclude_categories=["Cs"]), max_size=20).map("".join)


def metadata(made: Any) -> dict[str, Any]:
    """What converters write for a tokenizer: the tokens with their types, merges or scores, and the ids of roles."""
    document = json.loads(made.library.to_str())
    entries = {entry["id"]: CONTROL if entry["special"] else USER for entry in document["added_tokens"]}
    names = [made.library.id_to_token(token) for token in range(made.ours.size)]
    types = [entries.get(token, NORMAL) for token in range(len(names))]
    found: dict[str, Any] = {"tokenizer.ggml.model": "gpt2"}
    found |= {f"tokenizer.ggml.{KEYS[role]}_token_id": made.ours.roles[role] for role in made.roles}
    if made.kind in PRE:
        found["tokenizer.ggml.pre"] = PRE[made.kind]
        found["tokenizer.ggml.merges"] = [" ".join(merge) for merge in document["model"]["merges"]]
    elif made.kind == "llama2":
        found["tokenizer.ggml.model"] = "llama"
        types = [BYTE if name.startswith("<0x") else type_ for name, type_ in zip(names, types, strict=True)]
        types[0] = UNKNOWN
        merged = ["".join(merge) for merge in document["model"]["merges"]]
        found["tokenizer.ggml.scores"] = [-float(merged.index(name)) if name in merged else -1e6 for name in names]
    else:
        found["tokenizer.ggml.model"] = "bert"
        names = [
            name if type_ == CONTROL else name[2:] if name.startswith("##") else "▁" + name
            for name, type_ in zip(names, types, strict=True)
        ]
    return found | {"tokenizer.ggml.tokens": names, "tokenizer.ggml.token_type": types}


@pytest.fixture(scope="module")
def read(foreign):
    made = {}

    def get(kind: str) -> Tokenizer:
        if kind not in made:
            made[kind] = Tokenizer.from_gguf(metadata(foreign(kind)))
        return made[kind]

    return get


KINDS = [*PRE, "llama2", "bert", "cased"]


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
def test_ids_and_text_are_those_of_the_tokenizer_it_came_from(foreign, read, kind, text):
    ours, gguf = foreign(kind).ours, read(kind)
    for special in (False, True):
        assert gguf.encode(text, special_tokens=special) == ours.encode(text, special_tokens=special)
    ids = ours.encode(text).ids
    assert gguf.decode(ids) == ours.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_all_else_is_the_same_too_and_saving_keeps_it(foreign, read, kind, tmp_path):
    ours, gguf = foreign(kind).ours, read(kind)
    gguf.save(tmp_path)
    fields = ["kind", "size", "end", "begin", "unknown", "prefix", "suffix", "specials", "reversible", "roles"]
    for made in (gguf, Tokenizer.load(tmp_path)):
        assert [getattr(made, field) for field in fields] == [getattr(ours, field) for field in fields]
        assert made.ends == gguf.ends
        assert [made.token_text(token) for token in range(made.size)] == [
            ours.token_text(token) for token in range(made.size)
        ]


def test_flags_and_ends_of_the_file_are_followed(foreign, tmp_path):
    file = metadata(foreign("llama3")) | {"tokenizer.chat_template": "x", "tokenizer.chat_template.tool_use": "y"}
    begin, eot = (foreign("llama3").ours.special_names[name] for name in ("<|begin_of_text|>", "<|eot_id|>"))
    made = Tokenizer.from_gguf(file)
    assert (made.prefix, made.suffix, made.ends) == ((begin,), (), (eot,))
    assert made.chat_templates == {"default": "x", "tool_use": "y"}
    flags = {"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": True}
    ends = {"tokenizer.ggml.eos_token_id": begin, "tokenizer.ggml.eom_token_id": 7}
    made = Tokenizer.from_gguf(file | flags | ends)
    assert (made.prefix, made.suffix, made.ends) == ((), (begin,), (begin, 7, eot))  # "<|eot_id|>" by its name
    made.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert (again.suffix, again.ends, again.chat_templates) == (made.suffix, made.ends, made.chat_templates)


def test_without_a_space_before_the_text(foreign):
    made = Tokenizer.from_gguf(metadata(foreign("llama2")) | {"tokenizer.ggml.add_space_prefix": False})
    assert made.token_text(made.encode("We said").ids[0]).startswith("W")
    assert made.decode(made.encode(" We said").ids) == " We said"


def test_case_follows_the_key_and_else_the_vocabulary(foreign):
    file = metadata(foreign("cased"))
    assert Tokenizer.from_gguf(file).encode("We").ids == foreign("cased").ours.encode("We").ids
    lowered = Tokenizer.from_gguf(file | {"tokenizer.ggml.normalizer.lowercase": True})
    assert lowered.encode("We").ids == lowered.encode("we").ids


def test_a_pre_tokenizer_that_is_not_named_is_the_architecture_s_only_one(foreign):
    file = metadata(foreign("qwen2"))
    for pre in ({}, {"tokenizer.ggml.pre": "default"}):
        rest = {key: value for key, value in file.items() if key != "tokenizer.ggml.pre"} | pre
        made = Tokenizer.from_gguf(rest | {"general.architecture": "qwen2"})
        assert made.encode("。\n\nWE'LL 12").ids == foreign("qwen2").ours.encode("。\n\nWE'LL 12").ids
        made = Tokenizer.from_gguf(rest | {"general.architecture": "gpt2"})
        assert made.encode("。\n\nWE'LL 12").ids != foreign("qwen2").ours.encode("。\n\nWE'LL 12").ids
        with pytest.raises(InputError, match="byte-level BPE with the pre-tokenizer default"):
            Tokenizer.from_gguf(rest | {"general.architecture": "llama"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "t5"}, "is of a kind that isn't supported: t5"),
        ({"model": "rwkv"}, "is of a kind that isn't supported: rwkv"),
        ({"pre": "superbpe"}, "the pre-tokenizer superbpe"),
        ({"tokens": ["a", "a"], "token_type": [1, 1]}, r"damaged or of no known kind \(its tokens and their types"),
        ({"token_type": [1]}, r"damaged or of no known kind \(its tokens and their types"),
        ({"merges": ["only"]}, "damaged or of no known kind"),
        ({"add_bos_token": True, "bos_token_id": 10**6}, "asks for a token around each text and doesn't say which"),
    ],
)
def test_other_kinds_and_damage_are_one_sentence(foreign, change, message):
    file = metadata(foreign("smollm")) | {f"tokenizer.ggml.{key}": value for key, value in change.items()}
    with pytest.raises(InputError, match=message) as caught:
        Tokenizer.from_gguf(file)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"the GGUF file's tokenizer is damaged or of no known kind \(no 'tok"):
        Tokenizer.from_gguf({})
