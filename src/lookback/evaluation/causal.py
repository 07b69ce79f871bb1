"""Scoring a text from left to right: every token once, each after the tokens before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from lookback.data import TokenFile
from lookback.errors import InputError
from lookback.evaluation.score import Score, check_text, checked_window, scoring, share_of_bytes, token_nats
from lookback.models import LanguageModel

Ids = npt.NDArray[np.integer[Any]]

_CHUNK = 512  # columns a recurrent model reads at a time
_POOL = 4096  # windows that are put in order of length together


class Window(NamedTuple):
    """The model reads ids[start:stop]; what follows each id from ``scored`` on is scored."""

    start: int
    stop: int
    scored: int


def evaluate(
    model: LanguageModel,
    tokens: TokenFile,
    *,
    end: int,
    window: int | None = None,
    stride: int | Literal["window"] | None = None,
    batch_size: int = 16,
    cross_documents: bool = False,
    limit: int | None = None,
    exact: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Score:
    """Score every token but the first once; the sum is the same for any ``batch_size``.

    A document begins at its end token, so its first token is predicted from that, and the end token that closes it is
    a token to predict like any other (``bytes`` counts the text alone). Nothing is read across documents, unless
    ``cross_documents``.

    A Transformer reads windows of ``window`` tokens (its context). Each begins ``stride`` tokens after the one before
    (half a window; "window": they do not overlap) and scores only what that one has not. A recurrent model carries its
    state through the whole document, or, given a ``window``, starts anew in each like a Transformer.

    ``limit`` scores the first so many tokens only, each with the same context as without; ``bytes`` is then their share
    by number. ``exact`` scores a float64 copy of the model (see `scoring`): twice the memory and about twice the time;
    without it the model runs in its own precision and the batch size may show in the seventh digit.

    Raises InputError for an empty text, a bidirectional model, and a window or stride that is not possible.
    """
    if not model.config.causal:
        raise InputError(
            "a {family} reads both sides, so what follows would be known to it; score it with masks instead",
            family=model.config.family,
        )
    check_text(tokens, limit, batch_size)
    window = checked_window(model, window)
    step = _checked_stride(model, window, stride)
    ids = tokens.ids if limit is None else tokens.ids[: limit + 1]
    plan = windows(ids, end=end, window=window, stride=step, cross_documents=cross_documents)
    nats, scored, scorable = 0.0, 0, len(ids) - 1
    with scoring(model, exact) as scored_model:
        for rows in _batches(plan, batch_size):
            for some, count in _nats(scored_model, ids, rows, carry=window is None):
                nats, scored = nats + some, scored + count
                if progress is not None:
                    progress(scored / scorable)
    return Score(nats, scored, share_of_bytes(tokens, scored, len(tokens.ids) - 1))


def windows(ids: Ids, *, end: int, window: int | None, stride: int, cross_documents: bool) -> Iterator[Window]:
    """The windows over every document, in order; one each if ``window`` is None."""
    last = len(ids) - 1  # nothing follows the last id
    begins = [] if cross_documents else (np.flatnonzero(ids[1:last] == end) + 1).tolist()
    for start, stop in zip([0, *begins], [*begins, last], strict=True):
        begin = scored = start
        while scored < stop:
            reached = stop if window is None else min(begin + window, stop)
            yield Window(begin, reached, scored)
            begin, scored = begin + stride, reached


def _checked_stride(model: LanguageModel, window: int | None, stride: int | Literal["window"] | None) -> int:
    if window is None:
        if stride is not None:
            raise InputError(
                "a {family} carries its state through the whole text, so there is no window to move by a stride; "
                "give a window too, or drop the stride",
                family=model.config.family,
            )
        return 0
    if stride is None:
        return max(1, window // 2)
    if stride == "window":
        return window
    if not 1 <= stride <= window:
        raise InputError(
            "a stride of {got} does not fit a window of {window}; it must be 1 to {window}", got=stride, window=window
        )
    return stride


def _batches(plan: Iterator[Window], batch_size: int) -> Iterator[list[Window]]:
    """Batches of windows of nearly one length, so that little is computed in vain."""
    while pool := sorted(islice(plan, _POOL), key=lambda row: row.start - row.stop):
        for at in range(0, len(pool), batch_size):
            yield pool[at : at + batch_size]


def _nats(model: LanguageModel, ids: Ids, rows: list[Window], *, carry: bool) -> Iterator[tuple[float, int]]:
    """Nats and number of tokens of a batch, longest row first: a chunk at a time if the state is carried, else at once.

    Columns past a row's end hold whatever follows it or a repeated id: under the causal mask nothing that is scored
    reads them, so they need no padding, and a row leaves the state once it has ended.
    """
    state = model.start(len(rows)) if carry else None
    starts, stops, scored = np.array(rows).T[:, :, None]
    longest = rows[0].stop - rows[0].start
    for column in range(0, longest, _CHUNK if carry else longest):
        going = int((starts + column < stops).sum())
        if state is not None and going < len(state.lengths):
            state = state.select(range(going))
        width = min(_CHUNK, longest - column) if carry else longest
        at = (starts[:going] + column) + np.arange(width)
        read = torch.from_numpy(ids[np.minimum(at, stops[:going] - 1)].astype(np.int64)).to(model.device)
        hidden, _ = model.encode(read, state=state)
        counted = (scored[:going] <= at) & (at < stops[:going])
        targets = torch.from_numpy(ids[at[counted] + 1].astype(np.int64)).to(model.device)
        nats, _ = token_nats(model, hidden[torch.from_numpy(counted).to(model.device)], targets)
        yield float(nats.sum()), len(targets)
