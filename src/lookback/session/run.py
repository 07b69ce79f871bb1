"""From a person's text to a trained model: corpus, tokenizer, model and recipe, brought together in one run folder."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from lookback import weights
from lookback.data import Corpus, Prepared, TokenFile, open_corpus
from lookback.errors import InputError
from lookback.evaluation import Score
from lookback.files import write_aside
from lookback.models import LanguageModel, build, configure
from lookback.models.registry import PRESETS
from lookback.session import cache
from lookback.session.session import RECORD, Session, choose_device, load
from lookback.tokenizers import Tokenizer, learn
from lookback.training import HeldOut, Objective, Outcome, Recipe, Report, Trainer, held_out_score
from lookback.weights import read_json

_BATCH = {"nanogpt-char-cpu": 12, "nanogpt-char": 64, "gpt2": 12}
# Gated cells learn well only at a higher rate (measured on tinyshakespeare: 1.71 nats a character against 2.03).
_RATE = {"lstm": 4e-3, "gru": 4e-3}
_STEPS = 2000
_KINDS = ("character", "word", "bpe", "wordpiece")
_FINAL = 10
Notify = Callable[[str, float], None]


@dataclass(frozen=True)
class RunOptions:
    """All that decides a run: text, tokenizer, model, training. Saved in the folder, for a resumed run to be the same.

    ``shape`` are changes to the model's configuration, ``recipe`` changes to the training recipe's defaults.
    """

    source: str
    model: str = "gpt"
    preset: str = "small"
    style: str | None = None
    parameters: int | None = None
    tokenizer: str = "character"
    vocabulary: int = 4096
    sample_bytes: int = 5_000_000
    unknown: bool = False
    hold_out: str | None = None
    fraction: float = 0.1
    encoding: str = "utf-8"
    text_field: str = "text"
    seed: int = 0
    shape: dict[str, Any] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)


def train(
    source: str | Path,
    *,
    out: str | Path,
    resume: bool = False,
    device: str = "auto",
    report: Report | None = None,
    notify: Notify | None = None,
    **options: Any,
) -> Session:
    """Train a model on a text and return it opened; ``options`` are `RunOptions`' fields and, in short, those of the
    model's configuration and of `Recipe` (``steps=500``, ``layers=2``).

    The folder ``out`` then holds the best model and its tokenizer, a checkpoint, and the metrics. ``resume`` goes on
    from the last checkpoint, exactly. ``notify(what, fraction)`` tells of the preparation, ``report`` of each step.
    Raises InputError for options that cannot be honoured, and for a folder that already holds a run.
    """
    wanted = _options(str(source), options)
    folder = Path(out)
    if resume:
        wanted = _resumed(folder, wanted, options)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("{path} is not empty; choose another --out, or go on with --resume", path=folder)
    _check_used(wanted, options)
    tell = notify or (lambda what, fraction: None)
    corpus = open_corpus(wanted.source, encoding=wanted.encoding, field=wanted.text_field)
    hold_out = wanted.hold_out or corpus.default_hold_out
    if resume:
        _check_text(folder, corpus, hold_out)
    tokenizer = _tokenizer(wanted, corpus, folder, tell)
    data = cache.tokens_of(corpus, tokenizer, hold_out, wanted.fraction, lambda f: tell("tokens", f))
    config = configure(
        wanted.model,
        tokenizer.size,
        preset=wanted.preset,
        style=wanted.style,
        parameters=wanted.parameters,
        **wanted.shape,
    )
    recipe = _stored_recipe(folder) if resume else _recipe(wanted, config.context)
    model = build(config, seed=wanted.seed, device=choose_device(device))
    trainer = Trainer(model, tokenizer, data, recipe, folder, report or (lambda event: None))
    record = _record(wanted, corpus, data, hold_out, recipe, model.parameters_count)
    trainer.check()
    _begin(folder, record, model, tokenizer)
    if resume:
        trainer.resume()
    outcome = trainer.run()
    return _finish(folder, record, outcome, trainer)


def _options(source: str, options: dict[str, Any]) -> RunOptions:
    """Sort short options to where they belong; None is the default."""
    options = {n: str(v) if isinstance(v, Path) else v for n, v in options.items() if v is not None}
    own = {f.name for f in fields(RunOptions)} - {"source"}
    ours = {name: value for name, value in options.items() if name in own}
    recipe_names = {f.name for f in fields(Recipe)} - own
    recipe = {name: value for name, value in options.items() if name in recipe_names}
    shape = {name: value for name, value in options.items() if name not in own | recipe_names}
    plain = RunOptions(source, **ours)
    return replace(plain, shape={**plain.shape, **shape}, recipe={**plain.recipe, **recipe})


def _check_used(wanted: RunOptions, given: dict[str, Any]) -> None:
    """Refuse options that this run would not look at."""
    settings = {"tokenizer": wanted.tokenizer, "hold_out": wanted.hold_out, "model": wanted.model}
    for name, setting, used in (
        ("vocabulary", "tokenizer", wanted.tokenizer in _KINDS[1:]),
        ("sample_bytes", "tokenizer", wanted.tokenizer in _KINDS[1:]),
        ("unknown", "tokenizer", wanted.tokenizer == _KINDS[0]),
        ("fraction", "hold_out", wanted.hold_out != "none"),
        ("mask_rate", "model", wanted.model == "bert"),
    ):
        if given.get(name) and not used:
            raise InputError(
                "{name} has no effect where {setting} is {value}; leave it out",
                name=name,
                setting=setting,
                value=settings[setting],
            )


def _resumed(folder: Path, wanted: RunOptions, given: dict[str, Any]) -> RunOptions:
    """The options of the run in ``folder``. Raises InputError where an option given now says something else."""
    if not (folder / RECORD).exists():
        raise InputError("there is no run to go on with in {path}; train without --resume first", path=folder)
    record = read_json(folder / RECORD)
    try:
        stored = RunOptions(**record["options"])
        flat = {**record["recipe"], **asdict(stored), **stored.shape, **stored.recipe}
    except (KeyError, TypeError):
        raise InputError(
            "{path} does not say how the run was begun; it cannot be gone on with", path=folder / RECORD
        ) from None
    for name, value in given.items():
        if value is not None and flat.get(name) != json.loads(json.dumps(value, default=str)):
            raise InputError(
                "the run in {path} has {name} {stored}, not {got}; a resumed run keeps its options: leave it out",
                path=folder,
                name=name,
                stored=flat.get(name),
                got=value,
            )
    return replace(stored, source=wanted.source)


def _stored_recipe(folder: Path) -> Recipe:
    """The recipe the run was begun with, whatever the defaults are today."""
    try:
        return Recipe(**read_json(folder / RECORD)["recipe"])
    except (KeyError, TypeError):
        raise InputError("{path} is damaged; restore it, or train the model again", path=folder / RECORD) from None


def _check_text(folder: Path, corpus: Corpus, hold_out: str) -> None:
    """Refuse to go on with another text, or with the same one divided otherwise."""
    begun = read_json(folder / RECORD).get("corpus")
    if not isinstance(begun, dict) or (begun.get("fingerprint"), begun.get("hold_out")) != (
        corpus.fingerprint,
        hold_out,
    ):
        raise InputError(
            "the run in {path} was begun with another text than {name} is now; bring that one back, or train anew",
            path=folder,
            name=corpus.name,
        )


def _tokenizer(wanted: RunOptions, corpus: Corpus, folder: Path, tell: Notify) -> Tokenizer:
    """The run's own if it is there, one from another folder if a path is named, else one learnt from the text."""
    if (folder / "tokenizer.json").exists():
        return Tokenizer.load(folder)
    if wanted.tokenizer not in _KINDS and Path(wanted.tokenizer).is_dir():
        return Tokenizer.load(Path(wanted.tokenizer))
    return learn(
        corpus.documents,
        wanted.tokenizer,
        vocabulary=wanted.vocabulary,
        sample_bytes=wanted.sample_bytes,
        allow_unknown=wanted.unknown,
        progress=lambda fraction: tell("vocabulary", fraction),
    )


