"""One loop for every family: with and without a state, alone and in a batch, and why it ends."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.generation import Generated, Sampling, generate
from lookback.models import LanguageModel, build, configure
from lookback.tokenizers import Tokenizer, learn

MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"family": "gpt", "style": "gpt2"},
    "gpt2, window 5": {"family": "gpt", "style": "gpt2", "sliding_window": 5},
    "gpt, sinusoidal": {"family": "gpt", "style": "gpt2", "positions": "sinusoidal"},
    "llama": {"family": "gpt", "style": "llama", "kv_heads": 1},
    "qwen3": {"family": "gpt", "style": "qwen3"},
    "rnn": {"family": "rnn"},
    "lstm": {"family": "lstm"},
    "gru": {"family": "gru"},
}
RECURRENT = ("rnn", "lstm", "gru")
CONTEXT = 24
GREEDY = Sampling(temperature=0)


@cache
def characters() -> Tokenizer:
    return learn(lambda: iter(["abcdefghijklmnopqrstuvwxyz"]), "character")


@cache
def model(name: str, dtype: torch.dtype = torch.float64) -> LanguageModel:
    """A random model whose weights are large enough that it does not repeat itself."""
    options = dict(MODELS[name])
    family = options.pop("family")
    size = {"layers": 2, "width": 16} if family in RECURRENT else {"width": 16, "context": CONTEXT}
    built = build(configure(family, characters().size, preset="tiny", **size, **options), seed=7, dtype=dtype)
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.ndim == 2:
                parameter.mul_(1.5 if family in RECURRENT else 8)
    return built


def write(name: str, prompts: list[list[int]], **options: Any) -> Generated:
    options = {"max_new_tokens": 12, "sampling": GREEDY, "end": None, **options}
    return generate(model(name), characters(), prompts, **options)


def by_hand(name: str, prompt: list[int], count: int) -> list[int]:
    """Greedy choice from a whole forward pass at each step; specials (0 may end a text, 1 is the mask) are known."""
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            logits, _ = model(name)(torch.tensor([ids]))
            ids.append(int(logits[0, -1].index_fill(0, torch.tensor([1]), -torch.inf).argmax()))
    return ids[len(prompt) :]


PROMPTS = st.lists(st.lists(st.integers(2, 27), min_size=1, max_size=12), min_size=1, max_size=4)


def check_greedy(name: str, prompts: list[list[int]], chunk: int, end: int | None) -> None:
    cached = write(name, prompts, chunk=chunk, end=end)
    assert cached.samples == write(name, prompts, chunk=chunk, end=end, cache=False).samples
    for sample, prompt in zip(cached.samples, prompts, strict=True):
        right = by_hand(name, prompt, 12)
        assert sample.token_ids == (right if end is None or end not in right else right[: right.index(end)])
        assert sample.text == characters().decode(sample.token_ids)


def check_seed(name: str, prompts: list[list[int]], seed: int, chunk: int) -> None:
    sampling = Sampling(temperature=1.3, top_k=20, top_p=0.95, min_p=0.01, repetition_penalty=1.1)
    options = {"sampling": sampling, "seed": seed, "end": 0}
    together = write(name, prompts, chunk=chunk, **options).samples
    assert write(name, prompts, cache=False, **options).samples == together
    assert write(name, prompts[:1], **options).samples == together[:1]
    other = [[2], *prompts[1:]]
    assert write(name, other, **options).samples[1:] == together[1:]


CHUNKS, ENDS, SEEDS = st.integers(1, 14), st.sampled_from([None, 0]), st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=4, deadline=None)
@given(PROMPTS, CHUNKS, ENDS)
def test_cached_is_uncached_is_by_hand(name: str, prompts: list[list[int]], chunk: int, end: int | None) -> None:
    check_greedy(name, prompts, chunk, end)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=3, deadline=None)
@given(PROMPTS, SEEDS, CHUNKS)
def test_a_seed_gives_the_same_with_or_without_cache_and_neighbours(
    name: str, prompts: list[list[int]], seed: int, chunk: int
) -> None:
    check_seed(name, prompts, seed, chunk)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25, deadline=None)
@given(PROMPTS, SEEDS, CHUNKS, ENDS)
def test_both_over_many_prompts(name: str, prompts: list[list[int]], seed: int, chunk: int, end: int | None) -> None:
    check_greedy(name, prompts, chunk, end)
    check_seed(name, prompts, seed, chunk)


@pytest.mark.parametrize("name", ["gpt2", "lstm"])
def test_the_repetition_penalty_sees_prompt_and_new_tokens(name: str) -> None:
    penalty, ids = 3.0, [2, 3, 4]
    made = write(name, [ids, [7]], sampling=Sampling(temperature=0, repetition_penalty=penalty))
    for _ in range(12):
        with torch.no_grad():
            logits = model(name)(torch.tensor([ids]))[0][0, -1].tolist()
        weighed = [(z / penalty if z > 0 else z * penalty) if token in ids else z for token, z in enumerate(logits)]
        ids = [*ids, max((token for token in range(len(weighed)) if token != 1), key=lambda token: weighed[token])]
    assert made.samples[0].token_ids == ids[3:]
    assert made.samples[0].token_ids != by_hand(name, ids[:3], 12)


def test_seeds_and_rows_draw_differently() -> None:
    drawn = [write("lstm", [[2], [2]], sampling=Sampling(), seed=seed).samples for seed in (1, 2)]
    assert len({tuple(sample.token_ids) for samples in drawn for sample in samples}) == 4


def test_mode_is_given_back_and_dropout_is_off() -> None:
    trained = build(configure("gpt", characters().size, preset="tiny", dropout=0.9), dtype=torch.float64).train()
    texts = [generate(trained, characters(), [[2]], max_new_tokens=9, sampling=GREEDY, end=None) for _ in range(2)]
    assert texts[0].samples == texts[1].samples
    assert trained.training


@pytest.mark.parametrize("name", MODELS)
def test_work_and_state_bytes(name: str) -> None:
    """The second row of a Transformer ends early, at the context length; its state counts as it was then."""
    prompts, new = [[2, 3, 4, 5, 6], [7] * (CONTEXT - 4)], 9
    written = [new, new if name in RECURRENT else 4]
    cached, uncached = write(name, prompts, max_new_tokens=new), write(name, prompts, max_new_tokens=new, cache=False)
    assert cached.tokens == uncached.tokens == sum(written)
    assert cached.work == sum(len(p) + n - 1 for p, n in zip(prompts, written, strict=True))
    assert uncached.work == sum(len(p) * n + n * (n - 1) // 2 for p, n in zip(prompts, written, strict=True))
    assert uncached.state_bytes == 0
    held = 0
    for prompt, count in zip(prompts, written, strict=True):
        state: Any = model(name).start(1)
        with torch.no_grad():
            model(name)(torch.tensor([[*prompt, *[2] * (count - 1)]]), state=state)
        held += state.nbytes if name in RECURRENT else state.nbytes_used
    assert cached.state_bytes == held


def test_cache_saves_all_but_one_in_n_over_two() -> None:
    n = 200
    cached, uncached = (write("gru", [[2]], max_new_tokens=n, cache=cache).work for cache in (True, False))
    assert (cached, uncached) == (n, n * (n + 1) // 2)


def test_recurrent_state_has_one_size_and_a_cache_grows() -> None:
    sizes = {name: [write(name, [[2]], max_new_tokens=n).state_bytes for n in (5, 20)] for name in ("gpt2", "lstm")}
    assert sizes["lstm"][0] == sizes["lstm"][1] == 2 * 2 * 16 * 8
    assert sizes["gpt2"][1] == 4 * sizes["gpt2"][0] == 20 * 2 * 2 * 16 * 8


@cache
def counting(last: int) -> LanguageModel:
    """A one-layer RNN that says c after b after a …, and the end token after ``last``."""
    tokenizer = characters()
    counter = build(configure("rnn", tokenizer.size, layers=1, width=32, tied_embeddings=False), dtype=torch.float64)
    with torch.no_grad():
        for parameter in counter.parameters():
            parameter.zero_()
        counter.tokens.weight[:, : tokenizer.size] = torch.eye(tokenizer.size)  # type: ignore[index, union-attr]
        weights: Any = counter.layers[0].cell.weight_ih_l0  # type: ignore[index, union-attr]
        weights.copy_(torch.eye(32))
        for token in range(2, last + 1):
            counter.output.weight[0 if token == last else token + 1, token] = 9.0  # type: ignore[index, union-attr, operator]
    return counter


def say(text: str, **options: Any) -> Generated:
    tokenizer = characters()
    options = {"max_new_tokens": 50, "sampling": GREEDY, "end": 0, "stop": (), **options}
    return generate(
        counting(tokenizer.ids("t")[0]), tokenizer, [tokenizer.ids(t).tolist() for t in text.split()], **options
    )


def test_why_it_ends() -> None:
    samples = say("a p t", stop=["kl"], max_new_tokens=10).samples
    assert [(s.text, s.reason, len(s.token_ids)) for s in samples] == [
        ("bcdefghijk", "length", 10),
        ("qrst", "end", 4),
        ("", "end", 0),
    ]
    samples = say("a d", stop=["hi", "kl"]).samples
    assert [(s.text, s.reason, len(s.token_ids)) for s in samples] == [("bcdefg", "stop", 8), ("efg", "stop", 5)]


def test_end_none_goes_on_past_it() -> None:
    [sample] = say("s", end=None, max_new_tokens=3).samples
    assert sample.reason == "length" and len(sample.token_ids) == 3 and sample.token_ids[1] == 0


@pytest.mark.parametrize("stop", [(), ("hi",), ("gx", "zz")])
def test_what_is_streamed_is_the_text(stop: tuple[str, ...]) -> None:
    streamed: dict[int, list[str]] = {0: [], 1: [], 2: []}
    made = say("a e p", stop=stop, on_text=lambda row, text: streamed[row].append(text))
    assert ["".join(texts) for texts in streamed.values()] == [sample.text for sample in made.samples]
    assert all(text for texts in streamed.values() for text in texts)
    assert len(streamed[2]) == 4


def test_no_new_tokens_is_no_work() -> None:
    made = write("gpt2", [[2], [3]], max_new_tokens=0)
    assert [(s.token_ids, s.text, s.reason) for s in made.samples] == [([], "", "length")] * 2
    assert (made.tokens, made.work, made.state_bytes, made.tokens_per_second) == (0, 0, 0, 0)


def test_special_tokens_and_ids_without_a_token_are_never_drawn() -> None:
    tokenizer = learn(lambda: iter(["abc"]), "character", allow_unknown=True)
    wide = build(configure("gpt", tokenizer.size + 9, preset="tiny", context=400), seed=1)
    made = generate(wide, tokenizer, [[3]], max_new_tokens=300, sampling=Sampling(100.0), end=None, banned=[4])
    drawn = set(made.samples[0].token_ids)
    assert drawn == {tokenizer.end, 3, 5}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_new_tokens": -1}, "0 or more"),
        ({"seed": -1}, "seed"),
        ({"chunk": 0}, "at least 1"),
        ({"stop": [""]}, "at least one character"),
        ({"prompts": []}, "prompt is empty"),
        ({"prompts": [[2], []]}, "prompt is empty"),
        (
            {"prompts": [[2] * (CONTEXT + 1)]},
            "25 tokens, more than this model's context of 24; shorten it, or use --slide",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        write("gpt2", options.pop("prompts", [[2]]), **options)
    assert ". " not in str(error.value)


@cache
def bert() -> LanguageModel:
    return build(configure("bert", characters().size, preset="tiny", context=CONTEXT), seed=3, dtype=torch.float64)


def test_bert_says_why_it_cannot_write() -> None:
    with pytest.raises(InputError, match=r"both sides.*fill.*--anyway"):
        generate(bert(), characters(), [[2]], max_new_tokens=3, sampling=GREEDY, end=0)


@pytest.mark.parametrize("cache", [True, False])
def test_bert_writes_anyway_by_masks_at_the_end(cache: bool) -> None:
    prompts = [[0, 2, 3, 4], [0, 9]]
    made = generate(bert(), characters(), prompts, max_new_tokens=4, sampling=GREEDY, end=0, anyway=True, cache=cache)
    for prompt, sample in zip(prompts, made.samples, strict=True):
        ids = list(prompt)
        for _ in range(4):
            with torch.no_grad():
                logits, _ = bert()(torch.tensor([[*ids, 1]]))
            ids.append(2 + int(logits[0, -1, 2:].argmax()))
        assert (sample.token_ids, sample.reason) == (ids[len(prompt) :], "length")
    assert made.state_bytes == 0
    assert made.work == sum(len(p) + 1 + new for p in prompts for new in range(4))
