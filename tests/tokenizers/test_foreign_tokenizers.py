"""Hugging Face's ``tokenizer.json`` of every kind, opened by us and by its own library."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tokenizers
from lookback.errors import InputError
from lookback.tokenizers import Tokenizer
from lookback.tokenizers import tokenizer as module

BYTE_LEVEL = ["gpt2", "smollm", "qwen2", "llama3"]
SENTENCEPIECE = ["llama2", "metaspace"]
WORDPIECE = ["bert", "cased"]
FOREIGN = [*BYTE_LEVEL, *SENTENCEPIECE, *WORDPIECE]
SPECIALS = ["<|endoftext|>", "<|im_end|>", "<s>", "</s>", "<unk>", "[MASK]", "[SEP]", "<|eot_id|>", "<think>", "<0x0A>"]

fragments = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(["we'll", " said", "WORD", "床前明月光", "，", "。\n", "e\u0301", "\u1100\u1161", "İ", "ß", "😀"]),
    st.sampled_from([" ", "  ", "\n", " \n\n ", "\r\n", "\t", "1234", "naïve", "x", "月" * 20, "\u3000", "\u00a0"]),
)
texts = st.lists(fragments, max_size=25).map("".join)
marked = st.lists(fragments | st.sampled_from(SPECIALS), max_size=25).map("".join)


@pytest.mark.parametrize("kind", FOREIGN)
@given(text=marked)
@example(text="")
@example(text=" <s> <|im_end|>[MASK] x")
def test_plain_text_has_the_library_s_ids_and_no_special_token(foreign, kind, text):
    ours, library = foreign(kind).ours, foreign(kind).plain
    encoding = ours.encode(text)
    assert encoding.ids == library.encode(text, add_special_tokens=False).ids
    assert not set(encoding.ids) & (ours.specials - {ours.unknown})


@pytest.mark.parametrize("kind", FOREIGN)
@given(text=marked)
def test_special_tokens_that_are_asked_for_are_the_library_s(foreign, kind, text):
    ids = foreign(kind).library.encode(text, add_special_tokens=False).ids
    assert foreign(kind).ours.encode(text, special_tokens=True).ids == ids


@pytest.mark.parametrize("kind", [*BYTE_LEVEL, *SENTENCEPIECE])
@given(text=texts)
def test_what_is_decoded_is_the_library_s(foreign, kind, text):
    ours = foreign(kind).ours
    ids = ours.encode(text).ids
    assert ours.decode(ids) == foreign(kind).library.decode(ids)
    if ours.reversible:
        assert ours.decode(ids) == text
    if kind == "qwen2":
        assert ours.decode(ids) == unicodedata.normalize("NFC", text)
    if kind == "llama2":  # All that SentencePiece changes.
        assert ours.decode(ids) == text.replace("▁", " ")


@pytest.mark.parametrize("kind", WORDPIECE)
@given(text=texts)
def test_words_are_decoded_as_by_the_library_but_for_spaces(foreign, kind, text):
    ours = foreign(kind).ours
    ids = ours.encode(text).ids
    assert ours.decode(ids).replace(" ", "") == foreign(kind).library.decode(ids).replace(" ", "")


def test_which_are_reversible(foreign):
    assert [kind for kind in FOREIGN if foreign(kind).ours.reversible] == ["gpt2", "smollm", "llama3"]


@pytest.mark.parametrize("kind", FOREIGN)
@given(data=st.data())
def test_a_stream_gives_what_decode_gives(foreign, kind, data):
    made = foreign(kind).ours
    ids = data.draw(st.lists(st.integers(0, made.size - 1), max_size=12))
    stream = made.stream()
    pushed = [stream.push(token) for token in ids]
    assert "".join(pushed) + stream.finish() == made.decode(ids)


def test_a_stream_strips_a_space_at_the_very_beginning_only(foreign):
    made = foreign("llama2").ours
    stream = made.stream()
    ids = [made.roles["bos"], *made.encode("We 😀 said").ids]
    pushed = [stream.push(token) for token in ids]
    assert "".join(pushed) == "We 😀 said"
    assert pushed[0] == ""
    assert "" in pushed[2:]  # inside 😀
    assert made.decode(made.encode(" ").ids) == " "


@pytest.mark.parametrize("kind", FOREIGN)
@given(text=texts, block=st.integers(1, 40))
def test_ids_in_blocks_are_those_of_encode(foreign, kind, text, block):
    made = foreign(kind).ours
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        patch.setattr(module, "_BATCH", 3)
        assert made.ids(text).tolist() == made.encode(text).ids


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("text", ["we had said.\n  " * 1_000, "床前明月光，\n" * 2_000, "a" + " " * 9_000 + "\n b"])
def test_long_texts(foreign, kind, text, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 1 << 11)
    made = foreign(kind).ours
    assert made.ids(text).tolist() == made.encode(text).ids


def test_long_texts_are_cut(foreign):
    for kind in FOREIGN:
        assert max(map(len, foreign(kind).ours._cutter.blocks("we had 12 said.\n " * 900, 1000))) < 2000


def normalized(kind: str, text: str) -> str:
    if kind in WORDPIECE:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        return text.lower()
    return unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("kind", FOREIGN)
@given(text=texts)
def test_spans_are_those_of_the_original_text(foreign, kind, text):
    made = foreign(kind).ours
    text = text.replace("▁", "")  # A space to SentencePiece.
    encoding = made.encode(text)
    raw = text.encode()
    last = 0
    for token, span in zip(encoding.ids, encoding.spans, strict=True):
        assert raw[span.byte_start : span.byte_stop].decode() == text[span.start : span.stop]
        assert span.start >= last
        last = span.start
        piece = made.token_bytes(token)
        if span.start == span.stop:
            assert piece == b" "
            assert span.start == 0
        elif token != made.unknown and b"\xef\xbf\xbd" not in piece:
            shown = normalized(kind, text[span.start : span.stop]).encode()
            assert normalized(kind, piece.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") in (
                b" " + shown
            )
    covered = {place for span in encoding.spans for place in range(span.start, span.stop)}
    if kind not in WORDPIECE:
        assert covered == set(range(len(text)))


@pytest.mark.parametrize(
    ("kind", "text", "spans"),
    [
        ("qwen2", "e\u0301x", [(0, 2), (2, 3)]),
        ("qwen2", "x\u1100\u1161x", [(0, 1), (1, 3), (3, 4)]),
        ("bert", "NA\u0308 x", [(0, 3), (4, 5)]),
        ("llama2", "龘", [(0, 0), (0, 1)]),
        ("metaspace", "龘", [(0, 0), (0, 1)]),
        ("metaspace", " 龘x", [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_spans_of_what_is_normalized_and_of_spaces_put_before(foreign, kind, text, spans):
    found = [(span.start, span.stop) for span in foreign(kind).ours.encode(text).spans]
    assert list(dict.fromkeys(found)) == spans  # Pieces of one character share its span.


@pytest.mark.parametrize("kind", FOREIGN)
def test_transformers_agrees_on_ids_roles_and_what_is_put_around(foreign, kind, tmp_path):
    from transformers import AutoTokenizer

    made = foreign(kind).ours
    made.save(tmp_path)
    text = "We said naïve <s> 床前明月光 é 1234\n  x😀"
    for folder in (foreign(kind).folder, tmp_path):
        opened = AutoTokenizer.from_pretrained(folder)
        ids = opened(text, split_special_tokens=True)["input_ids"]
        assert [*made.prefix, *made.encode(text).ids, *made.suffix] == ids
        for role, name in foreign(kind).roles.items():
            assert getattr(opened, f"{role}_token_id") == made.roles[role] == made.special_names[name]
    again = Tokenizer.load(tmp_path)
    fields = ["kind", "size", "end", "ends", "begin", "unknown", "prefix", "suffix", "specials", "roles", "fingerprint"]
    assert [getattr(again, field) for field in fields] == [getattr(made, field) for field in fields]


def test_prefix_suffix_and_ends(foreign):
    around = {kind: (foreign(kind).ours.prefix, foreign(kind).ours.suffix) for kind in FOREIGN}
    nothing = ((), ())
    begin = foreign("llama3").ours.begin
    assert around == {
        **dict.fromkeys(("gpt2", "smollm", "qwen2"), nothing),
        "llama3": ((begin,), ()),
        **dict.fromkeys(SENTENCEPIECE, ((1,), ())),
        **dict.fromkeys(WORDPIECE, ((2,), (3,))),
    }
    assert {kind: foreign(kind).ours.end for kind in ("gpt2", "smollm", "llama2", "bert")} == {
        "gpt2": 0,
        "smollm": 2,
        "llama2": 2,
        "bert": 3,
    }
    assert (foreign("bert").ours.mask, foreign("bert").ours.begin, foreign("bert").ours.unknown) == (4, 2, 1)
    assert [foreign(kind).ours.divider for kind in ("gpt2", "smollm", "llama2", "bert")] == [0, 2, 1, 2]
    assert foreign("gpt2").ours.unknown is None  # Its unk_token stands for nothing that a text can hold.
    with pytest.raises(InputError, match="no mask token"):
        _ = foreign("gpt2").ours.mask


def copied(foreign, kind: str, folder, **files: object) -> Tokenizer:
    (folder / "tokenizer.json").write_text((foreign(kind).folder / "tokenizer.json").read_text("utf-8"), "utf-8")
    for name, record in files.items():
        (folder / f"{name}.json").write_text(json.dumps(record))
    return Tokenizer.load(folder)


def test_roles_come_from_whichever_file_has_them(foreign, tmp_path):
    made = copied(foreign, "llama3", tmp_path)
    assert (made.ends, made.begin, made.prefix) == ((), None, (made.special_names["<|begin_of_text|>"],))
    with pytest.raises(InputError, match="names no end token; give its eos_token"):
        _ = made.end
    begin, eot = (made.special_names[name] for name in ("<|begin_of_text|>", "<|eot_id|>"))
    made = copied(foreign, "llama3", tmp_path, config={"bos_token_id": begin, "eos_token_id": 5})
    assert (made.begin, made.ends) == (begin, (5,))
    made = copied(foreign, "llama3", tmp_path, generation_config={"eos_token_id": [eot, begin, 10**6]})
    assert (made.end, made.ends) == (eot, (eot, begin, 5))
    special = {"eos_token": {"content": "<|begin_of_text|>"}}
    made = copied(foreign, "llama3", tmp_path, special_tokens_map=special)
    assert made.ends == (begin, eot, 5)
    assert 5 not in made.specials
    made.save(tmp_path / "again")
    assert Tokenizer.load(tmp_path / "again").ends == made.ends
    made = copied(foreign, "llama3", tmp_path, tokenizer_config={"eos_token": "<|eot_id|>", "add_bos_token": False})
    assert (made.end, made.prefix) == (eot, ())
    made.save(tmp_path / "more")
    assert Tokenizer.load(tmp_path / "more").prefix == ()


def test_tokens_from_the_files_beside(foreign, tmp_path):
    size = foreign("gpt2").ours.size
    decoder = {str(size): {"content": "<|user|>", "special": True}, "0": {"content": "<|endoftext|>", "special": True}}
    config = {"added_tokens_decoder": decoder, "eos_token": "<|user|>", "additional_special_tokens": ["The"]}
    made = copied(foreign, "gpt2", tmp_path, tokenizer_config=config, added_tokens={"<call>": size + 1})
    assert made.size == size + 2
    assert made.end == size
    assert size not in made.encode("<|user|>").ids
    assert made.encode("<call><|user|>", special_tokens=True).ids == [size + 1, size]
    assert made.encode("<call>").ids == [size + 1]
    assert made.decode([size + 1, size]) == "<call>"


def test_spaces_that_added_tokens_take_in(foreign, tmp_path):
    library = tokenizers.Tokenizer.from_str(foreign("gpt2").library.to_str())
    flags = [tokenizers.AddedToken("<l>", lstrip=True), tokenizers.AddedToken("<r>", rstrip=True)]
    library.add_special_tokens([*flags, tokenizers.AddedToken("<w>", single_word=True)])
    library.save(str(tmp_path / "tokenizer.json"))
    made = Tokenizer.load(tmp_path)
    for text in ["a  <l>  b", "a <r> \n b <r>", "x<w> <w>, <w>x", "<l><r> <l> ", " <l><w><r>"]:
        encoded = library.encode(text)
        assert made.encode(text, special_tokens=True).ids == encoded.ids
        assert [(span.start, span.stop) for span in made.encode(text, special_tokens=True).spans] == encoded.offsets


def test_a_vocabulary_that_could_lose_bytes_refuses_them(foreign, tmp_path):
    document = json.loads(foreign("gpt2").library.to_str())
    document["model"]["vocab"] = {name: i for name, i in document["model"]["vocab"].items() if name not in ("ð", "é")}
    document["model"]["merges"] = [m for m in document["model"]["merges"] if not {"ð", "é"} & set("".join(m))]
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    made = Tokenizer.load(tmp_path)
    assert made.decode(made.ids("床，naïve")) == "床，naïve"
    for method in (made.encode, made.ids):
        with pytest.raises(InputError, match=r"'😀' \(U\+1F600\) at position 3 is not in the vocabulary"):
            method("we 😀")
    with pytest.raises(InputError, match="position 16"):
        made.encode("<|endoftext|>we 😀", special_tokens=True)


def test_a_space_before_the_first_word(foreign, tmp_path):
    library = tokenizers.Tokenizer.from_str(foreign("gpt2").library.to_str())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    library.save(str(tmp_path / "tokenizer.json"))
    made = Tokenizer.load(tmp_path)
    for text in ["We said", " We", "床", "a<|endoftext|>b", ""]:
        assert made.encode(text, special_tokens=True).ids == library.encode(text).ids
        assert made.decode(library.encode(text).ids) == library.decode(library.encode(text).ids)
    assert not made.reversible
    assert made.encode("床").spans[0] == (0, 0, 0, 0)
    long = "we had said " * 9_000
    assert made.ids(long).tolist() == library.encode(long).ids


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"type": "Unigram", "vocab": [["a", 0.0]]}, "Unigram behind ByteLevel"),
        ({"end_of_word_suffix": "</w>"}, "BPE behind ByteLevel"),
    ],
)
def test_other_kinds_are_refused_by_name(foreign, tmp_path, change, named):
    document = json.loads(foreign("gpt2").library.to_str())
    document["model"] |= change
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"tokenizer.json is of a kind that isn't supported: {named}"):
        Tokenizer.load(tmp_path)


def test_a_damaged_record_is_named(foreign, tmp_path):
    for name in ("tokenizer_config", "config", "generation_config", "special_tokens_map", "added_tokens"):
        with pytest.raises(InputError, match=rf"{name}.json is damaged"):
            copied(foreign, "gpt2", tmp_path, **{name: [1]})
        (tmp_path / f"{name}.json").unlink()
