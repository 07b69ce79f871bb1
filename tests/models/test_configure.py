"""From a name and a few wishes to a configuration: presets, budgets, and one sentence for whatever cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.models import FAMILIES, RecurrentConfig, TransformerConfig, configure
from lookback.models.registry import PRESETS, STYLES, empty


def count(config: Any) -> int:
    return empty(config).parameters_count


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_the_common_presets_fit_every_family(family: str, preset: str) -> None:
    config = configure(family, 100, preset=preset)
    assert config.family == family
    assert config.vocabulary == 100
    assert config.width == PRESETS[preset].width
    assert config.causal is (family != "bert")
    assert config.context == (PRESETS[preset].context if family in ("gpt", "bert") else None)
    assert isinstance(config, TransformerConfig if family in ("gpt", "bert") else RecurrentConfig)


def gpt2_parameters(vocabulary: int, context: int, layers: int, width: int) -> int:
    """Counted from the paper's shape: two embeddings (the head is tied), per layer 12D² + 13D, a final norm."""
    return (vocabulary + context) * width + layers * (12 * width**2 + 13 * width) + 2 * width


def test_nanogpts_sizes() -> None:
    """nanoGPT trains its characters with 65 tokens and no biases, and reports the count without positions: 0.80 million
    on the CPU (4 layers, 128 wide) and 10.65 million (6 layers, 384 wide). GPT-2's shape, ours, has biases too."""
    for preset, layers, heads, width, context, millions in (
        ("nanogpt-char-cpu", 4, 4, 128, 64, 0.80),
        ("nanogpt-char", 6, 6, 384, 256, 10.65),
    ):
        config = configure("gpt", 65, preset=preset)
        assert isinstance(config, TransformerConfig)
        assert (config.layers, config.heads, config.width, config.context) == (layers, heads, width, context)
        assert count(config) == gpt2_parameters(65, context, layers, width)
        biases = layers * 11 * width + width  # 3D + D + 4D + D in the maps, D in each norm
        assert f"{(count(config) - biases - context * width) / 1e6:.2f}" == f"{millions:.2f}"
    assert count(configure("gpt", 50257, preset="gpt2")) == 124_439_808  # GPT-2 small, as published


def test_bert_base_has_its_published_size() -> None:
    """109,514,298 with its MLM head: what the masked language model of BERT-base (uncased) counts, head tied."""
    config = configure("bert", 30522, context=512, layers=12, heads=12, width=768)
    assert count(config) == 109_514_298


def test_llama_7b_has_its_published_size() -> None:
    config = configure(
        "gpt", 32000, layers=32, heads=32, width=4096, mlp_width=11008, context=2048, tied_embeddings=False
    )
    assert count(config) == 6_738_415_616


def test_styles_are_what_they_say() -> None:
    def of(style: str, family: str = "gpt") -> TransformerConfig:
        config = configure(family, 10, style=style)
        assert isinstance(config, TransformerConfig)
        return config

    gpt2, llama, qwen2, qwen3, bert = (of(s) for s in ("gpt2", "llama", "qwen2", "qwen3", "bert"))
    assert (gpt2.positions, gpt2.norm, gpt2.mlp) == ("learned", "layer", "gelu_tanh")
    assert gpt2.pre_norm and gpt2.mlp_bias and gpt2.output_bias and gpt2.qkv_bias
    assert (llama.positions, llama.norm, llama.mlp, llama.qkv_bias) == ("rotary", "rms", "swiglu", False)
    assert qwen2.qkv_bias and not qwen2.output_bias and not qwen2.normed_qk
    assert qwen3.normed_qk and not qwen3.qkv_bias
    assert not bert.pre_norm and bert.head == "masked" and bert.embedding_norm and bert.token_types == 2
    assert configure("gpt", 10) == llama
    assert configure("bert", 10) == of("bert", "bert")
    # The one-mask pair: the same body, and nothing but the mask between them.
    assert replace(of("gpt2", "bert"), causal=True) == gpt2


