"""How configurations write rotary positions: a base, and perhaps a scaling for texts longer than were trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookback.errors import InputError
from lookback.models import TransformerConfig
from lookback.nn.position import RotaryScaling
from lookback.weights.options import Options

_KINDS = ("linear", "llama3", "yarn")


def read_rotary(options: Options, context: int) -> tuple[float, RotaryScaling | None]:
    """The base and the scaling, from ``rope_parameters`` or from ``rope_theta`` and ``rope_scaling``.

    Raises InputError that names a kind of scaling which is not supported: ``dynamic`` and ``longrope`` change the turn
    of keys that are already in the cache, so that a cached run would differ from an uncached one.
    """
    record = options.record.get("rope_parameters") or options.record.get("rope_scaling") or {}
    if not isinstance(record, Mapping):
        raise InputError(
            "this {family} model has a rope_scaling that is no record: {got}", family=options.family, got=record
        )
    rope = Options(record, options.family)
    base = rope.number("rope_theta", options.number("rope_theta", 10_000.0))
    kind: Any = record.get("rope_type") or record.get("type") or "default"
    options.must("partial_rotary_factor", 1.0)
    rope.must("partial_rotary_factor", 1.0)
    if kind == "default":
        return base, None
    if kind not in _KINDS:
        raise InputError(
            "this {family} model scales its rotary positions by {kind}; supported: {kinds}",
            family=options.family,
            kind=kind,
            kinds=", ".join(_KINDS),
        )
    attention = record.get("attention_factor")
    original = rope.count("original_max_position_embeddings", context)
    mscale, mscale_all = rope.number("mscale", 0.0), rope.number("mscale_all_dim", 0.0)
    scaling = RotaryScaling(
        kind=kind,
        factor=rope.number("factor", context / max(original, 1) if kind == "yarn" else 1.0),
        original_context=original,
        low_frequency=rope.number("low_freq_factor", 1.0),
        high_frequency=rope.number("high_freq_factor", 4.0),
        beta_fast=rope.number("beta_fast", 32.0),
        beta_slow=rope.number("beta_slow", 1.0),
        truncate=rope.flag("truncate", True),
        attention_factor=None if attention is None else rope.number("attention_factor", 1.0),
        mscale=(mscale, mscale_all) if mscale and mscale_all else None,
    )
    return base, checked(scaling, base)


def checked(scaling: RotaryScaling, base: float) -> RotaryScaling:
    """``scaling``, if its turns are numbers. Raises InputError for values that no model can have."""
    fine = scaling.factor > 0 and scaling.original_context > 0
    if scaling.kind == "llama3":
        fine &= scaling.high_frequency > scaling.low_frequency > 0
    if scaling.kind == "yarn":
        fine &= scaling.beta_fast > 0 and scaling.beta_slow > 0 and base > 1
        fine &= scaling.attention_factor is None or scaling.attention_factor > 0
    if not fine:
        raise InputError("this model's rotary positions cannot be scaled so: {got}", got=scaling)
    return scaling


def write_rotary(config: TransformerConfig) -> dict[str, Any]:
    """`read_rotary` the other way, in the form that every reader knows."""
    scaling = config.rotary_scaling
    if scaling is None:
        return {"rope_theta": config.rotary_base, "rope_scaling": None}
    record: dict[str, Any] = {
        "rope_type": scaling.kind,
        "factor": scaling.factor,
        "original_max_position_embeddings": scaling.original_context,
    }
    if scaling.kind == "llama3":
        record |= {"low_freq_factor": scaling.low_frequency, "high_freq_factor": scaling.high_frequency}
    if scaling.kind == "yarn":
        record |= {"beta_fast": scaling.beta_fast, "beta_slow": scaling.beta_slow, "truncate": scaling.truncate}
        record |= {} if scaling.attention_factor is None else {"attention_factor": scaling.attention_factor}
        record |= {} if scaling.mscale is None else dict(zip(("mscale", "mscale_all_dim"), scaling.mscale, strict=True))
    return {"rope_theta": config.rotary_base, "rope_scaling": record}
