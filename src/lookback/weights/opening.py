"""Opening a model wherever it comes from, and saving one as the folder that most tools open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookback.errors import InputError
from lookback.files import settled
from lookback.models import LanguageModel, TransformerConfig
from lookback.models.language_model import Config
from lookback.weights import gguf_names, huggingface
from lookback.weights import native as ours
from lookback.weights.gguf import read_gguf
from lookback.weights.sentence import SentencePooling, pooling_of, read_pooling
from lookback.weights.source import Source, assemble, check_layers
from lookback.weights.store import CONFIG, WEIGHTS, open_folder, read_json, write_json, write_weights
from lookback.weights.table import Row


@dataclass(frozen=True)
class Opened:
    """A model that is known but not loaded: where it is, what it is, and its tensors to be read.

    ``metadata`` is a GGUF file's own (its tokenizer among it), or a folder's ``config.json``.
    """

    path: Path
    format: str
    family: str
    config: Config
    rows: Sequence[Row]
    source: Source
    metadata: Mapping[str, Any]

    @property
    def pooling(self) -> SentencePooling | None:
        """How an encoder's vectors are pooled, where the file or the folder says so."""
        return pooling_of(self.metadata) if self.format == "gguf" else read_pooling(self.path)

    def load(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> LanguageModel:
        """The model, in evaluation mode."""
        return assemble(self.source, self.rows, self.config, device=device, dtype=dtype)


def open_model(path: Path) -> Opened:
    """What stands at ``path``: a folder of ours or of Hugging Face's, or a GGUF file.

    Raises InputError for anything else, and for what is missing, cut short or not what it says.
    """
    if path.is_file():
        return _open_gguf(path)
    folder = settled(path)
    if not folder.is_dir():
        raise InputError(
            "{path} is not a model folder; give one that lookback train made or a Hugging Face one, a GGUF file, or "
            "hf:owner/name",
            path=path,
        )
    record = read_json(folder / CONFIG)
    if ours.is_native(record):
        config = ours.read_config(record, folder / CONFIG)
        source = check_layers(open_folder(folder), config)
        return Opened(folder, "lookback", config.family, config, ours.rows(config, folder / CONFIG), source, record)
    names = huggingface.family_named(record, folder / CONFIG)
    theirs = names.read(record)
    source = check_layers(open_folder(folder), theirs).named(names, theirs)
    return Opened(folder, "huggingface", names.model_type, theirs, list(names.rows(theirs)), source, record)


def load(path: Path, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> LanguageModel:
    """The model at ``path``; see `open_model`."""
    return open_model(path).load(device, dtype)


def save(model: LanguageModel, folder: Path, *, native: bool = False, **extra: Any) -> None:
    """Write the model as a Hugging Face folder where that library has exactly its architecture, else as ours.

    ``native`` asks for ours in any case.

    ``extra`` goes into ``config.json`` of the former, such as the ids of special tokens.
    """
    save_config(model.config, folder, native=native, **extra)
    save_weights(model, folder, native=native)


def save_config(config: Config, folder: Path, *, native: bool = False, **extra: Any) -> None:
    """Write ``config.json``."""
    names = None if native else huggingface.family_of(config)
    if names is None:
        write_json(ours.config_record(config), folder / CONFIG)
        return
    assert isinstance(config, TransformerConfig)
    write_json({**huggingface.config_record(config, names), **extra}, folder / CONFIG)


def save_weights(model: LanguageModel, folder: Path, *, native: bool = False) -> None:
    """Write ``model.safetensors``, by the names that belong to ``config.json``."""
    names = None if native else huggingface.family_of(model.config)
    tensors: Mapping[str, Tensor] = dict(model.named_parameters())
    write_weights(tensors if names is None else huggingface.their_tensors(model, names), folder / WEIGHTS)


def _open_gguf(path: Path) -> Opened:
    if path.suffix != ".gguf":
        raise InputError(
            "{path} is a file; of single files, GGUF (.gguf) ones open: give the model's folder", path=path
        )
    file = read_gguf(path)
    names = gguf_names.family_of(file)
    config = names.read(gguf_names.record_of(file, names))
    source = check_layers(gguf_names.source_of(file), config).named(names, config)
    return Opened(path, "gguf", names.model_type, config, list(names.rows(config)), source, file.metadata)
