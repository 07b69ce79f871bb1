"""What a model says comes next, for rows of different lengths: with a state that is read on, or read anew each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from lookback.models import KVCache, LanguageModel, State
from lookback.nn.mask import Padding

Rows = Sequence[list[int]]


@contextmanager
def inference(model: LanguageModel) -> Iterator[None]:
    """The model in evaluation mode and without gradients; its mode comes back at the end."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


class Reader:
    """Gives the logits that follow each row; the rows are handed over whole and grow from call to call.

    With ``cache`` a state is kept and only what it has not seen goes through the model, ``chunk`` columns at a time.
    Without, and for rows longer than the context, the newest tokens that fit are all read anew. ``suffix`` stands
    after every row (a mask to be predicted). ``work`` counts the tokens that went through the model, ``state_bytes``
    what the state held for the rows that have been dropped.
    """

    def __init__(self, model: LanguageModel, *, cache: bool, chunk: int, suffix: Sequence[int] = ()) -> None:
        self._model = model
        self._cache = cache
        self._chunk = chunk
        self._suffix = list(suffix)
        self._state: State | None = None
        self.work = 0
        self.state_bytes = 0

    def logits(self, rows: Rows) -> Float[Tensor, "B V"]:
        """Logits for the token after each row."""
        context = self._model.config.context
        longest = max(map(len, rows))
        if self._cache and (context is None or longest <= context):
            if self._state is None:
                self._state = self._model.start(len(rows))
            rows = [row[seen:] for row, seen in zip(rows, self._state.lengths, strict=True)]
            return self._read(rows, self._chunk)
        self._state = None
        room = longest if context is None else context - len(self._suffix)
        rows = [row[max(0, len(row) - room) :] + self._suffix for row in rows]
        return self._read(rows, max(map(len, rows)))

    def drop(self, kept: list[int]) -> None:
        """Go on with the rows ``kept`` only, and count what the state held for the others."""
        if self._state is not None:
            before = _bytes(self._state)
            self._state = self._state.select(kept) if kept else None
            self.state_bytes += before - (0 if self._state is None else _bytes(self._state))

    def _read(self, rows: Rows, chunk: int) -> Float[Tensor, "B V"]:
        """Logits at each row's last token; shorter rows are padded on the right."""
        model = self._model
        last = torch.empty(0)
        for column in range(0, max(map(len, rows)), chunk):
            pieces = [row[column : column + chunk] for row in rows]
            counts = [len(piece) for piece in pieces]
            width = max(counts)
            ids = torch.tensor([piece + [0] * (width - n) for piece, n in zip(pieces, counts, strict=True)])
            padding = None if min(counts) == width else Padding.after(counts, width)
            hidden, _ = model.encode(ids.to(model.device), state=self._state, padding=padding)
            if padding is None:
                last = hidden[:, -1]
            else:
                read = torch.tensor(counts, device=model.device)[:, None, None]
                newest = hidden.take_along_dim((read - 1).clamp(min=0), dim=1)[:, 0]
                last = newest if column == 0 else torch.where(read[:, 0] > 0, newest, last)
            self.work += sum(counts)
        return model.unembed(last)


def _bytes(state: State) -> int:
    return state.nbytes_used if isinstance(state, KVCache) else state.nbytes
