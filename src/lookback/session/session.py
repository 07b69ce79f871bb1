"""What `load` returns: a model that takes and gives text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lookback import weights
from lookback.data import TokenFile, open_corpus
from lookback.errors import InputError
from lookback.evaluation import Score, evaluate, evaluate_masked
from lookback.generation import Generated, Pooling, Sampling, embed, fill, generate
from lookback.inspection import BUDGET, Trace
from lookback.inspection import record as record_activations
from lookback.models import LanguageModel
from lookback.session import cache
from lookback.tokenizers import MASK, Tokenizer
from lookback.weights import read_json

RECORD = "lookback.json"
_DOCUMENTS_SEEN = 100
SPLITS = ("all", "train", "held-out")


class Fill(NamedTuple):
    """One way to fill a masked place."""

    text: str
    probability: float


@dataclass(frozen=True)
class Session:
    """A model, its tokenizer, the folder they came from, and ``record``: how the model was made.

    ``pooling`` is how an encoder's vectors become one for a text; its folder says so, else it is their mean.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    folder: Path
    record: dict[str, Any] = field(default_factory=dict)
    pooling: Pooling = field(default_factory=Pooling)

    @property
    def begins_documents(self) -> bool:
        """Whether a prompt is put at a document's beginning, behind an end token.

        A model that has seen few beginnings (one long file has one) has not learnt what that token means.
        """
        documents: int = self.record.get("corpus", {}).get("documents", 0)
        return documents >= _DOCUMENTS_SEEN

    def ids(self, text: str) -> list[int]:
        """Token ids of a prompt, behind what the tokenizer puts before a text, or behind an end token where the model
        knows that as a beginning."""
        ids = [int(i) for i in self.tokenizer.encode(text).ids]
        before = [self.tokenizer.divider] if self.begins_documents else list(self.tokenizer.prefix)
        return [*before, *ids] or [self.tokenizer.divider]

    def generate(
        self,
        prompts: str | Sequence[str],
        *,
        max_new_tokens: int = 100,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        samples: int = 1,
        use_cache: bool = True,
        slide: bool = False,
        anyway: bool = False,
        chunk: int = 512,
        on_text: Callable[[int, str], None] | None = None,
    ) -> Generated:
        """Go on from each prompt, ``samples`` times; all rows run as one batch.

        ``on_text(row, piece)`` streams. Raises InputError for options that cannot be honoured, a prompt longer than the
        context (unless ``slide``), and a BERT (unless ``anyway``).
        """
        if samples < 1:
            raise InputError("{name} is {got}; it must be at least 1", name="samples", got=samples)
        texts = [prompts] if isinstance(prompts, str) else list(prompts)
        if not texts:
            raise InputError("there is no prompt; give at least one text")
        sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
        return generate(
            self.model,
            self.tokenizer,
            [ids for text in texts for ids in [self.ids(text)] * samples],
            max_new_tokens=max_new_tokens,
            sampling=sampling,
            seed=seed,
            stop=stop,
            end=self.ends,
            cache=use_cache,
            slide=slide,
            anyway=anyway,
            chunk=chunk,
            on_text=on_text,
        )

    def fill(self, text: str, *, best: int = 5, one_by_one: bool = False) -> list[list[Fill]]:
        """The ``best`` fills for each [MASK] in ``text``, with probabilities (of the whole vocabulary).

        Several masks are filled together, or ``one_by_one``: the surest first, each seeing those filled before. Raises
        InputError for a text without [MASK] and for a model that reads one side only.
        """
        if self.model.config.causal:
            raise InputError(
                "a {family} reads from the left only, so it cannot fill in a place by what stands on its right; use "
                "lookback generate, or a BERT",
                family=self.model.config.family,
            )
        pieces = text.split(MASK)
        if len(pieces) == 1:
            raise InputError("there is no {mask} in the text; put one where a token is to be filled in", mask=MASK)
        ids, places = self.ids("") if self.begins_documents else list(self.tokenizer.prefix), []
        for number, piece in enumerate(pieces):
            if number:
                places.append(len(ids))
                ids.append(self.tokenizer.mask)
            ids += [int(i) for i in self.tokenizer.encode(piece).ids]
        ids += self.tokenizer.suffix
        found = fill(self.model, ids, places, best=best, one_by_one=one_by_one, specials=self._specials)
        return [[Fill(self.tokenizer.token_text(f.token), f.probability) for f in place] for place in found]

    def evaluate(
        self,
        source: str | Path,
        *,
        split: str = "all",
        window: int | None = None,
        stride: int | str | None = None,
        batch_size: int = 16,
        cross_documents: bool | None = None,
        limit: int | None = None,
        encoding: str = "utf-8",
        text_field: str = "text",
        progress: Callable[[float], None] | None = None,
    ) -> Score:
        """Score a text: ``all`` of it, or the part that training held out or learnt from (split as training split it).

        ``stride`` "window" means windows side by side; the default is half a window. A BERT is scored by
        pseudo-likelihood: each token masked alone.
        """
        if split not in SPLITS:
            raise InputError("{got} is not a split; allowed: {allowed}", got=split, allowed=", ".join(SPLITS))
        corpus = open_corpus(source, encoding=encoding, field=text_field)
        trained = self.record.get("corpus", {})
        hold_out = "none" if split == "all" else str(trained.get("hold_out") or corpus.default_hold_out)
        data = cache.tokens_of(corpus, self.tokenizer, hold_out, float(trained.get("fraction", 0.1)))
        tokens = data.held_out if split == "held-out" else data.train
        if tokens is None:
            raise InputError("training held nothing out, so there is no held-out part; evaluate --split all")
        across = (
            bool(self.record.get("recipe", {}).get("cross_documents")) if cross_documents is None else cross_documents
        )
        return self.score(
            tokens,
            window=window,
            stride=stride,
            batch_size=batch_size,
            cross_documents=across,
            limit=limit,
            progress=progress,
        )

    def score(
        self,
        tokens: TokenFile,
        *,
        window: int | None = None,
        stride: int | str | None = None,
        batch_size: int = 16,
        cross_documents: bool = False,
        limit: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Score:
        """Score prepared tokens; see `evaluate`."""
        side_by_side = stride == "window"
        if isinstance(stride, str):
            if not side_by_side:
                raise InputError("{got} is not a stride; give a number of tokens, or the word window", got=stride)
            stride = window or self.model.config.context
        if not self.model.config.causal:
            if stride is not None and stride != (window or self.model.config.context):
                raise InputError("a BERT reads windows side by side; drop the stride, or set it to window")
            return evaluate_masked(
                self.model,
                tokens,
                end=self.tokenizer.divider,
                mask=self.tokenizer.mask,
                specials=self._specials,
                window=window,
                batch_size=batch_size,
                cross_documents=cross_documents,
                limit=limit,
                progress=progress,
            )
        return evaluate(
            self.model,
            tokens,
            end=self.tokenizer.divider,
            window=window,
            stride="window" if side_by_side else stride,
            batch_size=batch_size,
            cross_documents=cross_documents,
            limit=limit,
            progress=progress,
        )

    def trace(self, text: str, record: Sequence[str], *, budget: int = BUDGET) -> Trace:
        """Read ``text`` once and keep the activations that ``record`` names (``*`` is a wildcard), with batch size 1.

        ``lookback names MODEL`` lists the names. Gradients flow through what is recorded. Raises InputError for a name
        that there is not, a text past the context, and more than ``budget`` bytes.
        """
        self.model.eval()
        return record_activations(
            self.model, torch.tensor([self.ids(text)], device=self.model.device), record, budget=budget
        )

    def embed(self, texts: str | Sequence[str]) -> Float[Tensor, "N D"]:
        """One vector for each text: the last hidden vectors, pooled. Raises InputError for a text past the context."""
        rows = [texts] if isinstance(texts, str) else list(texts)
        around = (self.tokenizer.prefix, self.tokenizer.suffix)
        ids = [[*around[0], *(int(i) for i in self.tokenizer.encode(text).ids), *around[1]] for text in rows]
        return embed(self.model, ids, self.pooling)

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end a generation."""
        return frozenset(self.tokenizer.ends) | ({self.tokenizer.divider} if self.record else frozenset())

    @property
    def _specials(self) -> list[int]:
        return sorted({*self.tokenizer.specials, self.tokenizer.divider})


def load(path: str | Path, *, device: str = "auto") -> Session:
    """Open a model: a folder of ours or of Hugging Face's, a GGUF file, or a hub name (hf:owner/name).

    Raises InputError where it is none of these, or not a whole one.
    """
    where = choose_device(device)
    opened = weights.open_model(weights.fetch(str(path)) if weights.is_hub_name(str(path)) else Path(path))
    folder = opened.path
    record = _record(folder / RECORD)
    tokenizer = Tokenizer.from_gguf(opened.metadata) if opened.format == "gguf" else Tokenizer.load(folder)
    vocabulary = opened.config.vocabulary
    # Real models round their vocabulary up; one that was trained here has exactly its tokenizer's.
    if tokenizer.size > vocabulary or (record and tokenizer.size != vocabulary):
        raise InputError(
            "{path} holds a tokenizer of {size} tokens and a model of {vocabulary}; they do not belong together",
            path=folder,
            size=tokenizer.size,
            vocabulary=vocabulary,
        )
    pooling = opened.pooling
    return Session(opened.load(where), tokenizer, folder, record, Pooling() if pooling is None else Pooling(*pooling))


def _record(path: Path) -> dict[str, Any]:
    """How the model was made; nothing where a folder does not say."""
    record = read_json(path) if path.exists() else {}
    corpus, recipe = record.get("corpus", {}), record.get("recipe", {})
    if not isinstance(corpus, dict) or not isinstance(recipe, dict) or type(corpus.get("documents", 0)) is not int:
        raise InputError("{path} is damaged; restore it, or train the model again", path=path)
    return record


def choose_device(name: str) -> torch.device:
    """``auto`` is CUDA, else Apple's mps, else the CPU; any other name is taken as it is, or refused."""
    if name != "auto":
        try:
            device = torch.device(name)
            torch.zeros(1, device=device)
        except (RuntimeError, AssertionError):
            raise InputError("there is no device {got} here; use cpu, or auto", got=name) from None
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
