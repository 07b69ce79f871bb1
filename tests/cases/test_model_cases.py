"""Public bugs of other tools that a model can have (shared/CASES.md), each with the right value as the assertion."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import assert_near, logits_of, random_ids, random_model
from recorder import Recorder
from torch import Tensor

from lookback.errors import InputError
from lookback.models import FAMILIES, KVCache, LanguageModel, TransformerConfig, build, configure
from lookback.nn import attention as attention_module
from lookback.nn.attention import attention, attention_scores, attention_weights, mix
from lookback.nn.mask import At, Causal, Padding, Present, Readable

CAUSAL = [family for family in FAMILIES if family != "bert"]
GPTS = ["gpt2", "llama", "qwen3", "bert"]  # styles: learned and rotary positions, pre- and post-norm
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])


def model_of(family: str, dtype: torch.dtype = torch.float64, **options: object) -> LanguageModel:
    return random_model(configure(family, 11, preset="tiny", **options), 1, dtype)


def read(queries: list[int], keys: list[int], values: list[float]) -> list[list[float]]:
    """What the open and the fast form read when all scores are equal."""
    at = At(torch.tensor([queries]), torch.tensor([keys]), dense=True)
    readable = Readable((Causal(),), at)
    q, k = torch.ones(1, 1, len(queries), 1), torch.ones(1, 1, len(keys), 1)
    v = torch.tensor(values, dtype=torch.float32).view(1, 1, -1, 1)
    opened = mix(attention_weights(attention_scores(q, k, scale=1.0), readable), v)
    return [t.flatten().tolist() for t in (opened, attention(q, k, v, readable, scale=1.0))]


def test_causal_alignment() -> None:
    """pytorch 108108, 144858: two queries on five keys were aligned at the top left, giving [1.0, 1.5]."""
    together = read([3, 4], [0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    first, second = read([3], [0, 1, 2, 3], [1, 2, 3, 4]), read([4], [0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    for form in range(2):
        assert together[form] == pytest.approx([2.5, 3.0])
        assert first[form] + second[form] == pytest.approx([2.5, 3.0])
    for out in read([2], [0, 1, 2], [1, 2, 3]):
        assert out == pytest.approx([2.0])


@pytest.mark.parametrize("family", CAUSAL)
def test_one_step_of_two_tokens_is_two_steps_of_one(family: str) -> None:
    model, ids = model_of(family), random_ids(0, 1, 5)
    two, one = model.start(1), model.start(1)
    model.encode(ids[:, :3], state=two)
    model.encode(ids[:, :3], state=one)
    together = model(ids[:, 3:], state=two)[0]
    apart = torch.cat([model(ids[:, t : t + 1], state=one)[0] for t in (3, 4)], dim=1)
    assert_near(together, apart)


@pytest.mark.parametrize("style", GPTS)
@pytest.mark.parametrize("padding", [Padding(4, (0,), (2,)), Padding(4, (2,), (0,))], ids=["right", "left"])
def test_empty_row(style: str, padding: Padding) -> None:
    """pytorch 103749, transformers 38690: a query with nothing to read became NaN, and that spread."""
    model = model_of("gpt", style=style)
    real = padding.real()
    ids = torch.zeros(1, 4, dtype=torch.long)
    ids[real] = torch.tensor([5, 7])
    expected = logits_of(model, torch.tensor([5, 7]))
    tap = Recorder()
    for logits in (model(ids, padding=padding)[0], model(ids, padding=padding, tap=tap)[0]):
        assert logits.isfinite().all()
        assert_near(logits[real], expected)
    for layer in range(2):
        weights, heads = (tap.values(f"layers.{layer}.attention.{part}")[0] for part in ("weights", "heads"))
        assert not weights.transpose(1, 2)[~real].any()
        assert not heads.transpose(1, 2)[~real].any()


def test_nan_in_padding_or_an_unused_slot_does_not_leak() -> None:
    model = model_of("gpt", style="gpt2")
    model.tokens.weight[0] = torch.nan
    ids, padding = torch.tensor([[5, 7, 0, 0], [0, 1, 2, 3]]), Padding(4, (0, 1), (2, 0))
    state = model.start(2, capacity=16)
    hidden, _ = model.encode(ids, padding=padding, state=state)
    assert hidden[padding.real()].isfinite().all()
    assert isinstance(state, KVCache)
    assert all(buffer.isfinite().all() for buffer in (*state.keys, *state.values))
    next_hidden, _ = model.encode(torch.tensor([[4], [4]]), state=state)
    assert_near(next_hidden[0, 0], model.encode(torch.tensor([[5, 7, 4]]))[0][0, 2])
    assert_near(next_hidden[1, 0], model.encode(torch.tensor([[1, 2, 3, 4]]))[0][0, 3])


def test_a_row_that_may_read_nothing_gives_zeros() -> None:
    """Whatever the fused kernel would make of it; gradients stay finite as well."""
    readable = Readable((Present(), Causal()), At(torch.tensor([[-1, 1]]), torch.tensor([[-1, 1, 2]])))
    q, k, v = (torch.randn(1, 2, t, 4, requires_grad=True) for t in (2, 3, 3))
    out = attention(q, k, v, readable, scale=1.0)
    assert not out[:, :, 0].any()
    assert torch.equal(out[:, :, 1], v[:, :, 1])
    out.sum().backward()
    assert all(t.grad.isfinite().all() for t in (q, k, v))


@pytest.mark.parametrize("family", FAMILIES)
def test_left_padding(family: str) -> None:
    """transformers PR 29583, TransformerLens 1609, nnsight 672: positions counted over pads; loss 4.5 became 13.6."""
    model = model_of(family)
    prompt = random_ids(3, 9)
    expected = logits_of(model, prompt)
    for pads in range(9):
        ids = torch.cat((torch.zeros(pads, dtype=torch.long), prompt))[None]
        logits, _ = model(ids, padding=Padding(9 + pads, (pads,), (0,)))
        assert_near(logits[0, pads:], expected)
        losses = [torch.nn.functional.cross_entropy(x[:-1], prompt[1:]).item() for x in (logits[0, pads:], expected)]
        assert losses[0] == pytest.approx(losses[1], abs=1e-9)


@dtypes
@pytest.mark.parametrize("family", CAUSAL)
def test_cache_equals_no_cache(family: str, dtype: torch.dtype) -> None:
    """nanoGPT PR 613, transformers 27040, x-transformers 219. Chunks, batches and padding: tests/equivalence."""
    model, ids = model_of(family, dtype), torch.tensor([[1, 2, 3, 4, 5]])
    whole = model(ids)[0]
    for sizes in ([3, 2], [1, 1, 1, 1, 1], [2, 1, 2]):
        state = model.start(1, capacity=1)
        assert_near(torch.cat([model(x, state=state)[0] for x in ids.split(sizes, dim=1)], dim=1), whole)


@pytest.mark.parametrize("family", CAUSAL)
def test_future_leak(family: str) -> None:
    """minGRU-pytorch 3, LLMs-from-scratch PR 1062: tokens after t moved outputs up to t."""
    model = model_of(family, torch.float32)
    ids = random_ids(2, 2, 12)
    for t in range(11):
        changed = ids.clone()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 1) % 11
        assert torch.equal(model(ids)[0][:, : t + 1], model(changed)[0][:, : t + 1])


@pytest.mark.parametrize("style", ["gpt2", "llama"])
def test_past_the_window(style: str) -> None:
    """transformers 4675, gpt-fast 53: a shape error or garbage. Here: one sentence, and the state stays usable."""
    model = model_of("gpt", style=style, context=8)
    ids = random_ids(0, 1, 9)
    with pytest.raises(InputError, match="9 tokens are more than this model's context of 8"):
        model.encode(ids)
    state = model.start(1)
    model.encode(ids[:, :7], state=state)
    with pytest.raises(InputError, match="9 tokens"):
        model.encode(ids[:, 7:], state=state)
    assert state.lengths == (7,)
    assert_near(model(ids[:, 7:8], state=state)[0][0, 0], logits_of(model, ids[0, :8])[7])
    with pytest.raises(InputError, match="9 tokens"):
        model.encode(ids[:, 8:], state=state)


@pytest.mark.parametrize("family", ["rnn", "lstm", "gru"])
def test_recurrent_models_have_no_window(family: str) -> None:
    model = model_of(family)
    assert model.config.context is None
    assert model(random_ids(0, 1, 500))[0].isfinite().all()


@pytest.mark.parametrize("windowed_layers", [None, (1,)], ids=["all layers", "one layer"])
def test_sliding_window_cache(windowed_layers: tuple[int, ...] | None) -> None:
    """litgpt 2182, transformers 37574: a prefill longer than the window, then steps: wrong keys were thrown out."""
    model = model_of("gpt", sliding_window=8, windowed_layers=windowed_layers)
    ids = random_ids(0, 1, 30)
    tap = Recorder(lambda name: name == "layers.1.attention.weights")
    whole = model(ids, tap=tap)[0]
    weights = tap.values("layers.1.attention.weights")[0]
    for i in range(30):
        reads = weights[0, :, i].any(dim=0).nonzero().flatten().tolist()
        assert reads == list(range(max(0, i - 7), i + 1))
    for prefill in (1, 7, 8, 9, 17, 20):
        state = model.start(1, capacity=1)
        steps = [model(ids[:, :prefill], state=state)[0]]
        steps += [model(ids[:, t : t + 1], state=state)[0] for t in range(prefill, 30)]
        assert_near(torch.cat(steps, dim=1), whole)


def test_kv_memory() -> None:
    """vLLM PR 29736, LLMs-from-scratch 922: 32 layers, 8 of 32 key/value heads, H = 128, 2 bytes: 131,072 bytes a
    token, where all 32 heads would take 524,288."""
    for kv_heads, a_token in ((8, 131_072), (32, 524_288)):
        cpu = torch.device("cpu")
        cache = KVCache(1, kv_heads, 128, [None] * 32, capacity=1, limit=4096, dtype=torch.bfloat16, device=cpu)
        for tokens in (1, 2):
            append = cache.begin(1, None)
            for layer in range(32):
                new = torch.ones(1, kv_heads, 1, 128, dtype=torch.bfloat16)
                append.keep(layer)(new, new)
            append.finish()
            assert cache.nbytes_used == tokens * a_token
            assert cache.nbytes == tokens * a_token


class Masks:
    """Sees what every call of attention is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[Readable] = []
        original = attention_module.attention

        def watched(q: Tensor, k: Tensor, v: Tensor, readable: Readable, **options: float) -> Tensor:
            self.seen.append(readable)
            return original(q, k, v, readable, **options)

        monkeypatch.setattr(attention_module, "attention", watched)

    def tensors(self) -> set[int]:
        """Masks that were written out as a tensor."""
        return {id(readable) for readable in self.seen if "tensor" in vars(readable)}

    def forget(self) -> None:
        self.seen.clear()


