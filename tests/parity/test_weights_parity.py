"""A folder that `transformers` saved gives here what it gives there, layer by layer; and what is saved here opens there
without custom code and gives the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from recorder import Recorder
from reference_models import REFERENCES, L, V, outputs, reopened, saved_reference

from lookback import weights
from lookback.models import LanguageModel, TransformerConfig
from lookback.nn.mask import Padding

IDS = torch.randint(0, V, (3, 21), generator=torch.Generator().manual_seed(0))
PADDINGS = {
    "plain": None,
    "padded right": Padding(21, (0, 0, 0), (0, 3, 20)),
    "padded left": Padding(21, (0, 3, 17), (0, 0, 0)),
}
every = pytest.mark.parametrize("name", REFERENCES)
BOUNDS = {torch.float32: 1e-4, torch.float64: 1e-9}
SAVED_AS = {"mistral without a window": "LlamaForCausalLM"}  # which is the very same
dtypes = pytest.mark.parametrize("dtype", BOUNDS, ids=["fp32", "fp64"])
Folder = Callable[[str, torch.dtype], Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    made: dict[tuple[str, torch.dtype], Path] = {}

    def give(name: str, dtype: torch.dtype) -> Path:
        if (name, dtype) not in made:
            made[name, dtype] = saved_reference(name, tmp_path_factory.mktemp("reference"), dtype)
        return made[name, dtype]

    return give


def compare(ours: LanguageModel, theirs: Any, padding: Padding | None, tolerance: float) -> None:
    """Embeddings, the stream after each layer, the final hidden vectors and the logits, at the real tokens."""
    real = torch.ones_like(IDS, dtype=torch.bool) if padding is None else padding.real()
    tap = Recorder(lambda name: name in ("embedding", "hidden", *(f"layers.{n}.output" for n in range(L))))
    with torch.no_grad():
        hidden, _ = ours.encode(IDS, padding=padding, tap=tap)
    mine = [*tap.values("embedding"), *(tap.values(f"layers.{n}.output")[0] for n in range(L - 1)), hidden]
    expected, logits = outputs(theirs, IDS, padding)
    assert len(mine) == len(expected) == L + 1
    if logits is not None:
        mine, expected = [*mine, ours.unembed(hidden)], [*expected, logits]
    for actual, wanted in zip(mine, expected, strict=True):
        torch.testing.assert_close(actual[real], wanted[real], rtol=0, atol=tolerance)


@every
@dtypes
def test_their_folder_gives_the_same_here(name: str, dtype: torch.dtype, folder: Folder) -> None:
    where = folder(name, dtype)
    ours, theirs = weights.load(where, dtype=dtype), reopened(where, dtype)
    for padding in PADDINGS.values():
        compare(ours, theirs, padding, BOUNDS[dtype])


@every
def test_a_cached_run_gives_the_same_too(name: str, folder: Folder) -> None:
    ours = weights.load(folder(name, torch.float32))
    if not ours.config.causal:
        return
    with torch.no_grad():
        state = ours.start(3, capacity=1)
        logits = torch.cat([ours(chunk, state=state)[0] for chunk in IDS.split([9, 1, 1, 10], dim=1)], dim=1)
    torch.testing.assert_close(logits, outputs(reopened(folder(name, torch.float32)), IDS)[1], rtol=0, atol=1e-4)


@every
def test_what_is_saved_here_opens_there(name: str, folder: Folder, tmp_path: Path) -> None:
    """With the same parameters bit for bit, the same configuration, and nothing that it has to make up."""
    ours = weights.load(folder(name, torch.float32))
    weights.save(ours, tmp_path)
    compare(ours, reopened(tmp_path), None, 1e-4)
    again = weights.load(tmp_path)
    assert again.config == ours.config
    assert all(torch.equal(p, dict(ours.named_parameters())[at]) for at, p in again.named_parameters())
    said = json.loads((tmp_path / "config.json").read_text())
    assert said["architectures"] == [SAVED_AS.get(name, REFERENCES[name][0])]


@every
def test_the_configuration_is_theirs_option_by_option(name: str, folder: Folder, tmp_path: Path) -> None:
    """Read by their own class, ours says what theirs said, wherever ours writes an option."""
    source = folder(name, torch.float32)
    weights.save_config(weights.open_model(source).config, tmp_path)
    there, here = (transformers.AutoConfig.from_pretrained(where).to_dict() for where in (source, tmp_path))
    written = json.loads((tmp_path / "config.json").read_text())
    # Written in full where theirs leaves it out; and a window's other spellings where no window is in use.
    other = {"rope_scaling", "rope_theta", "n_inner", "head_dim", "pad_token_id", "bos_token_id", "eos_token_id"}
    other |= (
        {"max_window_layers", "layer_types", "sliding_window"} if not here.get("use_sliding_window", True) else set()
    )
    other |= {"attn_pdrop", "embd_pdrop", "attention_probs_dropout_prob"}
    other |= {"model_type", "architectures"} if name in SAVED_AS else set()
    different = {
        at: (here.get(at), there.get(at)) for at in written.keys() - other if here.get(at) != there.get(at, False)
    }
    assert not different
    if "rope_parameters" in there:
        rope = {at: value for at, value in there["rope_parameters"].items() if value is not None}
        assert {at: here["rope_parameters"].get(at) for at in rope} == rope


def test_windows_matter(folder: Folder) -> None:
    """Else the tests above could not tell a window from none."""
    for name in ("mistral", "qwen2 with windows above"):
        source = weights.open_model(folder(name, torch.float32))
        assert furthest(source, sliding_window=None, windowed_layers=None) > 0.01


def furthest(source: weights.Opened, **changes: Any) -> float:
    """The largest difference of logits that a change to the configuration makes."""
    config = source.config
    assert isinstance(config, TransformerConfig)
    with torch.no_grad():
        one, other = (replace(source, config=c).load()(IDS)[0] for c in (config, replace(config, **changes)))
    return float((one - other).abs().max())


@pytest.mark.parametrize(
    "name", [name for name in REFERENCES if "yarn" in name or "llama3" in name or "linear" in name]
)
def test_scaled_turns_matter(name: str, folder: Folder) -> None:
    assert furthest(weights.open_model(folder(name, torch.float32)), rotary_scaling=None) > 0.01
