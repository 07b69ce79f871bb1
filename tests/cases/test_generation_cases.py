"""Public bugs of other tools that generation and evaluation could have had; the ids are those of the list of cases."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from lookback.data import TokenFile
from lookback.errors import InputError
from lookback.evaluation import evaluate
from lookback.generation import Generated, Sampling, generate
from lookback.models import LanguageModel, build, configure
from lookback.tokenizers import Tokenizer, learn

GREEDY = Sampling(temperature=0)
CONTEXT = 12


class Says:
    """A causal model, as far as `generate` looks at it, that says the given ids one after the other."""

    def __init__(self, vocabulary: int, prompt: int, ids: list[int]) -> None:
        self.real = build(configure("rnn", vocabulary, layers=1, width=1), dtype=torch.float64)
        self.prompt, self.ids = prompt, ids
        self.real.encode = self.encode  # type: ignore[method-assign, assignment]
        self.real.unembed = self.unembed  # type: ignore[method-assign, assignment]

    def encode(self, ids: torch.Tensor, *, state: Any = None, padding: Any = None) -> tuple[torch.Tensor, Any]:
        read = ids.shape[1] + (0 if state is None else state.lengths[0])
        if state is not None:
            state.lengths = (read,)
        return torch.full((1, ids.shape[1], 1), read - self.prompt), state

    def unembed(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(1, self.real.config.vocabulary)
        logits[0, self.ids[int(hidden[0, 0])]] = 9.0
        return logits


def say(tokenizer: Tokenizer, ids: list[int], **options: Any) -> tuple[Generated, list[str]]:
    streamed: list[str] = []
    options = {"max_new_tokens": len(ids), "sampling": GREEDY, "end": tokenizer.end, **options}
    model = Says(tokenizer.size, 1, ids).real
    made = generate(model, tokenizer, [[tokenizer.end]], on_text=lambda _, text: streamed.append(text), **options)
    assert made.samples[0].text == "".join(streamed)
    return made, streamed


@cache
def letters() -> Tokenizer:
    return learn(lambda: iter(["ABCDEFGHIJKLMNOPQRSTUVWXYZalice: \n"]), "character")


@cache
def byte_level() -> Tokenizer:
    """Byte-level BPE that has seen nothing twice, so that each byte is a token."""
    return learn(lambda: iter(["x"]), "bpe", vocabulary=258)


@pytest.mark.parametrize("cache", [True, False])
def test_stop_strings_spread_over_tokens(cache: bool) -> None:
    text = " ".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    made, streamed = say(letters(), letters().ids(text).tolist(), stop=["O P Q"], cache=cache)
    assert made.samples[0].text == " ".join("ABCDEFGHIJKLMN") + " "
    assert made.samples[0].reason == "stop"
    assert not any("O" in piece for piece in streamed)


def test_the_earliest_of_several_stop_strings() -> None:
    made, _ = say(letters(), letters().ids("A B Alice: C\nD").tolist(), stop=["\n", "Alice:"])
    assert (made.samples[0].text, made.samples[0].reason) == ("A B ", "stop")
    made, _ = say(letters(), letters().ids("A Alice\nAlice:").tolist(), stop=["\n", "Alice:"])
    assert (made.samples[0].text, made.samples[0].reason) == ("A Alice", "stop")


def test_a_stop_string_that_does_not_come_is_given_out_at_the_end() -> None:
    made, streamed = say(letters(), letters().ids("A O P").tolist(), stop=["O P Q"])
    assert (made.samples[0].text, made.samples[0].reason) == ("A O P", "length")
    assert streamed == ["A", " ", "O P"]


@pytest.mark.parametrize(
    ("text", "pieces"), [("😀", ["😀"]), ("床前明", ["床", "前", "明"]), ("é😀!", ["é", "😀", "!"])]
)
def test_characters_in_streams(text: str, pieces: list[str]) -> None:
    ids = byte_level().ids(text).tolist()
    assert len(ids) == len(text.encode())
    made, streamed = say(byte_level(), ids)
    assert streamed == pieces
    assert made.samples[0].token_ids == ids


@pytest.mark.parametrize("limit", range(9))
def test_the_token_limit_falls_inside_a_character(limit: int) -> None:
    raw = "床😀字".encode()
    made, streamed = say(byte_level(), byte_level().ids("床😀字").tolist(), max_new_tokens=limit)
    assert "".join(streamed) == raw[:limit].decode(errors="ignore")
    assert (made.samples[0].reason, len(made.samples[0].token_ids)) == ("length", limit)


def test_the_end_token_inside_a_character() -> None:
    made, streamed = say(
        byte_level(), [*byte_level().ids("字").tolist(), byte_level().ids("床").tolist()[0], byte_level().end]
    )
    assert (streamed, made.samples[0].reason) == (["字"], "end")


SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "learned": ("gpt", {"style": "gpt2", "context": CONTEXT}),
    "rotary": ("gpt", {"style": "llama", "context": CONTEXT}),
    "recurrent": ("lstm", {}),
}


@cache
def model(shape: str) -> LanguageModel:
    family, options = SHAPES[shape]
    built = build(configure(family, letters().size, preset="tiny", **options), seed=2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.ndim == 2 and family == "gpt":
                parameter.mul_(8)
    return built


def newest(shape: str, prompt: list[int], count: int, context: int | None) -> list[int]:
    """Greedy choice, each time from a fresh pass over the newest tokens that fit."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            logits, _ = model(shape)(torch.tensor([ids if context is None else ids[-context:]]))
            ids.append(int(logits[0, -1].index_fill(0, torch.tensor([1]), -torch.inf).argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("shape", ["learned", "rotary"])
def test_past_the_window_stops(shape: str, cache: bool) -> None:
    prompts = [[2, 3, 4], [5] * CONTEXT, [6] * (CONTEXT - 1)]
    made = generate(model(shape), letters(), prompts, max_new_tokens=40, sampling=GREEDY, end=None, cache=cache)
    assert [(len(s.token_ids), s.reason) for s in made.samples] == [
        (CONTEXT - 3, "length"),
        (0, "length"),
        (1, "length"),
    ]
    assert made.samples[0].token_ids == newest(shape, prompts[0], CONTEXT - 3, None)
    with pytest.raises(InputError, match="13 tokens, more than this model's context of 12"):
        generate(model(shape), letters(), [[2] * 13], max_new_tokens=1, sampling=GREEDY, end=None, cache=cache)


@pytest.mark.parametrize("prompts", [[[2, 3, 4]], [[2, 3], [4] * 9], [[2, 3, 4], [5, 6] * CONTEXT, [7] * CONTEXT]])
@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("shape", ["learned", "rotary"])
def test_past_the_window_slides_without_a_stale_cache(shape: str, cache: bool, prompts: list[list[int]]) -> None:
    options: dict[str, Any] = {"max_new_tokens": 20, "sampling": GREEDY, "end": None, "cache": cache, "slide": True}
    made = generate(model(shape), letters(), prompts, **options)
    for prompt, sample in zip(prompts, made.samples, strict=True):
        assert (sample.token_ids, sample.reason) == (newest(shape, prompt, 20, CONTEXT), "length")


@pytest.mark.parametrize("slide", [True, False])
def test_recurrent_models_have_no_window(slide: bool) -> None:
    prompts = [[2] * 40, [3, 4]]
    made = generate(model("recurrent"), letters(), prompts, max_new_tokens=30, sampling=GREEDY, end=None, slide=slide)
    for prompt, sample in zip(prompts, made.samples, strict=True):
        assert sample.token_ids == newest("recurrent", prompt, 30, None)


@pytest.mark.parametrize("stride", [1, 5, None, "window"])
def test_perplexity_of_a_text_longer_than_the_context(stride: Any) -> None:
    """Every token once, with the stated context, the same for any batch size."""
    text = np.random.default_rng(0).integers(2, letters().size, 101)
    tokens = TokenFile(np.array([0, *text, 0], dtype=np.uint16), 1, 101)
    single = build(configure("gpt", letters().size, style="gpt2", context=CONTEXT), seed=1)
    scores = [evaluate(single, tokens, end=0, stride=stride, batch_size=size) for size in (1, 3, 16)]
    step = {None: CONTEXT // 2, "window": CONTEXT}.get(stride, stride)
    nats, double = 0.0, single.double()
    for target in range(1, len(tokens)):
        window = max(0, math.ceil((target - CONTEXT) / step))
        with torch.no_grad():
            logits, _ = double(torch.from_numpy(tokens.ids[window * step : target].astype(np.int64))[None])
        nats -= float(logits[0, -1].log_softmax(-1)[int(tokens.ids[target])])
    for score in scores:
        assert score.tokens == 102
        assert score.nats == pytest.approx(nats, rel=1e-9)
        assert score.perplexity == pytest.approx(math.exp(nats / 102), rel=1e-9)
