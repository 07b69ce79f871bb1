"""Families, styles and presets: from a name and a few wishes to a configuration, and from that to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch

from lookback.errors import InputError
from lookback.models.language_model import FAMILIES, Config, LanguageModel
from lookback.models.recurrent import RecurrentConfig, RecurrentLM
from lookback.models.transformer import Transformer, TransformerConfig

_LLAMA: dict[str, Any] = {
    "positions": "rotary",
    "norm": "rms",
    "mlp": "swiglu",
    "qkv_bias": False,
    "output_bias": False,
    "mlp_bias": False,
}
STYLES: Mapping[str, Mapping[str, Any]] = {
    "gpt2": {},
    "llama": _LLAMA,
    "qwen2": {**_LLAMA, "qkv_bias": True, "norm_epsilon": 1e-6, "rotary_base": 1_000_000.0},
    "qwen3": {**_LLAMA, "normed_qk": True, "norm_epsilon": 1e-6, "rotary_base": 1_000_000.0},
    "bert": {
        "mlp": "gelu",
        "norm_epsilon": 1e-12,
        "pre_norm": False,
        "token_types": 2,
        "embedding_norm": True,
        "head": "masked",
    },
}
"""How a Transformer's body is built. The mask is the family's: ``gpt`` and ``bert`` with the style ``gpt2`` are one
pre-norm body that differs by its mask alone."""


@dataclass(frozen=True)
class Preset:
    """A named size. ``recurrent_layers`` is used by RNN, LSTM and GRU, which are stacked less high."""

    layers: int
    heads: int
    width: int
    context: int
    recurrent_layers: int = 2
    dropout: float = 0.0
    style: str | None = None


PRESETS: Mapping[str, Preset] = {
    "tiny": Preset(2, 2, 32, 64),
    "small": Preset(4, 4, 128, 128),
    "nanogpt-char-cpu": Preset(4, 4, 128, 64, style="gpt2"),
    "nanogpt-char": Preset(6, 6, 384, 256, dropout=0.2, style="gpt2"),
    "gpt2": Preset(12, 12, 768, 1024, dropout=0.1, style="gpt2"),
}
"""``tiny`` and ``small`` fit every family; those with a style of their own are for GPT only."""

_C = TypeVar("_C", TransformerConfig, RecurrentConfig)
_CELLS = {"rnn": ("rnn_tanh", "rnn_relu"), "lstm": ("lstm",), "gru": ("gru",)}
_TOLERANCE = 0.02


def configure(
    family: str,
    vocabulary: int,
    *,
    preset: str = "small",
    style: str | None = None,
    parameters: int | None = None,
    **changes: Any,
) -> Config:
    """The configuration of a ``family`` at a preset's size, with ``changes`` to its fields.

    ``parameters`` sizes the model to a budget within 2% instead, so that families can be compared fairly. ``style`` is
    the body of a Transformer (one of `STYLES`; Llama's for gpt and BERT's for bert unless the preset says otherwise).
    Raises InputError for a name or a change that the family does not have, or a budget that it cannot meet.
    """
    if family not in FAMILIES:
        raise InputError("{got} is not a model family; allowed: {allowed}", got=family, allowed=", ".join(FAMILIES))
    if preset not in PRESETS:
        raise InputError("{got} is not a preset; allowed: {allowed}", got=preset, allowed=", ".join(PRESETS))
    if PRESETS[preset].style is not None and family != "gpt":
        raise InputError(
            "the preset {preset} is a GPT's; for {family} use tiny or small, or a budget with --parameters",
            preset=preset,
            family=family,
        )
    changes = {name: value for name, value in changes.items() if value is not None}
    if family in _CELLS:
        config: Config = _recurrent(family, vocabulary, PRESETS[preset], style, changes)
    else:
        config = _transformer(family, vocabulary, PRESETS[preset], style, changes)
    return config if parameters is None else _sized(config, parameters, changes)


def build(
    config: Config, *, seed: int = 0, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> LanguageModel:
    """A model with parameters drawn from ``seed`` (on the CPU, so that every device starts from the same numbers)."""
    model = empty(config).to(dtype).to_empty(device="cpu")
    model.initialise(torch.Generator().manual_seed(seed))
    return model.to(device)


def empty(config: Config) -> LanguageModel:
    """The model without memory for its parameters (on PyTorch's meta device): to count them, or to fill from a file."""
    with torch.device("meta"):
        if isinstance(config, TransformerConfig):
            return Transformer(config)
        if isinstance(config, RecurrentConfig):
            return RecurrentLM(config)
    raise TypeError(f"no model for {type(config).__name__}")


def _transformer(
    family: str, vocabulary: int, preset: Preset, style: str | None, changes: dict[str, Any]
) -> TransformerConfig:
    style = style or preset.style or ("llama" if family == "gpt" else "bert")
    if style not in STYLES:
        raise InputError("{got} is not a style; allowed: {allowed}", got=style, allowed=", ".join(STYLES))
    _only_known(TransformerConfig, family, changes)
    wished = {
        "context": preset.context,
        "layers": preset.layers,
        "heads": preset.heads,
        "width": preset.width,
        "dropout": preset.dropout,
        **STYLES[style],
        **changes,
    }
    if wished["heads"] < 1 or (wished["width"] % wished["heads"] and "head_width" not in changes):
        raise InputError(
            "a width of {width} does not divide into {heads} heads; choose a multiple, or a --head-width",
            width=wished["width"],
            heads=wished["heads"],
        )
    wished.setdefault("mlp_width", _mlp_width(wished["width"], wished.get("mlp")))
    return TransformerConfig(vocabulary=vocabulary, causal=family == "gpt", **wished)


def _recurrent(
    family: str, vocabulary: int, preset: Preset, style: str | None, changes: dict[str, Any]
) -> RecurrentConfig:
    if style is not None:
        raise InputError("a style is a Transformer's; {family} has none: drop the style", family=family)
    if changes.get("cell", _CELLS[family][0]) not in _CELLS[family]:
        raise InputError(
            "{got} is not a cell of {family}; allowed: {allowed}",
            got=changes["cell"],
            family=family,
            allowed=", ".join(_CELLS[family]),
        )
    if "forget_bias" in changes and family != "lstm":
        raise InputError("forget_bias is an LSTM's; {family} has no forget gate: drop the option", family=family)
    changes = {"cell": _CELLS[family][0], **changes}
    _only_known(RecurrentConfig, family, changes)
    wished = {"layers": preset.recurrent_layers, "width": preset.width, "dropout": preset.dropout, **changes}
    return RecurrentConfig(vocabulary=vocabulary, **wished)


def _only_known(config: type, family: str, changes: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(config)} - {"vocabulary", "causal"}
    for name in changes:
        if name not in known:
            raise InputError(
                "{family} has no option {name}; it has: {known}",
                family=family,
                name=name,
                known=", ".join(sorted(known)),
            )


def _mlp_width(width: int, mlp: str | None) -> int:
    """4D for a GELU MLP; two thirds of that, to a multiple of 8, for SwiGLU, whose third matrix makes up for it."""
    return max(8, round(width * 8 / 3 / 8) * 8) if mlp == "swiglu" else 4 * width


def _count(config: Config) -> int:
    return empty(config).parameters_count


def _sized(config: Config, budget: int, changes: Mapping[str, Any]) -> Config:
    """The nearest configuration to a parameter budget; refused where it is more than 2% away."""
    if "width" in changes:
        raise InputError("the width and a parameter budget cannot both be set; drop one of the two options")
    sized: Config
    if isinstance(config, TransformerConfig):
        sized = _sized_transformer(config, budget, changes)
    elif isinstance(config, RecurrentConfig):
        sized = _sized_recurrent(config, budget, changes)
    else:
        raise TypeError(f"no sizes for {type(config).__name__}")
    if not _close(sized, budget):
        raise InputError(
            "no {family} with a vocabulary of {vocabulary} comes within 2% of {budget} parameters; the nearest has "
            "{nearest}: change the budget or the vocabulary",
            family=config.family,
            vocabulary=config.vocabulary,
            budget=budget,
            nearest=_count(sized),
        )
    return sized


def _close(config: Config, budget: int) -> bool:
    return abs(_count(config) - budget) <= _TOLERANCE * budget


def _sized_recurrent(config: RecurrentConfig, budget: int, changes: Mapping[str, Any]) -> RecurrentConfig:
    """The width takes up the budget; where its steps are too coarse, another number of layers may do."""
    heights = [config.layers] if "layers" in changes else sorted(range(1, 5), key=lambda n: abs(n - config.layers))
    candidates = (
        _widest(lambda width, n=layers: replace(config, width=width, layers=n), 1, budget)  # type: ignore[misc]
        for layers in heights
    )
    return next((c for c in candidates if _close(c, budget)), _widest(lambda w: replace(config, width=w), 1, budget))


def _sized_transformer(config: TransformerConfig, budget: int, changes: Mapping[str, Any]) -> TransformerConfig:
    """The width first, in steps that divide into the heads; the MLP takes up the rest."""

    def at(width: int) -> TransformerConfig:
        mlp_width = changes.get("mlp_width") or _mlp_width(width, config.mlp)
        head_width = changes.get("head_width", width // config.heads)
        return replace(config, width=width, mlp_width=mlp_width, head_width=head_width)

    # Rotary positions turn pairs of a head's entries.
    step = config.heads * (2 if config.positions == "rotary" else 1)
    sized = _widest(at, step, budget, below=True)
    if "mlp_width" in changes:
        return sized
    one, two = _count(replace(sized, mlp_width=1)), _count(replace(sized, mlp_width=2))
    return replace(sized, mlp_width=max(1, round((budget - one) / (two - one)) + 1))


def _widest(at: Callable[[int], _C], step: int, budget: int, below: bool = False) -> _C:
    """The widest that fits ``budget`` (or the nearest to it), by bisection over multiples of ``step``."""
    low, high = 1, 2
    while _count(at(high * step)) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _count(at(middle * step)) <= budget else (low, middle)
    fits, over = at(low * step), at(high * step)
    return fits if below or budget - _count(fits) <= _count(over) - budget else over
