"""Public bugs of other tools that opening a model can have (shared/CASES.md), the right behaviour as the assertion."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from gguf_files import reference, write
from reference_models import outputs, random_reference, saved_reference
from safetensors.torch import load_file, save_file

from lookback import load, weights
from lookback.errors import InputError

IDS = torch.randint(0, 23, (2, 24), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("there", [("embedding",), ("head",), ("embedding", "head")], ids=" and ".join)
def test_tied_weights(there: tuple[str, ...], tmp_path: Path) -> None:
    """transformers 41038, vLLM PR 6758: a file with one or both of them was overwritten by empties, or a KeyError."""
    names = {"embedding": "model.embed_tokens.weight", "head": "lm_head.weight"}
    path = saved_reference("qwen3", tmp_path) / "model.safetensors"
    tensors = load_file(path)
    one = tensors.pop(names["embedding"])
    save_file(tensors | {names[which]: one.clone() for which in there}, path)
    model = weights.load(tmp_path)
    assert torch.equal(model.get_parameter("tokens.weight"), one)
    with torch.no_grad():
        torch.testing.assert_close(model(IDS)[0], outputs(random_reference("qwen3"), IDS)[1], rtol=0, atol=1e-4)


def test_tied_weights_that_differ_are_an_error(tmp_path: Path) -> None:
    path = saved_reference("qwen3", tmp_path) / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"] * 2}, path)
    with pytest.raises(InputError, match="two that differ"):
        weights.load(tmp_path)


@pytest.mark.parametrize("name", ["llama", "llama with biases", "llama tied", "mistral"])
def test_rope_layout(name: str, tmp_path: Path) -> None:
    """llama.cpp 2376, torchtitan 335: Q and K rows of a Llama in GGUF are permuted head by head, and with fewer K/V
    heads by another count; read otherwise, the text turned to gibberish after some tokens."""
    model = reference(name)
    assert model.config.num_key_value_heads < model.config.num_attention_heads
    with torch.no_grad():
        got = weights.load(write(tmp_path / "model.gguf", name, model))(IDS)[0]
    torch.testing.assert_close(got, outputs(model, IDS)[1], rtol=0, atol=1e-4)


def test_hub_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TransformerLens 754, 800; bertviz 63, 99: a server was asked for a folder that lay here."""
    asked: list[object] = []

    def fail(*args: object, **options: object) -> NoReturn:
        asked.append(args)
        raise OSError("no network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    weights.load(saved_reference("gpt2", tmp_path / "gpt2"))
    weights.load(write(tmp_path / "model.gguf", "gpt2", reference("gpt2")))
    for missing in ("gpt2", "bert-base-chinese", "Qwen/Qwen3-0.6B"):
        with pytest.raises(InputError, match="is not a model folder"):
            load(missing, device="cpu")
    assert asked == []
