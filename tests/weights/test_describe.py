"""What `describe` says of a model: numbers that are those of the loaded one, got without loading it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf_files import reference, write
from reference_models import REFERENCES, saved_reference

from lookback import weights
from lookback.models import FAMILIES, build, configure


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", REFERENCES)
def test_parameters_and_memory_are_those_of_the_model(name: str, tmp_path: Path) -> None:
    saved_reference(name, tmp_path, torch.float16)
    opened = weights.open_model(tmp_path)
    said, count = weights.describe(opened), parameters(opened.load())
    assert said["parameters"] == count
    assert said["dtypes"] == {"F16": count}
    assert said["memory_bytes"] == {
        "float32": 4 * count,
        "bfloat16": 2 * count,
        "int8": count,
        "int4": round(count / 2),
    }
    assert said["format"] == "huggingface"
    assert said["config"]["layers"] == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_ours(family: str, tmp_path: Path) -> None:
    model = build(configure(family, 11, preset="tiny"), seed=0)
    weights.save(model, tmp_path, native=True)
    said = weights.describe(weights.open_model(tmp_path))
    assert said["parameters"] == parameters(model)
    assert said["format"] == "lookback"
    assert said["family"] == family


@pytest.mark.parametrize("family", FAMILIES)
def test_the_state_of_a_thousand_tokens_is_what_it_takes(family: str, tmp_path: Path) -> None:
    """Against the bytes of a real state with 1,000 tokens in it."""
    config: Any = configure(family, 11, preset="tiny")
    if family in ("gpt", "bert"):
        config = replace(config, context=1000)
    model = build(config, seed=0)
    weights.save(model, tmp_path, native=True)
    said = weights.describe(weights.open_model(tmp_path))
    if family == "bert":
        assert said["kv_cache_bytes_per_1000_tokens"] is None
        return
    sizes = said["state_bytes" if family != "gpt" else "kv_cache_bytes_per_1000_tokens"]
    state = model.start(1, capacity=1000)
    with torch.inference_mode():
        model.encode(torch.zeros(1, 1000, dtype=torch.long), state=state)
    assert sizes["float32"] == state.nbytes
    assert sizes["bfloat16"] == state.nbytes // 2


def test_the_formula(tmp_path: Path) -> None:
    """2 · layers · key/value heads · head width · bytes · tokens, windowed layers up to their window."""
    for name, slots in (("qwen3", 3 * 1000), ("mistral", 3 * 4), ("qwen2 with windows above", 1000 + 2 * 3)):
        saved_reference(name, tmp_path / name)
        opened = weights.open_model(tmp_path / name)
        head: int = opened.config.head_width  # type: ignore[attr-defined]
        said = weights.describe(opened)["kv_cache_bytes_per_1000_tokens"]
        assert said == {"float32": 2 * slots * 2 * head * 4, "bfloat16": 2 * slots * 2 * head * 2}


def test_a_gguf_file_with_several_types(tmp_path: Path) -> None:
    def choose(name: str, shape: tuple[int, ...]) -> Kind:
        return Kind.Q8_0 if "ffn" in name else Kind.F16

    opened = weights.open_model(write(tmp_path / "model.gguf", "llama", reference("llama"), choose))
    said = weights.describe(opened)
    assert said["dtypes"]["Q8_0"] == 3 * 3 * 64 * 96
    assert set(said["dtypes"]) == {"Q8_0", "F16", "F32"}
    assert said["parameters"] == sum(said["dtypes"].values()) == parameters(opened.load())


def test_nothing_is_loaded(tmp_path: Path) -> None:
    saved_reference("llama", tmp_path)
    opened = weights.open_model(tmp_path)

    def never(name: str) -> NoReturn:
        raise AssertionError(f"{name} was read")

    assert weights.describe(replace(opened, source=replace(opened.source, read=never)))["parameters"] > 0
