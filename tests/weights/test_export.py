"""Export: what was trained here opens in `transformers` as it is, tokenizer included; the result checks itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from random_models import all_configs, random_model
from reference_models import outputs, reopened, saved_reference
from safetensors.torch import load_file, save_file
from small_runs import leftovers, write_documents

from lookback import load, train, weights
from lookback.errors import InputError
from lookback.models import TransformerConfig, configure
from lookback.models.language_model import Config
from lookback.session import Session, export

OPENS_THERE: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {"model": "gpt"},
    "Qwen3ForCausalLM": {"model": "gpt", "style": "qwen3"},
    "Qwen2ForCausalLM": {"model": "gpt", "style": "qwen2"},
    "GPT2LMHeadModel": {"model": "gpt", "style": "gpt2"},
    "BertForMaskedLM": {"model": "bert"},
}
LEARNT: list[dict[str, Any]] = [
    {"model": "gpt", "tokenizer": "bpe", "vocabulary": 300},
    {"model": "gpt", "style": "gpt2", "tokenizer": "bpe", "vocabulary": 300},
    {"model": "bert", "tokenizer": "wordpiece", "vocabulary": 60},
    {"model": "bert", "tokenizer": "bpe", "vocabulary": 300},
]
STAYS_OURS: dict[str, tuple[dict[str, Any], str]] = {
    "a BERT of GPT-2's body": ({"model": "bert", "style": "gpt2"}, "causal"),
    "tied queries and keys": ({"model": "gpt", "tied_qk": True}, "tied_qk"),
    "no positions": ({"model": "gpt", "positions": "none"}, "positions"),
    "sinusoidal positions": ({"model": "gpt", "style": "gpt2", "positions": "sinusoidal"}, "positions"),
    "an LSTM": ({"model": "lstm"}, "lstm"),
    "an RNN": ({"model": "rnn"}, "rnn"),
}
TINY = {"preset": "tiny", "width": 16, "layers": 1, "steps": 2, "batch": 2, "length": 8, "seed": 1}
TEXT = "天地玄黄宇宙洪荒"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKBACK_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def trained(corpus: Path, out: Path, options: dict[str, Any]) -> Session:
    return train(corpus, out=out, device="cpu", **TINY, **options)


def same_there(session: Session, folder: Path) -> None:
    theirs = reopened(folder)
    # For model_type qwen2 the library takes Qwen2's own tokenizer, whatever the folder says.
    auto = transformers.PreTrainedTokenizerFast if theirs.config.model_type == "qwen2" else transformers.AutoTokenizer
    tokenizer = auto.from_pretrained(folder)
    ids = session.tokenizer.encode(TEXT).ids
    assert tokenizer(TEXT, add_special_tokens=False)["input_ids"] == ids
    if session.tokenizer.reversible:  # there, WordPiece puts spaces between Chinese characters
        assert tokenizer.decode(ids) == TEXT
    row = torch.tensor([ids])
    with torch.no_grad():
        ours = session.model.eval()(row)[0]
    torch.testing.assert_close(ours, outputs(theirs, row)[1], rtol=0, atol=1e-4)


@pytest.mark.parametrize("architecture", OPENS_THERE)
def test_a_run_opens_there_as_it_is(architecture: str, corpus: Path, tmp_path: Path) -> None:
    session = trained(corpus, tmp_path / "run", OPENS_THERE[architecture])
    said = json.loads((tmp_path / "run" / "config.json").read_text())
    assert said["architectures"] == [architecture]
    same_there(session, tmp_path / "run")
    report = export(session, tmp_path / "out")
    assert report["architecture"] == architecture
    assert report["largest_difference"] < 1e-5
    assert "auto_map" not in (tmp_path / "out" / "config.json").read_text()
    same_there(session, tmp_path / "out")
    assert load(tmp_path / "out", device="cpu").model.config == session.model.config


@pytest.mark.parametrize("options", LEARNT, ids=lambda options: " ".join(str(value) for value in options.values()))
def test_every_kind_of_tokenizer_opens_there(options: dict[str, Any], corpus: Path, tmp_path: Path) -> None:
    session = trained(corpus, tmp_path / "run", options)
    export(session, tmp_path / "out")
    for folder in ("run", "out"):
        same_there(session, tmp_path / folder)


@pytest.mark.parametrize("name", STAYS_OURS)
def test_a_run_that_has_no_class_there_is_ours(name: str, corpus: Path, tmp_path: Path) -> None:
    options, named = STAYS_OURS[name]
    session = trained(corpus, tmp_path / "run", options)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model_type"].startswith("lookback-")
    with pytest.raises(InputError, match=named) as caught:
        export(session, tmp_path / "out")
    assert "Hugging Face has no architecture" in str(caught.value)
    assert not (tmp_path / "out").exists()
    report = export(session, tmp_path / "out", to="lookback")
    assert report["architecture"] == "lookback"
    assert load(tmp_path / "out", device="cpu").generate is not None
    assert load(tmp_path / "out", device="cpu").model.config == session.model.config


def test_a_reference_comes_back_to_where_it_came_from(corpus: Path, tmp_path: Path) -> None:
    """Weights of `transformers`, a tokenizer of ours."""
    tokenizer = trained(corpus, tmp_path / "run", {}).tokenizer
    folder = saved_reference("qwen2 with windows above", tmp_path / "in")
    tokenizer.save(folder)
    session = load(folder, device="cpu")
    export(session, tmp_path / "out")
    row = torch.arange(20)[None]
    expected, got = (outputs(reopened(where), row)[1] for where in (folder, tmp_path / "out"))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("kind", ["mean", "first", "last"])
def test_an_encoder_takes_its_pooling_along(kind: Any, normalised: bool, corpus: Path, tmp_path: Path) -> None:
    tokenizer = trained(corpus, tmp_path / "run", {}).tokenizer
    tokenizer.save(saved_reference("bert encoder", tmp_path / "in"))
    weights.write_pooling(weights.SentencePooling(kind, normalised), 24, tmp_path / "in")
    session = load(tmp_path / "in", device="cpu")
    assert (session.pooling.kind, session.pooling.normalised) == (kind, normalised)
    for to in ("huggingface", "lookback"):
        export(session, tmp_path / to, to=to)
        again = load(tmp_path / to, device="cpu")
        assert again.pooling == session.pooling
        torch.testing.assert_close(again.embed([TEXT, "天"]), session.embed([TEXT, "天"]))


def test_a_folder_that_holds_something_is_left_alone(corpus: Path, tmp_path: Path) -> None:
    session = trained(corpus, tmp_path / "run", {})
    out = tmp_path / "out"
    out.mkdir()
    (out / "diary").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        export(session, out)
    assert [path.name for path in out.iterdir()] == ["diary"]
    with pytest.raises(InputError, match="is not empty"):
        export(session, out / "diary")
    assert (out / "diary").read_text() == "mine"
    with pytest.raises(InputError, match="onnx is not a format; allowed: huggingface, lookback"):
        export(session, tmp_path / "new", to="onnx")
    (tmp_path / "empty").mkdir()
    export(session, tmp_path / "empty")
    assert (tmp_path / "empty" / "config.json").exists()


@pytest.mark.parametrize("by", [2e-4, float("nan"), float("inf")], ids=str)
def test_a_result_that_computes_something_else_is_not_kept(
    by: float, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = trained(corpus, tmp_path / "run", {})
    save = weights.save

    def wrong(model: Any, folder: Path, **options: Any) -> None:
        save(model, folder, **options)
        tensors = load_file(folder / "model.safetensors")
        tensors["model.norm.weight"] += by * 1e3
        save_file(tensors, folder / "model.safetensors")

    monkeypatch.setattr(weights, "save", wrong)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError, match="logits differ by"):
        export(session, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert not leftovers(tmp_path)


@given(config=all_configs, seed=st.integers(0, 2**31 - 1))
def test_any_configuration_is_saved_and_comes_back(
    config: Config, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As a folder of theirs where there is such a class, else as ours; the same model either way."""
    folder = tmp_path_factory.mktemp("saved")
    model = random_model(config, seed, torch.float32)
    weights.save(model, folder)
    assert weights.open_model(folder).format == ("lookback" if weights.family_of(config) is None else "huggingface")
    again = weights.load(folder)
    assert again.config == config
    for name, parameter in again.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name)), name


