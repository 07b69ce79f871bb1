"""Taking a model elsewhere: a folder that other tools open, opened again and compared before it is given out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from lookback import weights
from lookback.errors import InputError
from lookback.files import write_folder_aside
from lookback.models import LanguageModel
from lookback.session.session import Session, load

FORMATS = ("huggingface", "lookback")
_BOUND = 1e-4
_PROBE = 32


def export(session: Session, out: Path, *, to: str = "huggingface") -> dict[str, Any]:
    """Write ``out`` and say what it is: its architecture, and the largest difference of logits after opening it again.

    Raises InputError for a folder that holds something, a format that there is not, a model that the format has no
    exact architecture for (naming the options in the way), and a result that does not compute the same.
    """
    if to not in FORMATS:
        raise InputError("{got} is not a format; allowed: {allowed}", got=to, allowed=", ".join(FORMATS))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError("{path} is not empty; choose another folder", path=out)
    architecture = "lookback" if to == "lookback" else weights.required_family(session.model.config).architecture
    with write_folder_aside(out) as folder:
        weights.save(session.model, folder, native=to == "lookback", **_token_ids(session))
        session.tokenizer.save(folder)
        if _is_encoder(session.model):
            pooling = weights.SentencePooling(session.pooling.kind, session.pooling.normalised)
            weights.write_pooling(pooling, session.model.config.width, folder)
        difference = _difference(session, load(folder, device=str(session.model.device)))
        if not difference <= _BOUND:
            raise InputError(
                "the exported model's logits differ by {difference}, more than {bound}; it was not kept",
                difference=f"{difference:.1e}",
                bound=_BOUND,
            )
    return {"out": str(out), "format": to, "architecture": architecture, "largest_difference": difference}


def _token_ids(session: Session) -> dict[str, Any]:
    """The special ids that other tools look for in ``config.json``."""
    tokenizer = session.tokenizer
    return {
        "eos_token_id": tokenizer.end,
        "bos_token_id": tokenizer.end if tokenizer.begin is None else tokenizer.begin,
    }


def _difference(session: Session, again: Session) -> float:
    """The largest difference of logits (hidden states, where there is no head) on a fixed row of ids."""
    model = session.model
    length = min(_PROBE, model.config.context or _PROBE)
    ids = torch.randint(0, model.config.vocabulary, (1, length), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        one, other = (m.encode(ids.to(m.device))[0] for m in (model.eval(), again.model))
        if not _is_encoder(model):
            one, other = model.unembed(one), again.model.unembed(other)
    return float((one - other).abs().max())


def _is_encoder(model: LanguageModel) -> bool:
    """Whether the model gives vectors alone."""
    return getattr(model.config, "head", "linear") == "none"
