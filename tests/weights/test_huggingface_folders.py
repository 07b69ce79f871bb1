"""The forms that a Hugging Face folder comes in, and those that are refused, each with one sentence."""

from __future__ import annotations

import json
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference_models import REFERENCES, C, L, V, outputs, random_reference, reopened, saved_reference
from safetensors.torch import load_file, save_file
from torch import Tensor

from lookback import weights
from lookback.errors import InputError
from lookback.models import LanguageModel

FILE, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
IDS = torch.randint(0, V, (2, 13), generator=torch.Generator().manual_seed(0))
FAMILIES = ["gpt2", "bert", "llama", "mistral", "qwen2 with windows above", "qwen3"]
every = pytest.mark.parametrize("name", FAMILIES)
Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def refused(path: Path) -> str:
    """The one sentence, with little memory used for it."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            weights.load(path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 1500
    return said


def rewrite(folder: Path, change: Change) -> None:
    save_file({name: t.contiguous() for name, t in change(load_file(folder / FILE)).items()}, folder / FILE)


def reconfigure(folder: Path, **changes: Any) -> Path:
    path = folder / CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def logits(model: LanguageModel) -> Tensor:
    with torch.no_grad():
        return model(IDS)[0]


def same(folder: Path, name: str) -> None:
    expected = outputs(random_reference(name), IDS)[1]
    torch.testing.assert_close(logits(weights.load(folder)), expected, rtol=0, atol=1e-4)


@every
def test_shards_with_an_index(name: str, tmp_path: Path) -> None:
    random_reference(name).save_pretrained(tmp_path, max_shard_size="6KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert (tmp_path / INDEX).exists()
    same(tmp_path, name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype: torch.dtype, tmp_path: Path) -> None:
    saved_reference("qwen3", tmp_path, dtype)
    stored = load_file(tmp_path / FILE)["model.norm.weight"]
    assert stored.dtype == dtype
    assert torch.equal(weights.load(tmp_path).get_parameter("final_norm.weight"), stored.float())


@every
def test_without_the_prefix(name: str, tmp_path: Path) -> None:
    """As files of the bare model are: wte.weight, embeddings.…, layers.…"""
    saved_reference(name, tmp_path)
    prefix = {"gpt2": "transformer.", "bert": "bert."}.get(name, "model.")
    rewrite(tmp_path, lambda tensors: {at.removeprefix(prefix): tensor for at, tensor in tensors.items()})
    same(tmp_path, name)


def test_an_encoder_in_any_of_its_forms(tmp_path: Path) -> None:
    """With and without the prefix and the pooler."""
    expected = outputs(random_reference("bert encoder"), IDS)[0][-1]
    saved_reference("bert encoder", tmp_path)
    forms: list[Change] = [
        lambda tensors: tensors,
        lambda tensors: {f"bert.{at}": tensor for at, tensor in tensors.items()},
        lambda tensors: {at: tensor for at, tensor in tensors.items() if "pooler" not in at},
    ]
    for form in forms:
        rewrite(tmp_path, form)
        with torch.no_grad():
            hidden, _ = weights.load(tmp_path).encode(IDS)
        torch.testing.assert_close(hidden, expected, rtol=0, atol=1e-4)


def test_a_bert_for_pretraining(tmp_path: Path) -> None:
    """As Google's are: with a pooler, a second head, copies of the tied tensors, and LayerNorm's older names."""
    saved_reference("bert", tmp_path)

    def older(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors |= {
            "bert.pooler.dense.weight": torch.zeros(24, 24),
            "bert.pooler.dense.bias": torch.zeros(24),
            "cls.seq_relationship.weight": torch.zeros(2, 24),
            "cls.seq_relationship.bias": torch.zeros(2),
            "bert.embeddings.position_ids": torch.arange(C)[None],
            "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone(),
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
        }
        names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, old in names.items():
            tensors = {at.replace(new, old): tensor for at, tensor in tensors.items()}
        return tensors

    rewrite(tmp_path, older)
    reconfigure(tmp_path, architectures=["BertForPreTraining"])
    assert any(at.endswith("gamma") for at in load_file(tmp_path / FILE))
    same(tmp_path, "bert")


def test_buffers_are_not_parameters(tmp_path: Path) -> None:
    for name, buffers in {
        "gpt2": {"attn.bias": torch.ones(1, 1, C, C).bool(), "attn.masked_bias": torch.tensor(-1e9)},
        "llama": {"self_attn.rotary_emb.inv_freq": torch.ones(3)},
    }.items():
        folder = saved_reference(name, tmp_path / name)
        at = {"gpt2": "transformer.h", "llama": "model.layers"}[name]
        more = {f"{at}.{i}.{part}": value.clone() for i in range(L) for part, value in buffers.items()}
        rewrite(folder, lambda tensors, more=more: tensors | more)
        same(folder, name)


TIED = {
    "gpt2": ("transformer.wte.weight", "lm_head.weight"),
    "llama tied": ("model.embed_tokens.weight", "lm_head.weight"),
    "bert": ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
}


@pytest.mark.parametrize(("name", "twins"), TIED.items())
def test_tied_weights_in_either_form(name: str, twins: tuple[str, str], tmp_path: Path) -> None:
    saved_reference(name, tmp_path)
    embedding, head = twins
    one = load_file(tmp_path / FILE)[embedding]
    for there in ((embedding,), (head,), (embedding, head)):

        def keep(tensors: dict[str, Tensor], there: tuple[str, ...] = there) -> dict[str, Tensor]:
            others = {at: tensor for at, tensor in tensors.items() if at not in twins}
            return others | {at: one.clone() for at in there}

        rewrite(tmp_path, keep)
        same(tmp_path, name)
        assert head not in weights.open_model(tmp_path).source.shapes

    rewrite(tmp_path, lambda tensors: tensors | {head: one + 1e-3})
    said = refused(tmp_path)
    assert f"ties {head} to {embedding}" in said
    assert "two that differ" in said
    rewrite(tmp_path, lambda tensors: tensors | {head: one[:-1]})
    assert "two that differ" in refused(tmp_path)
    rewrite(tmp_path, lambda tensors: {at: tensor for at, tensor in tensors.items() if at not in twins})
    assert f"{embedding} is missing" in refused(tmp_path)


@pytest.mark.parametrize("name", ["gpt2 untied", "llama"])
def test_untied_weights_must_both_be_there(name: str, tmp_path: Path) -> None:
    for at in ("lm_head.weight", {"llama": "model.embed_tokens.weight"}.get(name, "transformer.wte.weight")):
        saved_reference(name, tmp_path)
        rewrite(tmp_path, lambda tensors, at=at: {a: tensor for a, tensor in tensors.items() if a != at})
        said = refused(tmp_path)
        assert f"{at} is missing" in said
        assert said.count("is missing") == 1


@pytest.mark.parametrize("suffix", [".bin", ".pt", ".pth", ".ckpt"])
def test_pickles_are_refused_with_the_way_out_and_nothing_in_them_runs(suffix: str, tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    (tmp_path / FILE).unlink()
    (tmp_path / f"pytorch_model{suffix}").write_bytes(pickle.dumps(Bomb(str(tmp_path / "went off"))))
    said = refused(tmp_path)
    assert "is pickled" in said
    assert "save_pretrained" in said
    assert not (tmp_path / "went off").exists()
    pickle.loads((tmp_path / f"pytorch_model{suffix}").read_bytes())  # so it would have gone off
    assert (tmp_path / "went off").exists()


def test_a_pickle_by_the_name_of_safetensors(tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    (tmp_path / FILE).write_bytes(pickle.dumps(Bomb(str(tmp_path / "went off"))))
    refused(tmp_path)
    (tmp_path / FILE).rename(tmp_path / "model.bin")
    assert "is a file" in refused(tmp_path / "model.bin")
    assert not (tmp_path / "went off").exists()


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.path),)


def test_a_pickle_beside_safetensors_is_not_looked_at(tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(str(tmp_path / "went off"))))
    same(tmp_path, "llama")
    assert not (tmp_path / "went off").exists()


@pytest.mark.parametrize(
    "shard", ["../outside.safetensors", "/etc/passwd", "..", "a/b.safetensors", "..\\outside.safetensors", "", "."]
)
def test_an_index_that_names_what_lies_elsewhere(shard: str, tmp_path: Path) -> None:
    folder = saved_reference("llama", tmp_path / "model")
    (folder / FILE).rename(tmp_path / "outside.safetensors")
    names = load_file(tmp_path / "outside.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(names, shard)}))
    said = refused(folder)
    assert "outside its folder" in said or shard in ("", ".", "..")


@pytest.mark.parametrize("contents", ["{}", "[]", '{"weight_map": {}}', '{"weight_map": {"a": 1}}', "x", ""])
def test_an_index_that_is_none(contents: str, tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    (tmp_path / INDEX).write_text(contents)
    assert INDEX in refused(tmp_path)


def test_shards_missing_twice_or_short(tmp_path: Path) -> None:
    random_reference("llama").save_pretrained(tmp_path, max_shard_size="6KB")
    first, second = sorted(tmp_path.glob("*.safetensors"))[:2]
    whole = first.read_bytes()
    first.write_bytes(whole[:-1])
    assert first.name in refused(tmp_path)
    first.write_bytes(second.read_bytes())
    assert "which another shard holds already" in refused(tmp_path)
    first.unlink()
    assert "is missing" in refused(tmp_path)


@every
@given(at=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_anywhere(name: str, at: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = saved(name, tmp_path_factory)
    path = folder / FILE
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: int(at * len(whole))])
        assert "is not a whole safetensors file" in refused(folder)
    finally:
        path.write_bytes(whole)


_SAVED: dict[str, Path] = {}


def saved(name: str, factory: pytest.TempPathFactory) -> Path:
    if name not in _SAVED or not _SAVED[name].exists():
        _SAVED[name] = saved_reference(name, factory.mktemp("folder"))
    return _SAVED[name]


def test_wild_headers(tmp_path: Path) -> None:
    path = saved_reference("llama", tmp_path) / FILE
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    names = [name for name in header if name != "__metadata__"]

    def with_header(changes: dict[str, Any]) -> None:
        text = json.dumps({**header, names[0]: {**header[names[0]], **changes}}).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + body)

    wild: list[dict[str, Any]] = [
        {"shape": [2**31, 2**31]},
        {"shape": [2**62, 2**62]},
        {"shape": [-1]},
        {"data_offsets": [2**40, 2**40 + 4]},
        {"data_offsets": [0, 2**60]},
        {"data_offsets": [4, 0]},
        {"data_offsets": header[names[1]]["data_offsets"]},
        {"dtype": "F33"},
    ]
    for change in wild:
        with_header(change)
        refused(tmp_path)
    for length in (2**60, 2**64 - 1, 0, 7):
        path.write_bytes(struct.pack("<Q", length) + content[8:])
        refused(tmp_path)


@every
def test_missing_unknown_and_misshapen_tensors_are_listed(name: str, tmp_path: Path) -> None:
    saved_reference(name, tmp_path)
    norm = {"gpt2": "transformer.ln_f.weight", "bert": "cls.predictions.bias"}.get(name, "model.norm.weight")
    ups = {"gpt2": "transformer.h.1.mlp.c_fc.weight", "bert": "bert.encoder.layer.1.intermediate.dense.weight"}
    up = ups.get(name, "model.layers.1.mlp.up_proj.weight")

    def change(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors["stranger.weight"] = tensors.pop(norm)
        tensors[up] = tensors[up][:-1]
        return tensors

    rewrite(tmp_path, change)
    said = refused(tmp_path)
    assert f"{norm} is missing" in said
    assert "stranger.weight is unknown" in said
    assert f"{up} is [" in said


def test_a_name_with_and_without_the_prefix_is_refused(tmp_path: Path) -> None:
    saved_reference("gpt2", tmp_path)
    rewrite(tmp_path, lambda tensors: tensors | {"wte.weight": tensors["transformer.wte.weight"] + 1})
    assert "wte.weight is unknown" in refused(tmp_path)


@pytest.mark.parametrize("kind", ["dynamic", "longrope", "su", "proportional", 5, ["yarn"]], ids=str)
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("spelling", ["type", "rope_type"])
def test_other_scalings_are_refused_by_name(kind: Any, key: str, spelling: str, tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    reconfigure(tmp_path, **{"rope_parameters": None, key: {spelling: kind, "factor": 2.0}})
    said = refused(tmp_path)
    assert f"by {kind}; supported: linear, llama3, yarn" in said


@pytest.mark.parametrize(
    "scaling",
    [
        "linear",
        5,
        [],
        ["yarn"],
        {"rope_type": "linear", "factor": 0},
        {"rope_type": "linear", "factor": -2.0},
        {"rope_type": "linear", "factor": "2"},
        {"rope_type": "linear", "factor": float("nan")},
        {"rope_type": "linear", "factor": float("inf")},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0},
        {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 0},
        {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 10**30},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 0},
        {"rope_type": "yarn", "factor": 4.0, "beta_fast": 0},
        {"rope_type": "yarn", "factor": 4.0, "beta_slow": -1},
        {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1},
        {"rope_type": "yarn", "factor": 4.0, "rope_theta": 0},
        {"rope_type": "yarn", "factor": 4.0, "attention_factor": "1"},
        {"rope_type": "yarn", "factor": 4.0, "attention_factor": 0},
        {"rope_type": "yarn", "factor": 4.0, "mscale": []},
        {"rope_type": "yarn", "factor": 4.0, "truncate": "no"},
        {"rope_type": "default", "partial_rotary_factor": 0.5},
        {"rope_theta": "10000"},
    ],
    ids=str,
)
def test_scalings_that_cannot_be(scaling: Any, tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    reconfigure(tmp_path, rope_parameters=scaling)
    if scaling == []:  # as good as null
        weights.load(tmp_path)
    else:
        refused(tmp_path)


@pytest.mark.parametrize("kind", ["gemma", "t5", None, 5, ["llama"], {"llama": 1}, "LLAMA", ""], ids=str)
def test_another_model_type(kind: Any, tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    said = refused(reconfigure(tmp_path, model_type=kind))
    assert "this version opens gpt2, bert, llama, mistral, qwen2, qwen3" in said


WRONG: list[Any] = ["4", 4.5, True, [], [4], {"a": 1}, -1, 10**9, 10**30, 10**400, float("nan"), float("inf"), "片"]
USED = {  # what changes the arithmetic or a shape, by the families that have it
    "vocab_size num_hidden_layers num_attention_heads hidden_size intermediate_size": ["bert", "llama", "qwen3"],
    "num_key_value_heads head_dim": ["llama", "mistral", "qwen3"],
    "max_position_embeddings type_vocab_size": ["bert"],
    "n_positions n_layer n_head n_embd n_inner": ["gpt2"],
}
SIZES = [(name, size) for sizes, names in USED.items() for name in names for size in sizes.split()]


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_sizes_that_cannot_be(name: str, size: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a configuration says: one sentence, in a moment, and no memory for it."""
    folder = saved(name, tmp_path_factory)
    before = (folder / CONFIG).read_text()
    try:
        for value in WRONG:
            reconfigure(folder, **{size: value})
            refused(folder)
    finally:
        (folder / CONFIG).write_text(before)