@given(
    style=st.sampled_from(["gpt2", "llama", "qwen2", "qwen3"]),
    heads=st.sampled_from([(4, 4), (4, 2), (4, 1), (1, 1)]),
    head_width=st.sampled_from([4, 8, 10]),
    window=st.none() | st.integers(1, 9),
    windowed=st.none() | st.sets(st.integers(0, 2), min_size=1),
    tied=st.booleans(),
    seed=st.integers(0, 2**31 - 1),
)
def test_whatever_has_a_class_there_computes_the_same_there(
    style: str,
    heads: tuple[int, int],
    head_width: int,
    window: int | None,
    windowed: set[int] | None,
    tied: bool,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    changes: dict[str, Any] = {"heads": heads[0], "kv_heads": heads[1], "head_width": head_width, "context": 32}
    changes |= {"sliding_window": window, "tied_embeddings": tied, "width": 24, "layers": 3}
    if window is not None and windowed is not None:
        changes["windowed_layers"] = tuple(sorted(windowed))
    config = configure("gpt", 23, preset="tiny", style=style, **changes)
    assert isinstance(config, TransformerConfig)
    if weights.family_of(config) is None:
        return
    model = random_model(config, seed, torch.float32)
    folder = tmp_path_factory.mktemp("saved")
    weights.save(model, folder)
    ids = torch.randint(0, 23, (2, 30), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        torch.testing.assert_close(model(ids)[0], outputs(reopened(folder), ids)[1], rtol=0, atol=1e-4)
