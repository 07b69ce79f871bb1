"""What a model carries from step to step: one slot that a KV cache and a hidden vector both fill.

The caller owns the state and hands it to `encode`, which appends to it in place. Its lengths are host integers, one a
row; they move once a forward, outside the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lookback.nn.attention import Keep
from lookback.nn.mask import At, Causal, Padding, Present, Readable, Rule, SlidingWindow
from lookback.nn.recurrent import Carried


class State(Protocol):
    """The slot. ``lengths`` counts the tokens each row has taken in, ``nbytes`` the memory held for them."""

    lengths: tuple[int, ...]

    @property
    def nbytes(self) -> int: ...

    def select(self, rows: Sequence[int]) -> State:
        """A new state that holds copies of ``rows``, in that order (a row may be taken more than once)."""
        ...


class HiddenState:
    """What a recurrent model carries: a hidden vector a layer (and an LSTM's cell vector). Its size never changes."""

    def __init__(self, layers: list[Carried], lengths: tuple[int, ...]) -> None:
        self.layers = layers
        self.lengths = lengths

    @property
    def nbytes(self) -> int:
        """Bytes of all the vectors."""
        return sum(t.numel() * t.element_size() for layer in self.layers for t in layer if t is not None)

    def select(self, rows: Sequence[int]) -> HiddenState:
        """Copies of ``rows``."""
        index = torch.tensor(rows, dtype=torch.long, device=self.layers[0].hidden.device)
        layers = [Carried(h[index], None if c is None else c[index]) for h, c in self.layers]
        return HiddenState(layers, tuple(self.lengths[r] for r in rows))


class KVCache:
    """The keys and values of every position so far (the KV cache), one pair of tensors [B, K, C, H] a layer.

    A token's slot is its position in its own row, so rows of different lengths stand side by side and padding is never
    stored. A layer with a sliding window of W keeps W slots as a ring: position p lives in slot p mod W. The capacity C
    starts at ``capacity`` and doubles when it is full, up to ``limit``. Slots not yet used hold zeros.
    """

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        head_width: int,
        windows: Sequence[int | None],
        *,
        capacity: int,
        limit: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.lengths = (0,) * batch
        self.windows = tuple(windows)
        self.limit = limit
        self.keys, self.values = (
            [
                torch.zeros(batch, kv_heads, _slots(capacity, limit, window), head_width, dtype=dtype, device=device)
                for window in self.windows
            ]
            for _ in range(2)
        )

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(t.numel() * t.element_size() for t in (*self.keys, *self.values))

    @property
    def nbytes_used(self) -> int:
        """Bytes that hold keys and values of tokens: 2 · layers · K · H · bytes a number, a token."""
        used = 0
        for keys, window in zip(self.keys, self.windows, strict=True):
            tokens = sum(n if window is None else min(n, window) for n in self.lengths)
            used += 2 * tokens * keys.shape[1] * keys.shape[3] * keys.element_size()
        return used

    def select(self, rows: Sequence[int]) -> KVCache:
        """Copies of ``rows``."""
        index = torch.tensor(rows, dtype=torch.long, device=self.keys[0].device)
        new = object.__new__(KVCache)
        new.lengths = tuple(self.lengths[r] for r in rows)
        new.windows, new.limit = self.windows, self.limit
        new.keys, new.values = [k[index] for k in self.keys], [v[index] for v in self.values]
        return new

    def begin(self, length: int, padding: Padding | None) -> Append:
        """Make room for ``length`` more columns and say where their tokens go; nothing counts until `Append.finish`."""
        counts = padding.counts if padding is not None else (length,) * len(self.lengths)
        after = tuple(n + c for n, c in zip(self.lengths, counts, strict=True))
        for layer, window in enumerate(self.windows):
            self._reserve(layer, _slots(max(after), self.limit, window))
        return Append(self, length, padding, after)

    def _reserve(self, layer: int, slots: int) -> None:
        have = self.keys[layer].shape[2]
        if slots <= have:
            return
        grown = max(slots, min(2 * have, _slots(self.limit, self.limit, self.windows[layer])))
        for tensors in (self.keys, self.values):
            old = tensors[layer]
            tensors[layer] = old.new_zeros(old.shape[0], old.shape[1], grown, old.shape[3])
            tensors[layer][:, :, :have] = old


def _slots(tokens: int, limit: int, window: int | None) -> int:
    return min(tokens, limit if window is None else window)


@dataclass
class Append:
    """One forward's addition to a `KVCache`: the positions of its queries, what they may read, and where keys go."""

    cache: KVCache
    length: int
    padding: Padding | None
    after: tuple[int, ...]

    def __post_init__(self) -> None:
        self._later: list[tuple[Tensor, Tensor, int | None]] = []
        device = self.cache.keys[0].device
        before = torch.tensor(self.cache.lengths, device=device)[:, None]
        self.dense = self.padding is None and len(set(self.cache.lengths)) == 1
        if self.padding is None:
            positions = before + torch.arange(self.length, device=device)
        else:
            real = self.padding.real(device)
            positions = torch.where(real, before + real.cumsum(1) - 1, -1)
        self.positions: Int[Tensor, "#B T"] = positions[:1] if self.dense else positions
        # Where the real tokens stand in the batch, when they cannot be written as one slice.
        self._tokens: tuple[Tensor, ...] | None = None if self.dense else (positions >= 0).nonzero(as_tuple=True)

    def readable(self, window: int | None) -> Readable:
        """What the queries may read in a layer with this window (None: everything before them)."""
        key, contiguous = self._key_positions(window)
        rules: tuple[Rule, ...] = (Causal(),) if window is None else (Causal(), SlidingWindow(window))
        dense = self.dense and contiguous
        return Readable(rules if dense else (Present(), *rules), At(self.positions, key, dense=dense))

    def keep(self, layer: int) -> Keep:
        """The layer's slot: stores new keys and values and gives back all that can be read."""
        window = self.cache.windows[layer]
        ring = window is not None and self.length > 1

        def store(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            readable = []
            for buffers, new in ((self.cache.keys, k), (self.cache.values, v)):
                buffer = buffers[layer]
                if ring:
                    # A long chunk pushes out of the ring what its first queries still read: it is written at the end.
                    readable.append(torch.cat((buffer, new), dim=2))
                    self._later.append((buffer, new, window))
                else:
                    self._write(buffer, new, window)
                    readable.append(buffer[:, :, : max(self.after)])
            return readable[0], readable[1]

        return store

    def finish(self) -> None:
        """Count the new tokens. A forward that broke off before this has left the state as it was."""
        for buffer, new, window in self._later:
            self._write(buffer, new, window)
        self.cache.lengths = self.after

    def _write(self, buffer: Float[Tensor, "B K C H"], new: Float[Tensor, "B K T H"], window: int | None) -> None:
        start, stop = self.cache.lengths[0], self.after[0]
        if self._tokens is None:
            if window is None or stop <= buffer.shape[2]:
                buffer[:, :, start:stop] = new
                return
            kept = torch.arange(max(start, stop - window), stop, device=buffer.device)
            buffer[:, :, kept % window] = new[:, :, kept - start]
            return
        rows, columns = self._tokens
        slots = self.positions[rows, columns]
        if window is not None:
            last = torch.tensor(self.after, device=buffer.device)[rows] - window
            newest = slots >= last
            rows, columns, slots = rows[newest], columns[newest], slots[newest] % window
        buffer[rows, :, slots] = new[rows, :, columns]

    def _key_positions(self, window: int | None) -> tuple[Int[Tensor, "#B S"], bool]:
        """Positions of the keys that `keep` gives back, and whether they are the last S positions without holes."""
        device = self.positions.device
        after = torch.tensor(self.after[:1] if self.dense else self.after, device=device)[:, None]
        if window is None:
            slot = torch.arange(max(self.after), device=device)
            return torch.where(slot < after, slot, -1), True
        before = torch.tensor(self.cache.lengths[:1] if self.dense else self.cache.lengths, device=device)[:, None]
        slots = self.cache.keys[self.cache.windows.index(window)].shape[2]
        if self.length > 1:
            return torch.cat((_in_ring(before, slots, window), self.positions), dim=1), False
        return _in_ring(after, min(slots, max(self.after)), window), True


def _in_ring(length: Int[Tensor, "#B 1"], slots: int, window: int) -> Int[Tensor, "#B S"]:
    """The newest position below ``length`` that lives in each slot of a ring, -1 if none has been there."""
    slot = torch.arange(slots, device=length.device)
    position = length - 1 - (length - 1 - slot) % window
    return torch.where(position >= 0, position, -1)


def stateless(length: int, padding: Padding | None, documents: Int[Tensor, "B T"] | None, device: torch.device) -> At:
    """Where tokens stand that are read without a state: from 0 in each row or document, -1 at padding."""
    column = torch.arange(length, device=device)[None]
    if padding is not None:
        start = torch.tensor(padding.left, device=device)[:, None]
        column = torch.where(padding.real(device), column - start, -1)
    if documents is not None:
        documents = documents.to(device)
        begins = torch.ones_like(documents, dtype=torch.bool)
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        documents = begins.cumsum(dim=1)  # a number that comes back is another document
        column = column - torch.where(begins, column, 0).cummax(dim=1).values
    return At(column, column, documents, documents, dense=padding is None and documents is None)
