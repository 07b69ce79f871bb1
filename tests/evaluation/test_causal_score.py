"""Scoring from left to right, against a loop that scores one token at a time."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookback.data import TokenFile
from lookback.errors import InputError
from lookback.evaluation import Score, evaluate
from lookback.evaluation import causal as causal_module
from lookback.models import LanguageModel, build, configure

VOCABULARY = 20
CONTEXT = 10
KINDS: dict[str, dict[str, Any]] = {
    "gpt2": {"family": "gpt", "style": "gpt2", "context": CONTEXT},
    "llama": {"family": "gpt", "style": "llama", "context": CONTEXT},
    "rnn": {"family": "rnn"},
    "lstm": {"family": "lstm"},
    "gru": {"family": "gru"},
}


@cache
def model(kind: str, dtype: torch.dtype = torch.float32) -> LanguageModel:
    options = dict(KINDS[kind])
    built = build(configure(options.pop("family"), VOCABULARY, preset="tiny", width=16, **options), seed=4, dtype=dtype)
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.ndim == 2 and kind in ("gpt2", "llama"):
                parameter.mul_(8)
    return built


def packed(*documents: list[int], closed: bool = True) -> TokenFile:
    ids = [token for document in documents for token in (0, *document)] + [0] * closed
    return TokenFile(np.array(ids, dtype=np.uint16), len(documents), 3 * sum(map(len, documents)))


@cache
def double(kind: str) -> LanguageModel:
    copy = build(model(kind).config, dtype=torch.float64)
    copy.load_state_dict(model(kind).state_dict())
    return copy.eval()


def nats_of(kind: str, before: list[int], target: int) -> float:
    with torch.no_grad():
        logits, _ = double(kind)(torch.tensor([before]))
    return -float(logits[0, -1].log_softmax(-1)[target])


def by_hand(kind: str, tokens: TokenFile, window: int | None, stride: int, cross: bool) -> float:
    """Token by token: where its document begins, which window scores it, and a pass over what that window holds."""
    ids = tokens.ids.tolist()
    total = 0.0
    for target in range(1, len(ids)):
        begin = 0 if cross else max(at for at in range(target) if at == 0 or ids[at] == 0)
        if window is not None:
            begin += stride * max(0, math.ceil((target - begin - window) / stride))
        total += nats_of(kind, ids[begin:target], ids[target])
    return total


DOCUMENTS = st.lists(st.lists(st.integers(2, VOCABULARY - 1), max_size=28), min_size=1, max_size=4).filter(any)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(DOCUMENTS, st.data())
def test_equals_a_loop_over_single_tokens(kind: str, documents: list[list[int]], data: st.DataObject) -> None:
    carried = kind not in ("gpt2", "llama")
    window = data.draw(st.none() | st.integers(1, CONTEXT))
    width = window or CONTEXT
    stride = None if carried and window is None else data.draw(st.none() | st.integers(1, width) | st.just("window"))
    cross, closed = data.draw(st.booleans()), data.draw(st.booleans())
    tokens = packed(*documents, closed=closed)
    score = evaluate(
        model(kind),
        tokens,
        end=0,
        window=window,
        stride=stride,
        cross_documents=cross,
        batch_size=data.draw(st.integers(1, 5)),
    )
    step = {None: max(1, width // 2), "window": width}.get(stride, stride)
    right = by_hand(kind, tokens, None if carried and window is None else width, step, cross)
    assert (score.tokens, score.bytes, score.correct) == (len(tokens) - 1, tokens.text_bytes, None)
    assert score.nats == pytest.approx(right, rel=1e-10)


@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_any_batch_size_gives_the_same_number(kind: str, cross: bool) -> None:
    """The model is fp32; its products round differently for 1, 3 and 16 rows, which must not show."""
    generator = np.random.default_rng(1)
    tokens = packed(*(generator.integers(2, VOCABULARY, n).tolist() for n in generator.integers(1, 40, 30)))
    scores = [evaluate(model(kind), tokens, end=0, batch_size=size, cross_documents=cross) for size in (1, 3, 16)]
    assert len({score.tokens for score in scores}) == 1
    for score in scores[1:]:
        assert score.nats == pytest.approx(scores[0].nats, rel=1e-12)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_state_is_carried_from_chunk_to_chunk(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = packed([3, 4, 5] * 9, [6], [7, 8] * 7)
    whole = evaluate(model(kind), tokens, end=0)
    monkeypatch.setattr(causal_module, "_CHUNK", 4)
    assert evaluate(model(kind), tokens, end=0).nats == pytest.approx(whole.nats, rel=1e-12)
    assert evaluate(model(kind), tokens, end=0, window=4).nats != pytest.approx(whole.nats, rel=1e-6)


class Logged(LanguageModel):
    """Stands in for a model: its hidden vector is the id it reads, and it notes what it is asked to unembed."""

    def __init__(self) -> None:
        super().__init__()
        self.config = model("gpt2").config
        self.weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.asked: list[int] = []

    def encode(self, ids: torch.Tensor, **_: Any) -> tuple[torch.Tensor, None]:
        return ids[..., None].double(), None

    def unembed(self, hidden: torch.Tensor) -> torch.Tensor:
        self.asked += hidden[:, 0].int().tolist()
        return torch.zeros(len(hidden), 1000, dtype=torch.float64)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=5).filter(any),
    st.integers(1, CONTEXT),
    st.data(),
    st.booleans(),
    st.none() | st.integers(1, 60),
)
def test_every_token_is_scored_exactly_once(
    lengths: list[int], window: int, data: st.DataObject, cross: bool, limit: int | None
) -> None:
    """Each id is met once in the text here, so the ids that are unembedded tell what was scored."""
    fresh = iter(range(1, 1000))
    tokens = packed(*([next(fresh) for _ in range(n)] for n in lengths))
    logged = Logged()
    stride, batch_size = data.draw(st.integers(1, window)), data.draw(st.integers(1, 4))
    score = evaluate(
        logged, tokens, end=0, window=window, stride=stride, batch_size=batch_size, cross_documents=cross, limit=limit
    )
    read = tokens.ids[:-1] if limit is None else tokens.ids[:-1][:limit]
    assert sorted(logged.asked) == sorted(read.tolist())
    assert score.tokens == len(read)
    assert score.nats == pytest.approx(len(read) * math.log(1000))


def test_logits_are_made_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = packed([*range(2, 18)] * 3)
    whole = evaluate(model("gpt2"), tokens, end=0)
    monkeypatch.setattr("lookback.evaluation.score._LOGITS", 50)
    assert evaluate(model("gpt2"), tokens, end=0).nats == pytest.approx(whole.nats, rel=1e-12)


def test_a_text_shorter_than_a_window() -> None:
    tokens = packed([5])
    score = evaluate(model("gpt2"), tokens, end=0)
    assert score.tokens == 2
    assert score.nats == pytest.approx(nats_of("gpt2", [0], 5) + nats_of("gpt2", [0, 5], 0))


def test_nothing_is_read_across_documents() -> None:
    one, other = packed([3, 4], [5, 6, 7]), packed([8, 9], [5, 6, 7])
    alone = evaluate(model("gpt2"), packed([5, 6, 7]), end=0).nats
    for tokens in (one, other):
        first = evaluate(model("gpt2"), TokenFile(tokens.ids[:4], 1, 6), end=0).nats
        assert evaluate(model("gpt2"), tokens, end=0).nats == pytest.approx(first + alone)
        assert evaluate(model("gpt2"), tokens, end=0, cross_documents=True).nats != pytest.approx(first + alone)


def test_limit_scores_the_first_tokens_in_the_same_context() -> None:
    tokens = packed([3, 4, 5, 6] * 10, [7] * 9)
    assert evaluate(model("gpt2"), tokens, end=0, limit=10_000) == evaluate(model("gpt2"), tokens, end=0)
    some, more = (evaluate(model("gpt2"), tokens, end=0, limit=n) for n in (33, 34))
    assert (some.tokens, some.bytes) == (33, round(tokens.text_bytes * 33 / 51))
    assert more.nats - some.nats == pytest.approx(nats_of("gpt2", tokens.ids[25:34].tolist(), int(tokens.ids[34])))


def test_without_exact_the_model_itself_is_run() -> None:
    tokens = packed([*range(2, 18)] * 5)
    own = evaluate(model("llama"), tokens, end=0, exact=False)
    exact = evaluate(model("llama"), tokens, end=0)
    assert own.nats != exact.nats
    assert own.nats == pytest.approx(exact.nats, rel=1e-5)


@pytest.mark.parametrize("exact", [True, False])
def test_the_model_is_left_as_it_was(exact: bool) -> None:
    trained = build(configure("gpt", VOCABULARY, preset="tiny", dropout=0.5), seed=1).train()
    before = {name: value.clone() for name, value in trained.state_dict().items()}
    scores = [evaluate(trained, packed([3, 4, 5]), end=0, exact=exact) for _ in range(2)]
    assert scores[0] == scores[1]
    assert trained.training and next(trained.parameters()).requires_grad
    for name, value in trained.state_dict().items():
        assert value.dtype == before[name].dtype and torch.equal(value, before[name])


def test_progress_ends_at_one() -> None:
    told: list[float] = []
    evaluate(model("lstm"), packed([3, 4], [5] * 30), end=0, progress=told.append)
    assert told == sorted(told) and told[-1] == 1


def test_the_figures_of_a_score() -> None:
    score = Score(nats=20 * math.log(2), tokens=10, bytes=5, correct=4)
    assert score.nats_per_token == pytest.approx(2 * math.log(2))
    assert score.perplexity == pytest.approx(4)
    assert score.bits_per_byte == pytest.approx(4)
    assert score.accuracy == 0.4
    assert Score(1e4, 1, 1).perplexity == math.inf


@pytest.mark.parametrize(
    ("kind", "tokens", "options", "says"),
    [
        ("gpt2", packed([]), {}, "no text to score"),
        ("gpt2", packed([3]), {"window": 11}, "takes 1 to 10"),
        ("gpt2", packed([3]), {"window": 0}, "takes 1 to 10"),
        ("gpt2", packed([3]), {"stride": 11}, "must be 1 to 10"),
        ("gpt2", packed([3]), {"stride": 0}, "must be 1 to 10"),
        ("gpt2", packed([3]), {"batch_size": 0}, "batch size is 0"),
        ("gpt2", packed([3]), {"limit": 0}, "limit is 0"),
        ("lstm", packed([3]), {"stride": 4}, "give a window too"),
        ("lstm", packed([3]), {"window": -1}, "takes 1 to any number"),
    ],
)
def test_what_cannot_be_scored_is_said_in_one_sentence(
    kind: str, tokens: TokenFile, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says) as error:
        evaluate(model(kind), tokens, end=0, **options)
    assert ". " not in str(error.value)


def test_a_model_that_reads_both_sides_is_refused() -> None:
    with pytest.raises(InputError, match="both sides"):
        evaluate(build(configure("bert", VOCABULARY, preset="tiny")), packed([3]), end=0)
