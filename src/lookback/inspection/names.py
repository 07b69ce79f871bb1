"""The names of a model's activations, and what shape each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod

from lookback.errors import InputError
from lookback.models import LanguageModel, RecurrentConfig, TransformerConfig

_ATTENTION = {
    "input": "B T D",
    "q": "B N T H",
    "k": "B K T H",
    "v": "B K T H",
    "q_rotated": "B N T H",
    "k_rotated": "B K T H",
    "scores": "B N T S",
    "masked_scores": "B N T S",
    "weights": "B N T S",
    "heads": "B N T H",
    "output": "B T D",
}
_MLP = {"input": "B T D", "hidden": "B T F", "output": "B T D"}
_GATES: Mapping[str, Sequence[str]] = {
    "rnn": (),
    "lstm": ("input_gate", "forget_gate", "candidate", "output_gate", "cell"),
    "gru": ("reset_gate", "update_gate", "candidate"),
}


@dataclass(frozen=True)
class Activation:
    """A name and its shape in the alphabet of dimensions (B T S D N K H F V)."""

    name: str
    shape: str

    def numbers(self, sizes: Mapping[str, int]) -> int:
        """How many numbers it holds for these sizes."""
        return prod(sizes[letter] for letter in self.shape.split())


def activations(model: LanguageModel) -> list[Activation]:
    """Every activation of the model that can be recorded, in the order in which a forward pass makes them."""
    return [Activation(name, shape) for name, shape in _named(model)]


def sizes(model: LanguageModel, batch: int, queries: int, keys: int | None = None) -> dict[str, int]:
    """What each letter stands for when ``batch`` rows of ``queries`` tokens are read (``keys``: with a state's)."""
    config = model.config
    found = {"B": batch, "T": queries, "S": keys or queries, "D": config.width, "V": config.vocabulary}
    if isinstance(config, TransformerConfig):
        found |= {"N": config.heads, "K": config.kv_heads, "H": config.head_width, "F": config.mlp_width}
    return found


def select(model: LanguageModel, patterns: Sequence[str]) -> list[Activation]:
    """The activations that match any of ``patterns`` (``*`` and ``?`` are wildcards).

    Raises InputError for a pattern that matches none.
    """
    known = activations(model)
    for pattern in patterns:
        if not any(fnmatchcase(one.name, pattern) for one in known):
            raise InputError(
                "no activation of this model is called {got}; lookback names lists them, such as {example}",
                got=pattern,
                example=known[-2].name,
            )
    return [one for one in known if any(fnmatchcase(one.name, pattern) for pattern in patterns)]


def _named(model: LanguageModel) -> Iterator[tuple[str, str]]:
    config = model.config
    if isinstance(config, TransformerConfig):
        yield from _transformer(config)
    elif isinstance(config, RecurrentConfig):
        yield "embedding", "B T D"
        for layer in range(config.layers):
            for name in (*_GATES[config.family], "hidden"):
                yield f"layers.{layer}.{name}", "B T D"
    yield "hidden", "B T D"
    yield "logits", "B T V"


def _transformer(config: TransformerConfig) -> Iterator[tuple[str, str]]:
    rotated = config.positions == "rotary"
    yield "embedding.tokens", "B T D"
    if config.positions in ("learned", "sinusoidal"):
        yield "embedding.positions", "B T D"
    yield "embedding", "B T D"
    for layer in range(config.layers):
        for name, shape in _ATTENTION.items():
            if rotated or not name.endswith("_rotated"):
                yield f"layers.{layer}.attention.{name}", shape
        yield f"layers.{layer}.middle", "B T D"
        for name, shape in _MLP.items():
            yield f"layers.{layer}.mlp.{name}", shape
        yield f"layers.{layer}.output", "B T D"
