"""Which family of names a model has, and its configuration in Hugging Face's words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lookback.errors import InputError
from lookback.models import LanguageModel, TransformerConfig
from lookback.models.language_model import Config
from lookback.weights.families import FAMILIES
from lookback.weights.table import Names, Record


def family_named(record: Record, path: Path) -> Names:
    """The family that a ``config.json`` says it is. Raises InputError that lists those that open."""
    kind = record.get("model_type")
    for names in FAMILIES:
        if names.model_type == kind:
            return names
    raise InputError(
        "{path} says model_type {got}; this version opens {allowed}",
        path=path,
        got=kind,
        allowed=", ".join(names.model_type for names in FAMILIES),
    )


def family_of(config: Config) -> Names | None:
    """The family that has exactly this architecture, if there is one."""
    if not isinstance(config, TransformerConfig):
        return None
    return next((names for names in FAMILIES if not names.obstacles(config)), None)


def required_family(config: Config) -> Names:
    """`family_of`, or an InputError that names the options which stand in the way of the nearest one."""
    if not isinstance(config, TransformerConfig):
        raise InputError(
            "Hugging Face has no architecture for a {family}; it can be taken elsewhere as our own folder only "
            "(config.json, model.safetensors, tokenizer.json): --to lookback",
            family=config.family,
        )
    nearest = min(FAMILIES, key=lambda names: len(names.obstacles(config)))
    if obstacles := nearest.obstacles(config):
        raise InputError(
            "Hugging Face has no architecture with exactly these options; the nearest, {nearest}, differs in {options}",
            nearest=nearest.architecture,
            options=", ".join(obstacles),
        )
    return nearest


def config_record(config: TransformerConfig, names: Names) -> dict[str, Any]:
    """What stands in ``config.json``."""
    return {"architectures": [names.architecture], "model_type": names.model_type, **names.write(config)}


def their_tensors(model: LanguageModel, names: Names) -> Mapping[str, Tensor]:
    """The model's parameters under the family's names."""
    assert isinstance(model.config, TransformerConfig)
    ours = dict(model.named_parameters())
    bare = len(names.prefix) if model.config.head == "none" else 0
    return {
        row.theirs[bare:]: row.transform.theirs([ours[name].detach() for name in row.ours])
        for row in names.rows(model.config)
    }