def test_per_layer_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """TransformerLens 479: an n×n buffer was kept in every layer. Here one mask for all layers, or none at all."""
    model = build(configure("gpt", 11, preset="tiny", layers=6, context=100_000)).eval()
    assert not list(model.buffers())
    masks = Masks(monkeypatch)
    ids = random_ids(0, 2, 20)
    model.encode(ids)
    assert len(masks.seen) == 6
    assert not masks.tensors(), "a whole pass needs none"
    state = model.start(2)
    model.encode(ids, state=state)
    model.encode(ids[:, :1], state=state)
    assert not masks.tensors(), "nor does a prefill, nor a step"
    masks.forget()
    model.encode(ids, padding=Padding(20, (0, 3), (1, 0)))
    assert len(masks.seen) == 6
    assert len(masks.tensors()) == 1, "padding needs one for all layers"
    masks.forget()
    windowed = build(configure("gpt", 11, preset="tiny", layers=6, sliding_window=4, windowed_layers=(0, 2, 4)))
    windowed.encode(ids)
    assert len(masks.tensors()) == 1, "one for the layers with a window, none for those without"
    assert len({id(readable) for readable in masks.seen}) == 2


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tied", [True, False])
def test_tied_weights(family: str, tied: bool) -> None:
    """transformers 41038, vLLM PR 6758: the head is the embedding when the config ties them, and only then."""
    model = model_of(family, tied_embeddings=tied)
    names = [name for name, _ in model.named_parameters()]
    assert ("output.weight" in names) is not tied
    hidden = model.encode(random_ids(0, 1, 4))[0]
    before = model.unembed(hidden)
    model.tokens.weight.mul_(2.0)
    assert torch.equal(model.unembed(hidden), before) is not tied
    untied = configure(family, 11, preset="tiny", tied_embeddings=False)
    saved = untied.vocabulary * untied.width if tied else 0
    assert build(untied).parameters_count - model.parameters_count == saved


def test_grouped_queries_that_do_not_divide_evenly_into_powers_of_two() -> None:
    """TransformerLens 980, bertviz 130: 9 query heads on 3 key/value heads."""
    config = configure("gpt", 11, preset="tiny", width=36, heads=9, kv_heads=3)
    assert isinstance(config, TransformerConfig)
    model, tap = random_model(config, 1), Recorder()
    ids = random_ids(0, 1, 7)
    assert_near(model(ids, tap=tap)[0], model(ids)[0])
    q, k, v, weights, heads = (
        tap.values(f"layers.0.attention.{part}")[0] for part in ("q_rotated", "k_rotated", "v", "weights", "heads")
    )
    assert (q.shape[1], k.shape[1], weights.shape[1]) == (9, 3, 9)
    for head in range(9):
        scores = q[0, head] @ k[0, head // 3].T / math.sqrt(4)
        shared = scores.masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
        assert_near(weights[0, head], shared)
        assert_near(heads[0, head], shared @ v[0, head // 3])
