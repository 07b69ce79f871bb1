"""Hypothesis strategies for small models of every family, and the ways to cut texts into chunks and padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from lookback.models import LanguageModel, RecurrentConfig, TransformerConfig, build, configure
from lookback.models.language_model import Config
from lookback.models.registry import STYLES
from lookback.nn.mask import Padding

VOCABULARY = 11
CONTEXT = 40
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}
DTYPES = [torch.float64, torch.float32]

seeds = st.integers(0, 2**31 - 1)


@st.composite
def transformer_configs(draw: st.DrawFn, causal: bool = True) -> TransformerConfig:
    """Any body, with any option that the mask allows."""
    style = draw(st.sampled_from(sorted(STYLES)))
    heads = draw(st.sampled_from([1, 2, 3, 4, 6]))
    tied_qk = draw(st.booleans())
    kv_heads = heads if tied_qk else draw(st.sampled_from([k for k in range(1, heads + 1) if heads % k == 0]))
    layers = draw(st.integers(1, 3))
    changes: dict[str, Any] = {
        "context": CONTEXT,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_width": draw(st.sampled_from([2, 4, 6])),
        "width": draw(st.sampled_from([8, 12])),
        "mlp_width": 10,
        "positions": draw(st.sampled_from(["learned", "sinusoidal", "rotary", "none"])),
        "tied_qk": tied_qk,
        "scaled": draw(st.booleans()),
        "normed_qk": draw(st.booleans()),
        "tied_embeddings": draw(st.booleans()),
    }
    if causal and draw(st.booleans()):
        changes["sliding_window"] = draw(st.integers(1, 7))
        if draw(st.booleans()):
            changes["windowed_layers"] = tuple(sorted(draw(st.sets(st.integers(0, layers - 1), min_size=1))))
    config = configure("gpt" if causal else "bert", VOCABULARY, preset="tiny", style=style, **changes)
    assert isinstance(config, TransformerConfig)
    return config


recurrent_configs = st.builds(
    RecurrentConfig,
    vocabulary=st.just(VOCABULARY),
    layers=st.integers(1, 3),
    width=st.integers(1, 9),
    cell=st.sampled_from(["rnn_tanh", "rnn_relu", "lstm", "gru"]),
    tied_embeddings=st.booleans(),
)
causal_configs = transformer_configs() | recurrent_configs
bidirectional_configs = transformer_configs(causal=False)
all_configs = causal_configs | bidirectional_configs


def random_model(config: Config, seed: int, dtype: torch.dtype = torch.float64) -> LanguageModel:
    """A model far from its initialisation: sharp attention, biases and gains that count. Ready for inference."""
    model = build(config, seed=seed, dtype=dtype).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if parameter.ndim == 1:
            drawn = 0.3 * noise + (1.0 if "norm" in name and name.endswith("weight") else 0.0)
        else:
            drawn = noise if name.startswith(("tokens", "positions", "token_types")) else noise * noise.shape[1] ** -0.5
        parameter.copy_(drawn)
    return model


def random_ids(seed: int, *shape: int) -> Tensor:
    return torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


@st.composite
def chunkings(draw: st.DrawFn, length: int) -> list[int]:
    """Positive sizes that sum to ``length``; single steps are common."""
    sizes: list[int] = []
    while sum(sizes) < length:
        left = length - sum(sizes)
        sizes.append(min(left, draw(st.just(1) | st.integers(1, left))))
    return sizes


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths fed in steps: ``counts[step][row]`` tokens, padded as ``paddings[step]`` says."""

    rows: tuple[Tensor, ...]
    paddings: tuple[Padding, ...]

    def chunks(self, filler: int = 0) -> list[Tensor]:
        """The ids of each step, [B, T]; padding columns hold ``filler``."""
        taken = [0] * len(self.rows)
        chunks = []
        for padding in self.paddings:
            ids = torch.full((len(self.rows), padding.length), filler)
            for row, (left, count) in enumerate(zip(padding.left, padding.counts, strict=True)):
                ids[row, left : left + count] = self.rows[row][taken[row] : taken[row] + count]
                taken[row] += count
            chunks.append(ids)
        return chunks

    def unpad(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Outputs [B, T, ·] of all steps, put together row by row without the padding."""
        return [
            torch.cat(
                [
                    out[row, padding.left[row] : padding.length - padding.right[row]]
                    for out, padding in zip(outputs, self.paddings, strict=True)
                ]
            )
            for row in range(len(self.rows))
        ]


@st.composite
def ragged_batches(draw: st.DrawFn, steps: int | None = None, longest: int = 7) -> Ragged:
    """1 to 4 rows in 1 to 4 steps, with padding on either side; a row may have no token in a step, or none at all."""
    batch = draw(st.integers(1, 4))
    paddings = []
    for _ in range(steps or draw(st.integers(1, 4))):
        counts = [draw(st.integers(0, longest)) for _ in range(batch)]
        length = max(1, max(counts) + draw(st.integers(0, 2)))
        left = tuple(draw(st.integers(0, length - n)) for n in counts)
        right = tuple(length - n - a for n, a in zip(counts, left, strict=True))
        paddings.append(Padding(length, left, right))
    seed = draw(seeds)
    totals = [sum(padding.counts[row] for padding in paddings) for row in range(batch)]
    return Ragged(tuple(random_ids(seed + row, total) for row, total in enumerate(totals)), tuple(paddings))


def logits_of(model: LanguageModel, row: Tensor) -> Tensor:
    """The logits [T, V] of one row of ids run on its own, all at once: what every other way must equal."""
    if not len(row):
        return torch.empty(0, VOCABULARY, dtype=next(model.parameters()).dtype)
    return model(row[None])[0][0]


def assert_near(actual: Tensor, expected: Tensor, tolerance: float | None = None) -> None:
    """Equal within rule 13's bound for the dtype; NaN is never equal."""
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=tolerance or TOLERANCE[actual.dtype])
