"""Tokenizers built from ``vocab.txt``, or ``vocab.json`` and ``merges.txt``, against those transformers builds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.tokenizers import Tokenizer

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
        "，",
        "'ll",
        "12",
        "\n",
        " ",
        "<|endoftext|>",
        "[MASK]",
    ]
)
texts = st.lists(parts | st.characters(exclude_categories=["Cs"]), max_size=20).map("".join)


def vocabulary(library) -> list[str]:
    found = library.get_vocab(with_added_tokens=True)
    return sorted(found, key=found.__getitem__)


@pytest.fixture(scope="module")
def built(foreign, tmp_path_factory):
    """A folder without a ``tokenizer.json``, ours, and the class of transformers that it names."""
    import transformers

    made = {}

    def get(name: str, **config: object):
        key = (name, *sorted(config.items()))
        if key in made:
            return made[key]
        folder = tmp_path_factory.mktemp(name)
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **config}))
        if name == "BertTokenizer":
            listed = [*vocabulary(foreign("bert").library), "W", "é", "##É"]
            (folder / "vocab.txt").write_text(
                "".join(f"{token}\n" for token in listed), encoding="utf-8", newline="\r\n"
            )
        else:
            document = json.loads(foreign("gpt2").library.to_str())
            (folder / "vocab.json").write_text(json.dumps(document["model"]["vocab"]))
            merges = ["#version: 0.2", *(" ".join(merge) for merge in document["model"]["merges"])]
            (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
        made[key] = Tokenizer.load(folder), getattr(transformers, name).from_pretrained(folder), folder
        return made[key]

    return get


KINDS = [
    ("BertTokenizer", {}),
    ("BertTokenizer", {"do_lower_case": False}),
    ("BertTokenizer", {"do_lower_case": False, "strip_accents": True}),
    ("BertTokenizer", {"tokenize_chinese_chars": False, "strip_accents": False}),
    ("GPT2Tokenizer", {}),
    ("GPT2Tokenizer", {"add_prefix_space": True, "add_bos_token": True}),
    ("Qwen2Tokenizer", {}),
]


@pytest.mark.parametrize(("name", "config"), KINDS, ids=str)
@given(text=texts)
def test_ids_are_those_of_transformers(built, name, config, text):
    ours, theirs, _ = built(name, **config)
    ids = [*ours.prefix, *ours.encode(text, special_tokens=True).ids, *ours.suffix]
    assert ids == theirs(text)["input_ids"]
    assert not set(ours.encode(text).ids) & (ours.specials - {ours.unknown})


@pytest.mark.parametrize(("name", "config"), KINDS, ids=str)
def test_roles_are_those_of_transformers_and_saving_keeps_them(built, name, config, tmp_path):
    ours, theirs, _ = built(name, **config)
    end = theirs.sep_token_id if name == "BertTokenizer" else theirs.eos_token_id
    assert ours.ends == (end,)
    if name != "GPT2Tokenizer":
        assert ours.roles.get("pad") == theirs.pad_token_id
    assert ours.size == len(theirs)
    ours.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert (again.roles, again.prefix, again.suffix) == (ours.roles, ours.prefix, ours.suffix)
    assert again.ids("We had 床前").tolist() == ours.ids("We had 床前").tolist()


def test_a_chinese_gpt2_has_a_bert_s_vocabulary(foreign, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary(foreign("bert").library)), encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "eos_token_id": 50256}))
    made = Tokenizer.load(tmp_path)
    assert (made.kind, made.end, made.ends, made.begin, made.prefix) == ("wordpiece", 3, (3,), 2, (2,))
    assert made.decode(made.encode("床前明月光，疑是").ids) == "床前明月光，疑是"


def test_the_configuration_decides_on_case_where_files_differ(foreign, tmp_path):
    from transformers import BertTokenizer

    (tmp_path / "tokenizer.json").write_text(foreign("bert").library.to_str(), "utf-8")
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    ids = BertTokenizer.from_pretrained(tmp_path)("We had SAID")["input_ids"]
    made = Tokenizer.load(tmp_path)
    assert [*made.prefix, *made.encode("We had SAID").ids, *made.suffix] == ids
    assert made.unknown in ids


def refuse(folder: Path, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Tokenizer.load(folder)


def test_what_can_not_be_built_is_refused_by_name(tmp_path):
    refuse(tmp_path, "has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt")
    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0e")
    refuse(tmp_path, "tokenizer.model alone, which isn't read; make a tokenizer.json of it once")
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "merges.txt").write_text("")
    refuse(
        tmp_path, "vocab.json is of a kind that isn't supported: vocab.json and merges.txt for no named tokenizer_class"
    )
    (tmp_path / "config.json").write_text(json.dumps({"tokenizer_class": "RobertaTokenizer"}))
    refuse(tmp_path, "vocab.json and merges.txt for RobertaTokenizer")
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    refuse(tmp_path, "vocab.txt for RobertaTokenizer")
    (tmp_path / "config.json").write_text("{}")
    refuse(tmp_path, r"vocab.txt is damaged or of no known kind \(no '\[CLS\]'\)")