def test_changes_reach_the_configuration_and_none_means_unset() -> None:
    config = configure("gpt", 10, preset="tiny", heads=4, kv_heads=2, sliding_window=5, dropout=None)
    assert isinstance(config, TransformerConfig)
    assert (config.heads, config.kv_heads, config.head_width, config.sliding_window) == (4, 2, 8, 5)
    assert config.dropout == PRESETS["tiny"].dropout
    windowed = replace(config, layers=3, windowed_layers=[0, 2])
    assert [windowed.window(layer) for layer in range(3)] == [5, None, 5]
    assert [config.window(layer) for layer in range(2)] == [5, 5]
    rnn = configure("rnn", 10, cell="rnn_relu", layers=3)
    assert isinstance(rnn, RecurrentConfig)
    assert (rnn.cell, rnn.layers, rnn.family) == ("rnn_relu", 3, "rnn")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"family": "cnn"}, "cnn is not a model family; allowed: rnn, lstm, gru, gpt, bert"),
    ({"preset": "huge"}, "huge is not a preset; allowed: tiny, small"),
    ({"style": "gpt5"}, "gpt5 is not a style; allowed: gpt2, llama, qwen2, qwen3, bert"),
    ({"family": "lstm", "style": "llama"}, "lstm has none"),
    ({"family": "lstm", "preset": "nanogpt-char"}, "the preset nanogpt-char is a GPT's; for lstm use tiny or small"),
    ({"family": "bert", "preset": "gpt2"}, "is a GPT's"),
    ({"family": "rnn", "cell": "lstm"}, "lstm is not a cell of rnn; allowed: rnn_tanh, rnn_relu"),
    ({"family": "gru", "cell": "rnn_tanh"}, "is not a cell of gru"),
    ({"family": "rnn", "heads": 2}, "rnn has no option heads; it has: "),
    ({"family": "lstm", "sliding_window": 4}, "lstm has no option sliding_window"),
    ({"cell": "gru"}, "gpt has no option cell"),
    ({"causal": False}, "gpt has no option causal"),
    ({"wdith": 8}, "gpt has no option wdith"),
    ({"width": 33, "heads": 2}, "a width of 33 does not divide into 2 heads"),
    ({"heads": 0}, "0 heads"),
    ({"heads": 4, "kv_heads": 3}, "4 heads cannot share 3 key/value heads evenly"),
    ({"layers": 0}, "layers is 0; it must be at least 1"),
    ({"layers": -1}, "layers is -1"),
    ({"context": 0}, "context is 0"),
    ({"vocabulary": 0}, "vocabulary is 0"),
    ({"family": "gru", "width": 0}, "width is 0"),
    ({"family": "gru", "vocabulary": 0}, "vocabulary is 0"),
    ({"sliding_window": 0}, "sliding_window is 0"),
    ({"family": "bert", "sliding_window": 3}, "a sliding window goes with the causal mask only"),
    ({"width": 6, "heads": 2}, "the head width must be even, not 3"),
    ({"heads": 4, "kv_heads": 2, "tied_qk": True}, "tied queries and keys need as many key/value heads as heads"),
    ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1"),
    ({"family": "rnn", "dropout": -0.1}, "dropout is -0.1"),
    ({"parameters": 10}, "comes within 2% of 10 parameters; the nearest has"),
    ({"parameters": 0}, "within 2% of 0 parameters"),
    ({"parameters": -5}, "within 2% of -5 parameters"),
    ({"family": "lstm", "parameters": 10}, "no lstm with a vocabulary of 50"),
    ({"family": "rnn", "vocabulary": 50_000, "parameters": 80_000}, "no rnn with a vocabulary of 50000"),
    ({"family": "lstm", "vocabulary": 5000, "layers": 1, "parameters": 58_468}, "the nearest has"),  # 4.4% away
    ({"parameters": 100_000, "width": 32}, "the width and a parameter budget cannot both be set"),
    ({"family": "lstm", "parameters": 100_000, "width": 32}, "cannot both be set"),
]


