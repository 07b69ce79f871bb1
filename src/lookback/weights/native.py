"""Our own folder, for what has no exact class elsewhere: our configuration, and the parameters by their own names."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lookback.errors import InputError
from lookback.models import RecurrentConfig, RecurrentLM, Transformer, TransformerConfig
from lookback.models.language_model import Config
from lookback.nn.position import RotaryScaling
from lookback.weights.rotary import checked
from lookback.weights.source import empty_model
from lookback.weights.table import Row

_PREFIX = "lookback-"
_KINDS: Mapping[str, type[TransformerConfig] | type[RecurrentConfig]] = {
    Transformer.kind: TransformerConfig,
    RecurrentLM.kind: RecurrentConfig,
}


def is_native(record: Mapping[str, Any]) -> bool:
    """Whether a ``config.json`` is one of ours."""
    return str(record.get("model_type", "")).startswith(_PREFIX)


def config_record(config: Config) -> dict[str, Any]:
    """What stands in ``config.json``."""
    assert isinstance(config, TransformerConfig | RecurrentConfig)
    kind = next(name for name, of in _KINDS.items() if isinstance(config, of))
    return {"model_type": f"{_PREFIX}{kind}", "family": config.family, **asdict(config)}


def read_config(record: Mapping[str, Any], path: Path) -> Config:
    """The configuration that a ``config.json`` holds; ``path`` is named in what is refused."""
    kind = str(record["model_type"]).removeprefix(_PREFIX)
    if kind not in _KINDS:
        raise InputError(
            "{path} says model_type {got}; this version opens {allowed}",
            path=path,
            got=record["model_type"],
            allowed=", ".join(f"{_PREFIX}{name}" for name in _KINDS),
        )
    values = {name: value for name, value in record.items() if name not in ("model_type", "family")}
    known = {field.name for field in fields(_KINDS[kind])}
    if unknown := sorted(set(values) - known):
        raise InputError("{path} has options this version does not know: {names}", path=path, names=", ".join(unknown))
    _check_types(values, _KINDS[kind], path)
    if scaling := values.get("rotary_scaling"):
        _check_types(scaling, RotaryScaling, path)
        pair = scaling.get("mscale")
        read = RotaryScaling(**{**scaling, "mscale": None if pair is None else tuple(pair)})
        values["rotary_scaling"] = checked(read, values.get("rotary_base", 10_000.0))
    try:
        return _KINDS[kind](**values)
    except TypeError as error:
        raise InputError("{path} is not a configuration: {reason}", path=path, reason=error) from None


def rows(config: Config, path: Path) -> list[Row]:
    """Every parameter under its own name."""
    return [Row((name,), name) for name, _ in empty_model(config, path).named_parameters()]


def fits(value: Any, hint: Any) -> bool:
    """Whether a value out of a JSON file is of an annotated type; whole numbers pass for floats, infinities never."""
    kind = get_origin(hint)
    if kind in (Union, UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if kind is Literal:
        return value in get_args(hint)
    if kind is tuple:
        return isinstance(value, list) and all(fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    if hint is RotaryScaling:
        return isinstance(value, dict)
    return type(value) is hint


def _check_types(values: Mapping[str, Any], of: type, path: Path) -> None:
    hints = get_type_hints(of)
    for name, value in values.items():
        if name not in hints or not fits(value, hints[name]):
            raise InputError(
                "{path} has {got} for {name}, which cannot be", path=path, name=name, got=json.dumps(value)
            )
