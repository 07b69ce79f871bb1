"""A folder of ours or of Hugging Face's -> a ``tokenizer.json`` and its convention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lookback.errors import InputError
from lookback.tokenizers import documents
from lookback.tokenizers.convention import BERT, DEFAULTS, ROLES, Convention, Records, conclude, put_around
from lookback.tokenizers.documents import NFC, QWEN2, split
from lookback.tokenizers.specification import Part, Specification, UnsupportedError

DOCUMENT = "tokenizer.json"
CONFIG = "tokenizer_config.json"
GENERATION = "generation_config.json"
TEMPLATE = "chat_template.jinja"
_VOCABULARIES = ("vocab.txt", "vocab.json", "tokenizer.model")


def read(folder: Path) -> tuple[str, Convention]:
    """The contents and convention of a folder's tokenizer, from whichever of the known files it has.

    Raises InputError where there is none or only a ``tokenizer.model``, UnsupportedError, or whatever damaged contents
    cause.
    """
    records = Records(
        tokenizer=_record(folder / CONFIG),
        special=_record(folder / "special_tokens_map.json"),
        model=_record(folder / "config.json"),
        generation=_record(folder / GENERATION),
    )
    if (folder / DOCUMENT).exists():
        contents = _text(folder / DOCUMENT)
        document = json.loads(contents)
    else:
        contents, document = "", _built(folder, records)
    before = json.dumps(document.get("normalizer"))
    changed = _add_tokens(document, folder, records.tokenizer)
    _follow_config(document.get("normalizer"), records.tokenizer)
    if not contents or changed or json.dumps(document.get("normalizer")) != before:
        contents = json.dumps(document, ensure_ascii=False)
    return contents, conclude(Specification(document), records, _templates(folder, records.tokenizer))


def source(folder: Path) -> Path:
    """The file that `read` takes the vocabulary from."""
    return next((folder / name for name in (DOCUMENT, *_VOCABULARIES) if (folder / name).exists()), folder / DOCUMENT)


def _built(folder: Path, records: Records) -> Part:
    family = records.family
    if (folder / "vocab.txt").exists():
        if records.named not in ("", "BertTokenizer", "DistilBertTokenizer"):
            raise UnsupportedError(f"vocab.txt for {records.named}")
        return _wordpiece(_text(folder / "vocab.txt"), records)
    if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        if family not in ("GPT2Tokenizer", "Qwen2Tokenizer"):
            raise UnsupportedError(f"vocab.json and merges.txt for {family or 'no named tokenizer_class'}")
        return _byte_level(folder, records)
    if (folder / "tokenizer.model").exists():
        raise InputError(
            "{folder} has its tokenizer in tokenizer.model alone, which isn't read; make a tokenizer.json of it once, "
            "with transformers and sentencepiece: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)",
            folder=folder,
        )
    raise InputError(
        "{folder} has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt; give the folder of a model "
        "with its tokenizer",
        folder=folder,
    )


def _wordpiece(listed: str, records: Records) -> Part:
    lines = listed.removesuffix("\n").split("\n")
    vocabulary = {line.removesuffix("\r"): token for token, line in enumerate(lines)}
    names = {role: records.name(role) or name for role, name in BERT.items()}
    config = records.tokenizer
    document = documents.wordpiece(
        vocabulary,
        unknown=names["unk"],
        lower=config.get("do_lower_case") is not False,
        chinese=config.get("tokenize_chinese_chars") is not False,
        strip_accents=config.get("strip_accents"),
    )
    present = sorted((vocabulary[name], name) for name in names.values() if name in vocabulary)
    document["added_tokens"] = [documents.added(name, token, special=True) for token, name in present]
    documents.around(document, *([(names[role], vocabulary[names[role]])] for role in ("cls", "sep")))
    return document


def _byte_level(folder: Path, records: Records) -> Part:
    vocabulary = json.loads(_text(folder / "vocab.json"))
    merges = [line for line in _text(folder / "merges.txt").split("\n") if line and not line.startswith("#version")]
    prefix = bool(records.tokenizer.get("add_prefix_space", False))
    if records.family == "GPT2Tokenizer":
        document = documents.byte_level(vocabulary, merges, prefix_space=prefix)
    else:
        document = documents.byte_level(
            vocabulary, merges, prefix_space=prefix, before=[split(QWEN2)], gpt2=False, normalizer=NFC
        )
    names = {records.name(role) or name for role, name in DEFAULTS[records.family].items()}
    document["added_tokens"] = [
        documents.added(name, vocabulary[name], special=True) for name in sorted(names & vocabulary.keys())
    ]
    return document


def _add_tokens(document: Part, folder: Path, config: Part) -> bool:
    """Take in the tokens of ``added_tokens.json`` and ``added_tokens_decoder`` that a document lacks."""
    entries: list[Part] = document.setdefault("added_tokens", [])
    known = {entry["content"] for entry in entries}
    before = len(known)
    for token, entry in sorted((config.get("added_tokens_decoder") or {}).items(), key=lambda item: int(item[0])):
        if entry["content"] not in known:
            known.add(entry["content"])
            flags = {key: bool(entry.get(key)) for key in ("special", "single_word", "lstrip", "rstrip", "normalized")}
            entries.append({"id": int(token), "content": entry["content"], **flags})
    for name, token in sorted(_record(folder / "added_tokens.json").items(), key=lambda item: int(item[1])):
        if name not in known:
            known.add(name)
            entries.append(documents.added(name, int(token), special=False))
    return len(known) > before


def _follow_config(normalizer: Part | None, config: Part) -> None:
    """Where ``tokenizer_config.json`` and a BERT's normalizer differ, transformers goes by the first."""
    if normalizer is None or normalizer["type"] != "BertNormalizer":
        return
    for key, theirs in (
        ("do_lower_case", "lowercase"),
        ("tokenize_chinese_chars", "handle_chinese_chars"),
        ("strip_accents", "strip_accents"),
    ):
        if isinstance(config.get(key), bool):
            normalizer[theirs] = config[key]


def _templates(folder: Path, config: Part) -> dict[str, str]:
    """Chat templates by name: the file's, or one in the record, or several there."""
    if (folder / TEMPLATE).exists():
        return {"default": _text(folder / TEMPLATE)}
    given = config.get("chat_template")
    if isinstance(given, list):
        return {str(entry["name"]): str(entry["template"]) for entry in given}
    return {} if given is None else {"default": str(given)}


def config(convention: Convention, specification: Specification) -> Part:
    """The ``tokenizer_config.json`` from which `read` has the convention again, as transformers has."""
    names = specification.names
    config: Part = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    config |= {f"{role}_token": names[token] for role, token in convention.roles.items() if role in ROLES}
    if not specification.special:  # transformers registers the tokens above, but must not find them in text.
        config["split_special_tokens"] = True
    if put_around(specification) != (convention.prefix, convention.suffix):
        config |= {"add_bos_token": bool(convention.prefix), "add_eos_token": bool(convention.suffix)}
    registered = {*specification.special, *convention.roles.values()}
    if extra := [names[token] for token in sorted(convention.specials - registered) if names[token]]:
        config["additional_special_tokens"] = extra
    if set(convention.templates) == {"default"}:
        config["chat_template"] = convention.templates["default"]
    elif convention.templates:
        config["chat_template"] = [{"name": name, "template": text} for name, text in convention.templates.items()]
    return config


def _record(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(_text(path)))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("{path} is damaged ({reason}); restore it", path=path, reason=error) from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise InputError("{path} can't be read: {reason}", path=path, reason=error.strerror) from None