def _recipe(wanted: RunOptions, context: int | None) -> Recipe:
    """The recipe's defaults for the preset, with the person's changes."""
    changes = dict(wanted.recipe)
    if not {"steps", "tokens", "minutes"} & set(changes):
        changes["steps"] = _STEPS
    length = context or PRESETS[wanted.preset].context
    defaults = {
        "length": length,
        "batch": _BATCH.get(wanted.preset, 16),
        "rate": _RATE.get(wanted.model, Recipe.rate),
        "seed": wanted.seed,
    }
    recipe = Recipe(**{**defaults, **changes})
    if context is not None and recipe.length > context:
        raise InputError(
            "a training length of {length} is more than the model's context of {context}; lower it or raise --context",
            length=recipe.length,
            context=context,
        )
    return recipe


def _record(
    wanted: RunOptions, corpus: Corpus, data: Prepared, hold_out: str, recipe: Recipe, parameters: int
) -> dict[str, Any]:
    documents = data.train.documents
    return {
        "family": wanted.model,
        "parameters": parameters,
        "corpus": {
            "name": corpus.name,
            "fingerprint": corpus.fingerprint,
            "hold_out": hold_out,
            "fraction": wanted.fraction,
            "documents": documents,
        },
        "recipe": asdict(recipe),
        "options": asdict(wanted),
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
    }


def _begin(folder: Path, record: dict[str, Any], model: LanguageModel, tokenizer: Tokenizer) -> None:
    """Lay out the run folder, the record first: a run that has one can be gone on with, wherever a crash fell."""
    new = not folder.exists()
    try:
        if not (folder / RECORD).exists():
            _write_record(folder, record)
        if not (folder / "tokenizer_config.json").exists():
            tokenizer.save(folder)
        if not (folder / weights.CONFIG).exists():
            weights.save_config(model.config, folder)
    except OSError:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _finish(folder: Path, record: dict[str, Any], outcome: Outcome, trainer: Trainer) -> Session:
    """Score the best model on the held-out text and write down how the run went."""
    progress = outcome.progress
    session = load(folder, device=str(trainer.model.device))
    held_out = None
    if trainer.data.held_out is not None and outcome.end == "finished":
        score = _final_score(session, trainer.data.held_out, trainer.objective)
        held_out = {"nats_per_token": score.nats_per_token, "bits_per_byte": score.bits_per_byte}
        held_out["tokens"] = score.tokens
    record = record | {
        "end": outcome.end,
        "step": progress.step,
        "best_step": progress.best_step,
        "tokens_seen": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "held_out": held_out,
    }
    _write_record(folder, record)
    return replace(session, record=record)


def _final_score(session: Session, tokens: TokenFile, objective: Objective) -> Score | HeldOut:
    """As `lookback evaluate --split held-out` scores it, on ten times the tokens of an evaluation in between at most.

    Masked models are scored by fixed masks.
    """
    if objective.masked:
        return held_out_score(session.model, tokens, objective)
    return session.score(
        tokens, limit=_FINAL * objective.recipe.evaluate_tokens, cross_documents=objective.recipe.cross_documents
    )


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    with write_aside(folder / RECORD) as path:
        path.write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
