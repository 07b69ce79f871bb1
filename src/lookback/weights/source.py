"""Somebody's tensors, by the names of their family, put together into a model of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from lookback.errors import InputError
from lookback.models import LanguageModel, TransformerConfig
from lookback.models.language_model import Config
from lookback.models.registry import empty
from lookback.weights.table import Names, Row

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """Tensors that can be read one at a time; ``shapes`` and ``kinds`` (of numbers) are known without reading any."""

    path: Path
    shapes: Mapping[str, Shape]
    kinds: Mapping[str, str]
    read: Callable[[str], Tensor]

    def named(self, names: Names, config: TransformerConfig) -> Source:
        """The same under the family's full names: a prefix that the file leaves out is put back, a missing original is
        read from its twin, and twins and what holds no parameter are left out.

        Raises InputError for a twin that differs from its original.
        """
        known_rows = {row.theirs for row in names.rows(config)}
        known = known_rows | set(names.twins)
        there: dict[str, str] = {}
        for name in self.shapes:
            today = names.today(name)
            full = names.prefix + today
            if today in known or not (full in known or full.endswith(names.ignored)):
                full = today
            there[full if full not in self.shapes else name] = name
        there = {full: name for full, name in there.items() if full in known or not full.endswith(names.ignored)}
        for twin, original in names.twins.items():
            if twin in there and twin not in known_rows and original not in there:
                there[original] = there.pop(twin)
        tied = [twin for twin in names.twins if twin in there and twin not in known_rows]
        for twin in tied:
            _check_twin(self, twin, there[twin], names.twins[twin], there.get(names.twins[twin]))
            del there[twin]
        return replace(
            self,
            shapes={full: self.shapes[name] for full, name in there.items()},
            kinds={full: self.kinds[name] for full, name in there.items()},
            read=lambda full: self.read(there[full]),
        )


def assemble(
    source: Source, rows: Sequence[Row], config: Config, *, device: torch.device | str, dtype: torch.dtype
) -> LanguageModel:
    """The model, in evaluation mode. Raises InputError that lists tensors that are missing, unknown or misshapen."""
    model = empty_model(config, source.path)
    wanted = {name: tuple(p.shape) for name, p in model.named_parameters()}
    match_shapes(source.path, _their_shapes(source.path, rows, wanted), source.shapes)
    state: dict[str, Tensor] = {}
    for row in rows:
        pieces = row.transform.ours(source.read(row.theirs))
        # A copy stands where PyTorch aligns it: beside the file, a matrix product may round differently.
        state |= {
            ours: torch.empty(wanted[ours], device=device, dtype=dtype).copy_(piece)
            for ours, piece in zip(row.ours, pieces, strict=True)
        }
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(True).eval()


def empty_model(config: Config, path: Path) -> LanguageModel:
    """A model without memory; sizes that no memory could hold are the file's mistake."""
    try:
        return empty(config)
    except (RuntimeError, OverflowError, TypeError):  # what PyTorch raises when a size overflows 64 bits
        raise _impossible(path) from None


def check_layers(source: Source, config: Config) -> Source:
    """``source``, if it can hold that many layers: a file's own word for their number must not be believed."""
    if config.layers > len(source.shapes):
        raise InputError(
            "{path} holds {got} tensors, too few for the {layers} layers that its config.json names",
            path=source.path,
            got=len(source.shapes),
            layers=config.layers,
        )
    return source


def match_shapes(path: Path, want: Mapping[str, Shape], got: Mapping[str, Shape]) -> None:
    """Refuse with a list of what is missing, unknown, or of another shape."""
    wrong = [f"{name} is missing" for name in want if name not in got]
    wrong += [f"{name} is unknown" for name in got if name not in want]
    wrong += [f"{n} is {list(got[n])} instead of {list(want[n])}" for n in want if n in got and got[n] != want[n]]
    if wrong:
        listed = "; ".join(wrong[:8]) + ("" if len(wrong) <= 8 else f"; and {len(wrong) - 8} more")
        raise InputError("{path} does not fit its config.json: {wrong}", path=path, wrong=listed)


def _their_shapes(path: Path, rows: Sequence[Row], wanted: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shape that each of their tensors must have, by running the transforms on tensors without memory."""
    try:
        with torch.device("meta"):
            return {
                row.theirs: tuple(row.transform.theirs([torch.empty(wanted[name]) for name in row.ours]).shape)
                for row in rows
            }
    except RuntimeError:  # several of ours in one may overflow where each alone does not
        raise _impossible(path) from None


def _impossible(path: Path) -> InputError:
    return InputError("{path} names sizes that no model can have", path=path)


def _check_twin(source: Source, twin: str, at: str, original: str, original_at: str | None) -> None:
    """Two tensors that a model ties must be equal where a file holds both."""
    if original_at is not None and not torch.equal(source.read(at), source.read(original_at)):
        raise InputError(
            "{path} ties {twin} to {original} by its config.json, but holds two that differ; set "
            "tie_word_embeddings to false if they should",
            path=source.path,
            twin=twin,
            original=original,
        )
