"""How sentence-transformers folders say that an encoder's vectors are pooled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lookback.errors import InputError
from lookback.weights.store import read_json, write_json

_MODES: dict[str, Literal["mean", "first", "last"]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
}


class SentencePooling(NamedTuple):
    """What ``1_Pooling/config.json`` and the list of modules say."""

    kind: Literal["mean", "first", "last"]
    normalised: bool


def pooling_of(metadata: Mapping[str, Any]) -> SentencePooling | None:
    """What a GGUF file's ``pooling_type`` says: 1 is the mean, 2 the first token, 3 the last."""
    kinds: dict[Any, Literal["mean", "first", "last"]] = {1: "mean", 2: "first", 3: "last"}
    got = metadata.get(f"{metadata.get('general.architecture')}.pooling_type")
    kind = kinds.get(got) if isinstance(got, int) else None
    return None if kind is None else SentencePooling(kind, True)


def read_pooling(folder: Path) -> SentencePooling | None:
    """The pooling of a sentence-transformers folder; None where the folder does not say.

    Raises InputError for one that is not a mean, the first or the last token.
    """
    path = folder / "1_Pooling" / "config.json"
    if not path.exists():
        return None
    record = read_json(path)
    chosen = [name for name, value in record.items() if name.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or chosen[0] not in _MODES:
        raise InputError(
            "{path} pools by {got}; supported: {allowed}",
            path=path,
            got=", ".join(chosen) or "nothing",
            allowed=", ".join(_MODES),
        )
    return SentencePooling(_MODES[chosen[0]], _normalises(folder))


def write_pooling(pooling: SentencePooling, width: int, folder: Path) -> None:
    """`read_pooling` the other way: what makes ``folder`` one that sentence-transformers opens."""
    record = {"word_embedding_dimension": width, **{mode: kind == pooling.kind for mode, kind in _MODES.items()}}
    write_json(record, folder / "1_Pooling" / "config.json")
    parts = {"Transformer": "", "Pooling": "1_Pooling", **({"Normalize": "2_Normalize"} if pooling.normalised else {})}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, path) in enumerate(parts.items())
    ]
    write_json(modules, folder / "modules.json")


def _normalises(folder: Path) -> bool:
    path = folder / "modules.json"
    if not path.exists():
        return False
    try:
        modules: Any = json.loads(path.read_text(encoding="utf-8"))
        return any(str(module["type"]).endswith(".Normalize") for module in modules)
    except (ValueError, TypeError, KeyError):
        raise InputError("{path} is no list of modules", path=path) from None