@pytest.mark.parametrize(("wishes", "sentence"), REFUSED, ids=[str(wishes) for wishes, _ in REFUSED])
def test_what_cannot_be_is_refused_in_a_sentence(wishes: dict[str, Any], sentence: str) -> None:
    wishes = {"family": "gpt", "vocabulary": 50, **wishes}
    with pytest.raises(InputError) as refusal:
        configure(wishes.pop("family"), wishes.pop("vocabulary"), **wishes)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


NEVER_IGNORED: list[tuple[dict[str, Any], str]] = [
    ({"positions": "rope"}, "rope"),
    ({"norm": "batch"}, "batch"),
    ({"mlp": "relu"}, "relu"),
    ({"sliding_window": 4, "windowed_layers": (7,)}, "7"),
    ({"windowed_layers": (0,)}, "windowed_layers"),
    ({"family": "gru", "forget_bias": 2.0}, "forget_bias"),
    ({"family": "rnn", "forget_bias": 2.0}, "forget_bias"),
]


@pytest.mark.parametrize(("wishes", "named"), NEVER_IGNORED, ids=[str(wishes) for wishes, _ in NEVER_IGNORED])
def test_an_option_that_cannot_be_honoured_is_named(wishes: dict[str, Any], named: str) -> None:
    wishes = {"family": "gpt", **wishes}
    with pytest.raises(InputError, match=named):
        configure(wishes.pop("family"), 50, **wishes)


def check_budget(family: str, style: str | None, vocabulary: int, budget: int) -> None:
    config = configure(family, vocabulary, style=style, parameters=budget)
    assert abs(count(config) - budget) <= 0.02 * budget
    assert config.family == family
    assert config.vocabulary == vocabulary
    assert config == configure(family, vocabulary, style=style, parameters=budget)
    if isinstance(config, TransformerConfig):
        assert config.width == config.heads * config.head_width
        # The MLP takes up the rest of the budget, within reason: neither vanishing nor swallowing the model.
        assert config.width <= config.mlp_width <= 16 * config.width


SIZES = {"vocabulary": st.integers(2, 8000), "per_token": st.integers(150, 20_000)}


@settings(max_examples=15)
@given(family=st.sampled_from(FAMILIES), style=st.sampled_from(sorted(STYLES)), **SIZES)
def test_a_budget_is_met_within_2_percent(family: str, style: str, vocabulary: int, per_token: int) -> None:
    budget = 30_000 + vocabulary * per_token // 10
    check_budget(family, style if family in ("gpt", "bert") else None, vocabulary, budget)


@pytest.mark.slow
@settings(max_examples=200)
@given(family=st.sampled_from(FAMILIES), style=st.sampled_from(sorted(STYLES)), **SIZES)
def test_a_budget_is_met_within_2_percent_at_length(family: str, style: str, vocabulary: int, per_token: int) -> None:
    budget = 30_000 + vocabulary * per_token // 10
    check_budget(family, style if family in ("gpt", "bert") else None, vocabulary, budget)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("budget", [100_000, 800_000, 10_000_000])
def test_budgets_people_ask_for(family: str, budget: int) -> None:
    for vocabulary in (2, 65, 500):
        check_budget(family, None, vocabulary, budget)


def test_a_budget_leaves_what_was_asked_for_alone() -> None:
    config = configure("gpt", 65, parameters=800_000, layers=3, heads=2, kv_heads=1, mlp_width=256, context=50)
    assert isinstance(config, TransformerConfig)
    assert (config.layers, config.heads, config.kv_heads, config.mlp_width, config.context) == (3, 2, 1, 256, 50)
    assert configure("lstm", 65, parameters=800_000, layers=3).layers == 3
