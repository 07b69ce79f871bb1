"""Our own folders: what is saved comes back bit for bit, and a damaged one is refused before anything is allocated."""

from __future__ import annotations

import json
import resource
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import all_configs, random_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from lookback import weights
from lookback.errors import InputError
from lookback.models import FAMILIES, LanguageModel, build, configure
from lookback.models.language_model import Config
from lookback.models.registry import STYLES

FILE, CONFIG = "model.safetensors", "config.json"
SHAPES = [*((family, None) for family in FAMILIES), *(("gpt", style) for style in STYLES), ("bert", "gpt2")]


def model_of(family: str = "gpt", style: str | None = None) -> LanguageModel:
    return build(configure(family, 11, preset="tiny", style=style, width=16), seed=1)


def saved(folder: Path, family: str = "gpt", style: str | None = None) -> Path:
    weights.save(model_of(family, style), folder, native=True)
    return folder


def bits(model: LanguageModel) -> dict[str, bytes]:
    return {name: p.detach().contiguous().view(torch.uint8).numpy().tobytes() for name, p in model.named_parameters()}


@pytest.mark.parametrize(("family", "style"), SHAPES)
def test_every_family_and_style_comes_back(family: str, style: str | None, tmp_path: Path) -> None:
    model = model_of(family, style)
    weights.save(model, tmp_path, native=True)
    loaded = weights.load(tmp_path)
    assert loaded.config == model.config
    assert type(loaded) is type(model)
    assert not loaded.training
    assert all(p.requires_grad and p.dtype == torch.float32 and p.data_ptr() % 64 == 0 for p in loaded.parameters())
    assert bits(loaded) == bits(model)
    ids = torch.arange(10)[None]
    assert torch.equal(loaded(ids)[0], model.eval()(ids)[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == [CONFIG, FILE]


@given(config=all_configs, seed=st.integers(0, 2**31 - 1))
def test_every_configuration_comes_back(config: Config, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("model")
    model = random_model(config, seed, torch.float32)
    weights.save(model, folder, native=True)
    loaded = weights.load(folder)
    assert loaded.config == config
    assert bits(loaded) == bits(model)


def test_numbers_of_any_kind_come_back(tmp_path: Path) -> None:
    """0.1, the smallest denormal, both zeros, infinities and NaN."""
    values = torch.tensor([0.1, 1e-45, 0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1 / 3, -1e38, 65504.1, 1])
    model = model_of("rnn")
    with torch.no_grad():
        model.get_parameter("output_bias").copy_(values)
    weights.save(model, tmp_path, native=True)
    assert bits(weights.load(tmp_path)) == bits(model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_load_as_fp32(dtype: torch.dtype, tmp_path: Path) -> None:
    saved(tmp_path)
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(tmp_path / FILE).items()}
    save_file(tensors, tmp_path / FILE)
    loaded = weights.load(tmp_path)
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, tensors[name].float())
    doubled = weights.load(tmp_path, dtype=torch.float64)
    assert all(p.dtype == torch.float64 for p in doubled.parameters())


def test_a_model_is_its_own_copy_of_the_file(tmp_path: Path) -> None:
    """Whatever happens to the file: another program that cuts it short must not end this one."""
    saved(tmp_path)
    model = weights.load(tmp_path)
    before = bits(model)
    with (tmp_path / FILE).open("r+b") as file:
        file.truncate(10)
    assert bits(model) == before


def test_a_model_replaces_the_one_before(tmp_path: Path) -> None:
    saved(tmp_path, "gpt")
    saved(tmp_path, "lstm")
    assert weights.load(tmp_path).config.family == "lstm"


def rewrite(path: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    save_file(change(load_file(path)), path)


def header_of(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(path: Path, header: dict[str, Any], body: bytes) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def damage_file(path: Path, how: str) -> None:
    """Damage a safetensors file in a way of that name."""
    content = path.read_bytes()
    header, body = header_of(path)
    names = [name for name in header if name != "__metadata__"]
    first, second = (header[name] for name in names[:2])
    match how:
        case "empty":
            path.write_bytes(b"")
        case "7 bytes":
            path.write_bytes(content[:7])
        case "header length only":
            path.write_bytes(content[:8])
        case "header cut":
            path.write_bytes(content[:50])
        case "header without tensors":
            path.write_bytes(content[: len(content) - len(body)])
        case "last byte missing":
            path.write_bytes(content[:-1])
        case "more than there should be":
            path.write_bytes(content + b"\0" * 8)
        case "header length 2^60":
            path.write_bytes(struct.pack("<Q", 2**60) + content[8:])
        case "header length 2^64 - 1":
            path.write_bytes(b"\xff" * 8 + content[8:])
        case "not JSON":
            path.write_bytes(content[:8] + b"\xff" * len(content[8:]))
        case "a list":
            path.write_bytes(struct.pack("<Q", 2) + b"[]")
        case "text":
            path.write_text("床前明月光" * 100, encoding="utf-8")
        case "a pickle":
            torch.save({}, path)
        case "a folder":
            path.unlink()
            path.mkdir()
        case "missing":
            path.unlink()
        case "overlapping offsets":
            second["data_offsets"] = [at - 4 for at in second["data_offsets"]]
            with_header(path, header, body)
        case "offsets past the end":
            first["data_offsets"] = [2**40, 2**40 + 4]
            with_header(path, header, body)
        case "offsets that run backwards":
            first["data_offsets"].reverse()
            with_header(path, header, body)
        case "a shape larger than its data":
            first["shape"] = [2**31, 2**31]
            with_header(path, header, body)
        case "a negative shape":
            first["shape"] = [-1]
            with_header(path, header, body)
        case "a shape of 2^64":
            first["shape"] = [2**62, 2**62]
            with_header(path, header, body)
        case "an unknown type":
            first["dtype"] = "F32X"
            with_header(path, header, body)
        case "integers":
            rewrite(path, lambda tensors: {name: tensor.int() for name, tensor in tensors.items()})
        case "complex numbers":
            rewrite(path, lambda tensors: {name: tensor.to(torch.complex64) for name, tensor in tensors.items()})
        case "no tensors":
            save_file({}, path)
        case "a tensor missing":
            rewrite(path, lambda tensors: dict(list(tensors.items())[1:]))
        case "a tensor too many":
            rewrite(path, lambda tensors: tensors | {"blocks.9.more": torch.zeros(3)})
        case "a tensor renamed":
            rewrite(path, lambda tensors: {name.replace("0", "7"): tensor for name, tensor in tensors.items()})
        case "a tensor turned":
            rewrite(path, lambda tensors: {name: tensor.t().contiguous() for name, tensor in tensors.items()})
        case "a row missing":
            rewrite(path, lambda tensors: {name: tensor[:-1].contiguous() for name, tensor in tensors.items()})
        case "an axis too many":
            rewrite(path, lambda tensors: {name: tensor[None] for name, tensor in tensors.items()})
        case _:
            raise AssertionError(how)


FILE_DAMAGE = """
empty; 7 bytes; header length only; header cut; header without tensors; last byte missing; more than there should be;
header length 2^60; header length 2^64 - 1; not JSON; a list; text; a pickle; a folder; missing; overlapping offsets;
offsets past the end; offsets that run backwards; a shape larger than its data; a negative shape; a shape of 2^64;
an unknown type; integers; complex numbers; no tensors; a tensor missing; a tensor too many; a tensor renamed;
a tensor turned; a row missing; an axis too many
"""


def refused(folder: Path) -> str:
    """The one sentence with which a folder is refused, without much memory being used for it."""
    tracemalloc.start()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with pytest.raises(InputError) as caught:
            weights.load(folder)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
    assert grown < (100 << 10) * (1 if sys.platform == "linux" else 1024)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 1000
    return said


@pytest.mark.parametrize("how", [how.strip() for how in FILE_DAMAGE.split(";")])
def test_a_damaged_file_is_refused(how: str, tmp_path: Path) -> None:
    damage_file(saved(tmp_path) / FILE, how)
    assert FILE in refused(tmp_path)


@given(at=st.floats(0, 1, exclude_max=True), flipped=st.integers(1, 255))
def test_a_byte_of_the_header_changed_is_refused_or_harmless(
    at: float, flipped: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No other error than InputError, whatever the header says."""
    folder = saved(tmp_path_factory.mktemp("model"), "rnn")
    content = bytearray((folder / FILE).read_bytes())
    content[int(at * (8 + struct.unpack("<Q", content[:8])[0]))] ^= flipped
    (folder / FILE).write_bytes(content)
    try:
        weights.load(folder)
    except InputError as error:
        assert FILE in str(error)


def test_what_does_not_fit_is_listed(tmp_path: Path) -> None:
    path = saved(tmp_path) / FILE

    def change(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors["stranger"] = tensors.pop("blocks.0.mlp.output.weight")
        tensors["tokens.weight"] = tensors["tokens.weight"][:-1].contiguous()
        return tensors

    rewrite(path, change)
    said = refused(tmp_path)
    assert "blocks.0.mlp.output.weight is missing" in said
    assert "stranger is unknown" in said
    assert "tokens.weight is [10, 16] instead of [11, 16]" in said


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    path = saved(tmp_path) / FILE
    rewrite(path, lambda tensors: {f"other.{name}": tensor for name, tensor in tensors.items()})
    assert "; and " in refused(tmp_path)
    assert refused(tmp_path).count("is missing") == 8


WRONG_VALUES: list[Any] = ["4", 4.5, True, None, [], [[[4]]], {"a": 1}, -1, 0, 10**9, 10**30, 10**400, "片"]
GPT_NUMBERS = ["vocabulary", "context", "layers", "heads", "width", "mlp_width"]
MAY_BE_0 = ["kv_heads", "head_width", "token_types"]  # the default, or none


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in GPT_NUMBERS for value in WRONG_VALUES),
        *((name, value) for name in MAY_BE_0 for value in WRONG_VALUES if value != 0),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_number_of_the_configuration_that_cannot_be(name: str, value: Any, tmp_path: Path) -> None:
    change_config(saved(tmp_path, style="gpt2"), {name: value})
    refused(tmp_path)


@pytest.mark.parametrize("value", WRONG_VALUES, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("name", ["vocabulary", "layers", "width"])
def test_a_number_of_a_recurrent_configuration_that_cannot_be(name: str, value: Any, tmp_path: Path) -> None:
    change_config(saved(tmp_path, "lstm"), {name: value})
    refused(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"layers": 10**9},
        {"layers": 10**9, "sliding_window": 4, "windowed_layers": [1]},
        {"vocabulary": 10**12},
        {"vocabulary": 10**12, "width": 10**12, "heads": 1, "head_width": 4},
        {"context": 10**12},
        {"heads": 10**9, "kv_heads": 10**9},
        {"mlp_width": 10**12},
        {"sliding_window": 0},
        {"sliding_window": "4"},
        {"sliding_window": 4, "windowed_layers": ["0"]},
        {"sliding_window": 4, "windowed_layers": 0},
        {"sliding_window": 4, "windowed_layers": [7]},
        {"positions": "left"},
        {"positions": ["learned"]},
        {"norm": 5},
        {"mlp": None},
        {"causal": "yes"},
        {"causal": 1},
        {"tied_embeddings": None},
        {"dropout": "0.1"},
        {"dropout": 1.0},
        {"dropout": float("nan")},
        {"rotary_base": float("inf")},
        {"norm_epsilon": True},
        {"model_type": "lookback-cnn"},
        {"model_type": ["lookback-transformer"]},
        {"model_type": None},
        {"model_type": "gpt2"},
        {"colour": "red"},
    ],
    ids=str,
)
def test_a_configuration_that_cannot_be(change: dict[str, Any], tmp_path: Path) -> None:
    change_config(saved(tmp_path, style="gpt2"), change)
    refused(tmp_path)


@pytest.mark.parametrize("name", ["vocabulary", "layers", "width", "model_type"])
def test_a_configuration_with_something_missing(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, "lstm") / CONFIG
    record = json.loads(path.read_text())
    del record[name]
    path.write_text(json.dumps(record))
    refused(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"5", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"layers": ' + b"9" * 5000 + b"}"],
    ids=lambda content: str(content[:12]),
)
def test_a_configuration_that_is_no_record(content: bytes, tmp_path: Path) -> None:
    (saved(tmp_path) / CONFIG).write_bytes(content)
    assert CONFIG in refused(tmp_path)


def test_no_folder_and_no_configuration(tmp_path: Path) -> None:
    assert "is not a model folder" in refused(tmp_path / "nothing")
    assert CONFIG in refused(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "is a file; of single files" in refused(tmp_path / "file")


def change_config(folder: Path, change: dict[str, Any]) -> None:
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def test_a_full_disk_leaves_the_model_before(tmp_path: Path) -> None:
    """The library that writes the file has an error of its own; what comes out is the system's."""
    saved(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"File too large.*model\.safetensors"):
            weights.write_weights({"a": torch.zeros(10_000)}, tmp_path / FILE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / FILE).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [CONFIG, FILE]
