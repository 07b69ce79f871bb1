from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lookback.tokenizers import Tokenizer, learn
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Library

TEXTS = [
    "We had not said a word, and he didn't say one; 'tis 1564.\n" * 3,
    "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n" * 3,
    "我们用苹果手机看电影。 The naïve café — Ünder_score\tx 😀 e\u0301\r\n" * 2,
    "we'll   indent\n\n    xxxx 12345\n" * 4,
]
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


@pytest.fixture(scope="session")
def tokenizer() -> Callable[[str], Tokenizer]:
    """A small tokenizer of the kind asked for; "open" is characters with an unknown token."""
    made = {
        kind: learn(lambda: iter(TEXTS), kind, vocabulary=340) for kind in ("character", "bpe", "wordpiece", "word")
    }
    made["open"] = learn(lambda: iter(TEXTS), "character", allow_unknown=True)
    return made.__getitem__


def byte_level(*before: Any, normalizer: Any = None, specials: tuple[str, ...] = (), **options: Any) -> Library:
    """Byte-level BPE as GPT-2, SmolLM2 (digits apart), Qwen2 and Llama 3 have it, by what splits before the bytes."""
    made = Library(models.BPE(**options))
    if normalizer:
        made.normalizer = normalizer
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not any(map(is_split, before)))
    made.pre_tokenizer = pre_tokenizers.Sequence([*before, level]) if before else level
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=list(specials),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return made


def is_split(part: Any) -> bool:
    return isinstance(part, pre_tokenizers.Split)


def sentencepiece(legacy: bool) -> Library:
    """SentencePiece's BPE with byte fallback: the normalizer form of Llama 2, or Metaspace as in newer files."""
    made = Library(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(split=True)
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    specials = ["<unk>", "<s>", "</s>", *pieces]
    made.train_from_iterator(
        [text.replace("\n", " ").replace("😀", "") for text in TEXTS],
        trainers.BpeTrainer(vocab_size=500, special_tokens=specials, show_progress=False),
    )
    if legacy:
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(back)
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    document = json.loads(made.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    return Library.from_str(json.dumps(document | ({"pre_tokenizer": None} if legacy else {})))


def bert(lower: bool) -> Library:
    made = Library(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lower)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=specials, show_progress=False)
    )
    around = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    return made


def make(kind: str) -> Library:
    if kind == "gpt2":
        return byte_level(specials=("<|endoftext|>",))
    if kind == "smollm":
        specials = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
        return byte_level(pre_tokenizers.Digits(individual_digits=True), specials=specials)
    if kind == "qwen2":
        made = byte_level(pre_tokenizers.Split(Regex(QWEN2), "isolated"), normalizer=normalizers.NFC())
        made.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
        made.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
        return made
    if kind == "llama3":
        made = byte_level(pre_tokenizers.Split(Regex(LLAMA3), "isolated"), ignore_merges=True)
        made.add_special_tokens(["<|begin_of_text|>", "<|eot_id|>"])
        around = [("<|begin_of_text|>", made.token_to_id("<|begin_of_text|>"))]
        made.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=around)
        return made
    return {"llama2": lambda: sentencepiece(True), "metaspace": lambda: sentencepiece(False)}.get(
        kind, lambda: bert(lower=kind == "bert")
    )()


FOREIGN = ["gpt2", "smollm", "qwen2", "llama3", "llama2", "metaspace", "bert", "cased"]
ROLES = {
    "gpt2": {"bos": "<|endoftext|>", "eos": "<|endoftext|>", "unk": "<|endoftext|>"},
    "smollm": {"bos": "<|im_start|>", "eos": "<|im_end|>", "unk": "<|endoftext|>", "pad": "<|im_end|>"},
    "qwen2": {"eos": "<|im_end|>", "pad": "<|endoftext|>"},
    "llama3": {"bos": "<|begin_of_text|>", "eos": "<|eot_id|>"},
    "llama2": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
    "metaspace": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
    "bert": {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"},
}
ROLES["cased"] = ROLES["bert"]


class Foreign:
    """A tokenizer as others make it: by the library, in a folder, and opened by us."""

    def __init__(self, kind: str, folder: Any) -> None:
        self.kind, self.folder, self.roles = kind, folder, ROLES[kind]
        self.library = make(kind)
        folder.mkdir()
        self.library.save(str(folder / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast"} | {f"{k}_token": v for k, v in self.roles.items()}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        self.ours = Tokenizer.load(folder)
        self.plain = Library.from_str(self.library.to_str())
        self.plain.encode_special_tokens = True

    @property
    def specials(self) -> list[str]:
        return sorted(set(self.roles.values()))


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Foreign]:
    made: dict[str, Foreign] = {}

    def get(kind: str) -> Foreign:
        if kind not in made:
            made[kind] = Foreign(kind, tmp_path_factory.mktemp("foreign") / kind)
        return made[kind]

    return get