@every
def test_any_option_of_a_wild_value_is_refused_or_harmless(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = saved(name, tmp_path_factory)
    before = (folder / CONFIG).read_text()
    try:
        for option in json.loads(before):
            for value in (*WRONG, None, 0, ""):
                reconfigure(folder, **{option: value})
                try:
                    opened = weights.open_model(folder)
                    weights.describe(opened)
                    logits(opened.load())
                except InputError as error:
                    assert "\n" not in str(error), (option, value)
    finally:
        (folder / CONFIG).write_text(before)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("gpt2", {"activation_function": "relu"}, "activation_function = relu"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
        ("bert", {"hidden_act": "relu"}, "hidden_act = relu"),
        ("bert", {"is_decoder": True}, "is_decoder"),
        ("bert", {"position_embedding_type": "relative_key"}, "relative_key"),
        ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act = gelu"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("llama", {"num_key_value_heads": 3}, "share 3"),
        ("qwen3", {"head_dim": 7}, "even"),
    ],
    ids=str,
)
def test_what_would_be_other_arithmetic_is_named(name: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    saved_reference(name, tmp_path)
    assert said in refused(reconfigure(tmp_path, **changes))


def test_a_mistral_that_does_not_say_has_the_window_of_the_first(tmp_path: Path) -> None:
    """As the reference reads it; null is none."""
    path = saved_reference("mistral", tmp_path) / CONFIG
    for said, window in (({}, 4096), ({"sliding_window": None}, None), ({"sliding_window": 7}, 7)):
        record = {name: value for name, value in json.loads(path.read_text()).items() if name != "sliding_window"}
        path.write_text(json.dumps({**record, **said}))
        assert weights.open_model(tmp_path).config.sliding_window == window  # type: ignore[attr-defined]


@pytest.mark.parametrize("first", [0, 1, 3, 9])
def test_windows_by_the_first_layer_that_has_one(first: int, tmp_path: Path) -> None:
    """As configurations say it that don't list every layer's kind."""
    name = "qwen2 with windows above"
    path = saved_reference(name, tmp_path) / CONFIG
    record = {option: value for option, value in json.loads(path.read_text()).items() if option != "layer_types"}
    path.write_text(json.dumps({**record, "max_window_layers": first}))
    expected = outputs(reopened(tmp_path), IDS)[1]
    torch.testing.assert_close(logits(weights.load(tmp_path)), expected, rtol=0, atol=1e-4)


def test_every_reference_says_what_it_is() -> None:
    """The list of models held against the reference has every family that opens."""
    from lookback.weights.families import FAMILIES as NAMES

    assert {names.architecture for names in NAMES} <= {kind for kind, _ in REFERENCES.values()}
