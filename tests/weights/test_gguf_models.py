"""A GGUF file gives the logits of the model it was made of, in every family and in every type of numbers."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGML_QUANT_SIZES, GGUFWriter
from gguf import GGMLQuantizationType as Kind
from gguf_files import MODELS, plain, reference, write
from reference_models import outputs

from lookback import weights
from lookback.errors import InputError
from lookback.models import TransformerConfig
from lookback.nn.mask import Padding
from lookback.weights.gguf import read_gguf

IDS = torch.randint(0, 37, (2, 24), generator=torch.Generator().manual_seed(0))
QUANTISED = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
DEQUANTISED = [
    *("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    *("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M", "IQ4_NL", "IQ4_XS"),
    *("BF16", "F16", "F32", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4"),
]
every = pytest.mark.parametrize("name", MODELS)


def same_logits(path: Path, theirs: object, padding: Padding | None = None) -> None:
    model = weights.load(path)
    real = torch.ones_like(IDS, dtype=torch.bool) if padding is None else padding.real()
    with torch.no_grad():
        hidden, _ = model.encode(IDS, padding=padding)
        states, logits = outputs(theirs, IDS, padding)
        torch.testing.assert_close(hidden[real], states[-1][real], rtol=0, atol=1e-4)
        if logits is not None:
            torch.testing.assert_close(model.unembed(hidden)[real], logits[real], rtol=0, atol=1e-4)


@every
def test_every_family(name: str, tmp_path: Path) -> None:
    model = reference(name)
    path = write(tmp_path / "model.gguf", name, model)
    same_logits(path, model)
    same_logits(path, model, Padding(24, (0, 7), (3, 0)))


@pytest.mark.parametrize("kind", QUANTISED)
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_every_type_that_can_be_written(kind: str, name: str, tmp_path: Path) -> None:
    """Against a model that holds the numbers the file holds."""
    model = reference(name)
    before = {at: tensor.clone() for at, tensor in model.state_dict().items()}
    same_logits(write(tmp_path / "model.gguf", name, model, lambda at, shape: Kind[kind]), model)
    assert any(not torch.equal(before[at], tensor) for at, tensor in model.state_dict().items())


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "bert encoder"])
def test_types_mixed_in_one_file(name: str, tmp_path: Path) -> None:
    mixed = {"q": "Q4_0", "k": "Q5_1", "v": "Q8_0", "ffn_down": "Q5_0", "ffn_up": "F16", "token_embd": "Q4_1"}

    def choose(at: str, shape: tuple[int, ...]) -> Kind:
        found = [kind for part, kind in mixed.items() if f"attn_{part}.weight" in at or f"{part}.weight" in at]
        return Kind[found[0]] if found else Kind.F32

    model = reference(name)
    path = write(tmp_path / "model.gguf", name, model, choose)
    assert len(set(weights.open_model(path).source.kinds.values())) > 3
    same_logits(path, model)


@pytest.mark.parametrize("kind", DEQUANTISED)
def test_every_type_that_the_package_can_turn_into_numbers(kind: str, tmp_path: Path) -> None:
    block, size = GGML_QUANT_SIZES[Kind[kind]]
    raw = np.random.default_rng(0).integers(0, 60, (3, 2 * size), dtype=np.uint8)
    writer = GGUFWriter(tmp_path / "one.gguf", "llama")
    whole = {"F32": np.float32, "F16": np.float16}.get(kind)
    writer.add_tensor("a", raw if whole is None else raw.view(whole), raw_dtype=Kind[kind])
    writer.add_tensor("b", np.ones(5, dtype=np.float32))
    finish(writer)
    file = read_gguf(tmp_path / "one.gguf")
    assert file.tensors["a"].shape == (3, 2 * block)
    assert file.tensors["a"].kind_name == kind
    expected = gguf.quants.dequantize(raw.view(whole) if whole else raw, Kind[kind]).astype(np.float32)
    assert file.read("a").numpy().tobytes() == expected.tobytes()
    assert file.read("b").tolist() == [1.0] * 5


@pytest.mark.parametrize("kind", sorted(kind.name for kind in Kind if kind.name not in (*DEQUANTISED, "F64")))
def test_a_type_that_it_cannot_is_one_sentence(kind: str, tmp_path: Path) -> None:
    _, size = GGML_QUANT_SIZES[Kind[kind]]
    writer = GGUFWriter(tmp_path / "one.gguf", "llama")
    writer.add_tensor("a", np.zeros((3, 2 * size), dtype=np.uint8), raw_dtype=Kind[kind])
    finish(writer)
    with pytest.raises(InputError, match=f"holds a as {kind}, which the gguf package cannot") as caught:
        read_gguf(tmp_path / "one.gguf").read("a")
    assert "\n" not in str(caught.value)


def test_double_precision(tmp_path: Path) -> None:
    writer = GGUFWriter(tmp_path / "one.gguf", "llama")
    writer.add_tensor("a", np.array([[0.1, 1e-30]]), raw_dtype=Kind.F64)
    finish(writer)
    assert torch.equal(read_gguf(tmp_path / "one.gguf").read("a"), torch.tensor([[0.1, 1e-30]]))


def test_llama3_is_known_by_its_factors(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", "llama llama3", reference("llama llama3"))
    config = weights.open_model(path).config
    assert isinstance(config, TransformerConfig)
    assert config.rotary_scaling is not None
    assert (config.rotary_scaling.kind, config.rotary_scaling.factor) == ("llama3", 32.0)


@pytest.mark.parametrize("factors", [[1.0] * 7 + [5.0, 2.0], [2.0] * 8, [1.0] * 4, [0.0] * 8, [float("nan")] * 8])
def test_other_factors_are_refused(factors: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gguf_files._factors", lambda model: np.array(factors, dtype=np.float32))
    path = write(tmp_path / "model.gguf", "llama llama3", reference("llama llama3"))
    with pytest.raises(InputError, match="not Llama 3's"):
        weights.load(path)


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda w: w.add_rope_scaling_attn_factors(1.5), "attn_factor"),
        (lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE), "longrope"),
    ],
    ids=["attention factor", "longrope"],
)
def test_what_would_be_other_arithmetic_is_named(
    add: object, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gguf_files._rotary_metadata", lambda writer, config: add(writer))  # type: ignore[operator]
    with pytest.raises(InputError, match=said):
        weights.load(write(tmp_path / "model.gguf", "llama", reference("llama")))


def test_half_of_a_head_turned_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GGUFWriter, "add_rope_dimension_count", lambda self, count: self.add_uint32(ROPE, count // 2))
    with pytest.raises(InputError, match=r"rope\.dimension_count"):
        weights.load(write(tmp_path / "model.gguf", "llama", reference("llama")))


ROPE = "llama.rope.dimension_count"


def test_an_encoder_says_how_it_is_pooled(tmp_path: Path) -> None:
    opened = weights.open_model(write(tmp_path / "model.gguf", "bert encoder", reference("bert encoder")))
    assert opened.pooling is not None
    assert opened.pooling.kind == "mean"


def test_what_came_as_gguf_goes_to_transformers(tmp_path: Path) -> None:
    from reference_models import reopened

    model = reference("qwen2")
    weights.save(weights.load(write(tmp_path / "model.gguf", "qwen2", model, plain)), tmp_path / "out")
    (expected, got) = (outputs(one, IDS)[1] for one in (model, reopened(tmp_path / "out")))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


def finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
