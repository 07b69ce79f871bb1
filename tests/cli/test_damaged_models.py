"""A model folder that is cut short or makes no sense is refused in one sentence, before it takes time or memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, refusal, tree

from lookback import weights

ASK = {"gpt": ("generate", "床"), "bert": ("fill", "[MASK]光"), "lstm": ("generate", "床")}


@pytest.fixture
def copied(models: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A family's model folder, to be damaged."""

    def copied(family: str) -> Path:
        return Path(shutil.copytree(models[family], tmp_path / family))

    return copied


def refused(run: Run, folder: Path, family: str) -> str:
    """What is said to who opens it; nothing in it may change."""
    before = tree(folder)
    command, given = ASK[family]
    said = refusal(run(command, folder, given))
    assert tree(folder) == before
    return said


def header_size(file: Path) -> int:
    return 8 + int.from_bytes(file.read_bytes()[:8], "little")


CUTS: dict[str, Callable[[bytes, int], bytes]] = {
    "to nothing": lambda whole, header: b"",
    "inside the length": lambda whole, header: whole[:7],
    "after the length": lambda whole, header: whole[:8],
    "inside the header": lambda whole, header: whole[: header // 2],
    "after the header": lambda whole, header: whole[:header],
    "inside the first tensor": lambda whole, header: whole[: header + 3],
    "in the middle": lambda whole, header: whole[: len(whole) // 2],
    "by one byte": lambda whole, header: whole[:-1],
    "to zeros": lambda whole, header: bytes(len(whole)),
    "in its header only": lambda whole, header: whole[:8] + b"\xff" * (header - 8) + whole[header:],
    "by a length of 2^62": lambda whole, header: (2**62).to_bytes(8, "little") + whole[8:],
    "and prolonged": lambda whole, header: whole + b"more",
    "into text": lambda whole, header: b"these are not the tensors you are looking for",
}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("family", ["gpt", "bert", "lstm"])
def test_weights_cut(run: Run, copied: Callable[[str], Path], family: str, how: str) -> None:
    folder = copied(family)
    file = folder / "model.safetensors"
    file.write_bytes(CUTS[how](file.read_bytes(), header_size(file)))
    assert "model.safetensors" in refused(run, folder, family)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_is_missing(run: Run, copied: Callable[[str], Path], name: str) -> None:
    folder = copied("gpt")
    (folder / name).unlink()
    assert name in refused(run, folder, "gpt")


@pytest.mark.parametrize("name", ["config.json", "lookback.json", "tokenizer.json"])
@pytest.mark.parametrize("contents", [b"", b"{", b"[]", b"7", b"null", b"\xff\xfe", b"\0" * 99, b"[" * 100_000])
def test_a_file_is_not_json(run: Run, copied: Callable[[str], Path], name: str, contents: bytes) -> None:
    folder = copied("gpt")
    (folder / name).write_bytes(contents)
    assert name in refused(run, folder, "gpt")


WILD: list[tuple[str, dict[str, Any]]] = [
    ("gpt", {"layers": 10**9}),
    ("gpt", {"layers": 10**30}),
    ("gpt", {"layers": 0}),
    ("gpt", {"layers": -1}),
    ("gpt", {"layers": 1}),
    ("gpt", {"layers": "2"}),
    ("gpt", {"layers": 2.0}),
    ("gpt", {"layers": True}),
    ("gpt", {"layers": None}),
    ("gpt", {"layers": [2]}),
    ("gpt", {"width": 10**9}),
    ("gpt", {"width": 10**30}),
    ("gpt", {"width": 31}),
    ("gpt", {"heads": 10**9}),
    ("gpt", {"heads": 0}),
    ("gpt", {"kv_heads": 1}),
    ("gpt", {"kv_heads": -1}),
    ("gpt", {"head_width": 10**9}),
    ("gpt", {"mlp_width": 10**9}),
    ("gpt", {"vocabulary": 10**9}),
    ("gpt", {"vocabulary": 3}),
    ("gpt", {"context": "long"}),
    ("gpt", {"context": 0}),
    ("gpt", {"causal": "yes"}),
    ("gpt", {"dropout": 2}),
    ("gpt", {"dropout": "much"}),
    ("gpt", {"positions": "circular"}),
    ("gpt", {"positions": 3}),
    ("gpt", {"positions": ["rotary"]}),
    ("gpt", {"norm": {}}),
    ("gpt", {"rotary_base": "ten"}),
    ("gpt", {"rotary_base": -1}),
    ("gpt", {"norm_epsilon": "small"}),
    ("gpt", {"norm_epsilon": -1e-5}),
    ("gpt", {"windowed_layers": [99], "sliding_window": 4}),
    ("gpt", {"windowed_layers": "01", "sliding_window": 4}),
    ("gpt", {"sliding_window": 10**30}),
    ("gpt", {"sliding_window": -1}),
    ("gpt", {"token_types": 10**9}),
    ("gpt", {"token_types": -1}),
    ("gpt", {"tied_embeddings": False}),
    ("gpt", {"unheard_of": 1}),
    ("gpt", {"model_type": "lookback-perceptron"}),
    ("gpt", {"model_type": 7}),
    ("gpt", {"model_type": None}),
    ("lstm", {"layers": 10**9}),
    ("lstm", {"width": 10**9}),
    ("lstm", {"width": 10**30}),
    ("lstm", {"cell": "gru"}),
    ("lstm", {"cell": "elman"}),
    ("lstm", {"cell": ["lstm"]}),
    ("lstm", {"forget_bias": "one"}),
    ("lstm", {"context": 64}),
]


@pytest.mark.parametrize(("family", "changes"), WILD, ids=[f"{family} {changes}" for family, changes in WILD])
def test_wild_configurations(run: Run, copied: Callable[[str], Path], family: str, changes: dict[str, Any]) -> None:
    folder = copied(family)
    weights.save(weights.load(folder), folder, native=True)
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    said = refused(run, folder, family)
    assert any(words in said for words in ("config.json", next(iter(changes)), "do not belong together"))


def test_a_tokenizer_of_another_model(run: Run, models: dict[str, Path], copied: Callable[[str], Path]) -> None:
    folder = copied("gpt")
    file = folder / "tokenizer.json"
    contents = json.loads(file.read_text(encoding="utf-8"))
    contents["model"]["vocab"]["鱼"] = len(contents["model"]["vocab"])
    file.write_text(json.dumps(contents), encoding="utf-8")
    assert "they do not belong together" in refused(run, folder, "gpt")


def test_a_folder_where_a_file_should_be(run: Run, copied: Callable[[str], Path]) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "lookback.json"):
        folder = copied("gpt")
        (folder / name).unlink()
        (folder / name).mkdir()
        assert name in refused(run, folder, "gpt")
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "progress.json"])
@pytest.mark.parametrize("cut", [0, 9, 0.5])
def test_a_checkpoint_cut_short_is_not_gone_on_with(
    run: Run, copied: Callable[[str], Path], text: Path, name: str, cut: float
) -> None:
    folder = copied("gpt")
    file = folder / "checkpoint" / name
    contents = file.read_bytes()
    file.write_bytes(contents[: cut if isinstance(cut, int) else int(cut * len(contents))])
    before = tree(folder)
    assert name in refusal(run("train", text, "--out", folder, "--resume"))
    assert tree(folder) == before
