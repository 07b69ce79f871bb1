"""Scoring a text with masks: each token hidden alone, everything around it seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from lookback.data import TokenFile
from lookback.errors import InputError
from lookback.evaluation.score import Score, check_text, checked_window, scoring, share_of_bytes, token_nats
from lookback.models import LanguageModel
from lookback.nn.mask import Padding

Positions = npt.NDArray[np.int64]


def evaluate_masked(
    model: LanguageModel,
    tokens: TokenFile,
    *,
    end: int,
    mask: int,
    specials: Sequence[int],
    window: int | None = None,
    batch_size: int = 16,
    cross_documents: bool = False,
    limit: int | None = None,
    exact: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Score:
    """The pseudo-log-likelihood of a text (Salazar et al. 2020) and how many tokens were guessed right.

    Every token that is not one of ``specials`` is replaced by ``mask`` once, alone, and predicted from a window of its
    own: ``window`` tokens (the model's context) of its document, with the token in the middle as far as the document
    reaches. So a text of n tokens takes n passes. ``limit`` scores so many tokens only, spread evenly over the text;
    ``bytes`` is then their share by number. ``exact`` and ``batch_size`` are those of `evaluate`.

    Raises InputError for an empty text, a causal model, and a window that is not possible.
    """
    if model.config.causal:
        raise InputError(
            "a {family} reads the left side only, so masks say little about it; score it from left to right instead",
            family=model.config.family,
        )
    check_text(tokens, limit, batch_size)
    width = checked_window(model, window) or len(tokens.ids)
    places = np.flatnonzero(~np.isin(tokens.ids, specials))
    scorable = len(places)
    if not scorable:
        raise InputError("there is no text to score, only special tokens; give a text that the tokenizer knows")
    if limit is not None and limit < scorable:
        places = places[np.arange(limit) * scorable // limit]
    starts, stops = _surroundings(tokens, places, end, width, cross_documents)
    order = np.argsort(starts - stops, kind="stable")
    nats, correct = 0.0, 0
    with scoring(model, exact) as scored_model:
        for at in range(0, len(order), batch_size):
            rows = order[at : at + batch_size]
            some, right = _score(scored_model, tokens, mask, places[rows], starts[rows], stops[rows])
            nats, correct = nats + some, correct + right
            if progress is not None:
                progress((at + len(rows)) / len(order))
    return Score(nats, len(places), share_of_bytes(tokens, len(places), scorable), correct)


def _surroundings(
    tokens: TokenFile, places: Positions, end: int, width: int, cross_documents: bool
) -> tuple[Positions, Positions]:
    """What each place is read in: ``width`` tokens around it, moved (or cut) to lie in its document."""
    ends = np.array([], np.int64) if cross_documents else np.flatnonzero(tokens.ids[1:] == end) + 1
    edges = np.array([0, *ends, len(tokens.ids)])
    document = np.searchsorted(edges, places, side="right")
    first, last = edges[document - 1], edges[document]
    starts = np.clip(places - width // 2, first, np.maximum(first, last - width))
    return starts, np.minimum(starts + width, last)


def _score(
    model: LanguageModel, tokens: TokenFile, mask: int, places: Positions, starts: Positions, stops: Positions
) -> tuple[float, int]:
    """Nats and right guesses of a batch, longest row first; shorter ones are padded."""
    length = int(stops[0] - starts[0])
    at = np.minimum(starts[:, None] + np.arange(length), stops[:, None] - 1)
    ids = torch.from_numpy(tokens.ids[at].astype(np.int64))
    rows, columns = torch.arange(len(places)), torch.from_numpy(places - starts)
    targets = ids[rows, columns]
    ids[rows, columns] = mask
    counts = (stops - starts).tolist()
    padding = None if min(counts) == length else Padding.after(counts, length)
    hidden, _ = model.encode(ids.to(model.device), padding=padding)
    nats, right = token_nats(model, hidden[rows, columns], targets.to(model.device))
    return float(nats.sum()), int(right.sum())
