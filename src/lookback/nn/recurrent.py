"""Recurrent cells: one vector, rewritten at each step.

Each cell is written twice over the same weights: `rnn_step`, `lstm_step` and `gru_step` say what one time step does
(the open form, which can be tapped), and PyTorch's fused `nn.RNN`, `nn.LSTM`, `nn.GRU` run whole sequences (the fast
form). Tests hold the two together in fp64. D below is the width of input and hidden vector alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lookback.nn.mask import Padding
from lookback.nn.tap import Tap

CellKind = Literal["rnn_tanh", "rnn_relu", "lstm", "gru"]
_IN_STEPS = ("hidden", "cell", "candidate", "input_gate", "forget_gate", "output_gate", "reset_gate", "update_gate")


class Carried(NamedTuple):
    """What one layer carries from step to step: the hidden vector and, for an LSTM, the cell vector."""

    hidden: Float[Tensor, "B D"]
    cell: Float[Tensor, "B D"] | None


def rnn_step(
    from_input: Float[Tensor, "B D"], from_hidden: Float[Tensor, "B D"], kind: CellKind
) -> Float[Tensor, "B D"]:
    """h' = tanh(W_x x + b_x + W_h h + b_h) (Elman 1990), or with ReLU; the two affine maps are given."""
    total = from_input + from_hidden
    return total.tanh() if kind == "rnn_tanh" else total.relu()


def lstm_step(
    from_input: Float[Tensor, "B G"],
    from_hidden: Float[Tensor, "B G"],
    cell: Float[Tensor, "B D"],
    tap: Tap | None,
    t: int,
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    """One LSTM step (Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000); G = 4D.

    i, f, o = σ(…), g = tanh(…);  c' = f·c + i·g;  h' = o·tanh(c').
    """
    i, f, g, o = (from_input + from_hidden).chunk(4, dim=-1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    if tap is not None:
        i, f = tap("input_gate", i, t), tap("forget_gate", f, t)
        g, o = tap("candidate", g, t), tap("output_gate", o, t)
    cell = f * cell + i * g
    if tap is not None:
        cell = tap("cell", cell, t)
    return o * cell.tanh(), cell


def gru_step(
    from_input: Float[Tensor, "B G"],
    from_hidden: Float[Tensor, "B G"],
    hidden: Float[Tensor, "B D"],
    tap: Tap | None,
    t: int,
) -> Float[Tensor, "B D"]:
    """One GRU step (Cho et al. 2014, with the reset gate after the product as cuDNN and PyTorch have it); G = 3D.

    r, z = σ(…);  n = tanh(W_n x + b + r·(U_n h + b'));  h' = (1−z)·n + z·h.
    """
    r_x, z_x, n_x = from_input.chunk(3, dim=-1)
    r_h, z_h, n_h = from_hidden.chunk(3, dim=-1)
    r, z = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
    if tap is not None:
        r, z = tap("reset_gate", r, t), tap("update_gate", z, t)
    n = (n_x + r * n_h).tanh()
    if tap is not None:
        n = tap("candidate", n, t)
    return (1 - z) * n + z * hidden


@dataclass(frozen=True)
class Segments:
    """A batch cut into runs of tokens that share one state: padding left out, a new run where a document begins.

    The runs are packed longest first, as `torch.nn.utils.rnn.PackedSequence` wants them: ``order`` are the flat
    positions (row · T + column) in packing order, ``sizes`` how many runs are still going at each step. A run that
    begins its row takes the state carried in; ``last`` is each row's final run (-1: the row has no token).
    """

    order: Int[Tensor, "M"]
    sizes: Int[Tensor, "steps"]
    row: Int[Tensor, "R"]
    carries: Bool[Tensor, "R 1"]
    last: Int[Tensor, "B"]
    real: Bool[Tensor, "B T"]
    fresh: Bool[Tensor, "B T"]

    @classmethod
    def of(
        cls,
        batch: int,
        length: int,
        padding: Padding | None,
        documents: Int[Tensor, "B T"] | None,
        device: torch.device,
    ) -> Segments:
        """The runs of a batch of shape [B, T]; ``documents`` are host numbers that change where a document begins."""
        real = np.ones((batch, length), bool) if padding is None else padding.real().numpy()
        begins = real & ~np.pad(real, ((0, 0), (1, 0)))[:, :-1]
        fresh = np.zeros_like(real)
        if documents is not None:
            number = documents.cpu().numpy()
            fresh[:, 1:] = real[:, 1:] & real[:, :-1] & (number[:, 1:] != number[:, :-1])
        row, start = np.nonzero(begins | fresh)
        # The running count of starts numbers each token's run; counting the tokens under each number gives lengths.
        run = (np.cumsum((begins | fresh).ravel()) - 1)[real.ravel()]
        lengths = np.bincount(run, minlength=len(row))
        rank = np.argsort(-lengths, kind="stable")
        sizes = (lengths[rank][:, None] > np.arange(lengths.max(initial=0))).sum(0)
        first = (row * length + start)[rank]
        order = np.concatenate([first[:n] + t for t, n in enumerate(sizes)]) if len(sizes) else first
        last = np.full(batch, -1)
        last[row] = np.argsort(rank)  # Later runs of a row overwrite earlier ones.
        carries = begins[row, start][rank, None]
        tensors = [torch.from_numpy(a).to(device) for a in (order, row[rank], carries, last, real, fresh)]
        return cls(tensors[0], torch.from_numpy(sizes), *tensors[1:])


class Recurrence(nn.Module):
    """One recurrent layer of input and hidden width D."""

    def __init__(self, width: int, kind: CellKind) -> None:
        super().__init__()
        self.kind = kind
        if kind == "lstm":
            self.cell: nn.RNNBase = nn.LSTM(width, width, batch_first=True)
        elif kind == "gru":
            self.cell = nn.GRU(width, width, batch_first=True)
        else:
            self.cell = nn.RNN(width, width, batch_first=True, nonlinearity=kind.removeprefix("rnn_"))

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        carried: Carried,
        segments: Segments | None = None,
        tap: Tap | None = None,
    ) -> tuple[Float[Tensor, "B T D"], Carried]:
        """Hidden vectors at every position (0 at padding) and what is carried on; ``segments`` None: one run a row."""
        if not x.shape[1]:  # PyTorch's cells refuse an empty sequence.
            return x, carried
        if tap is not None and any(map(tap.wants, _IN_STEPS)):
            return self.steps(x, carried, segments, tap)
        if segments is None:
            out, last = self.cell(x, self._initial(carried))
            return out, self._carried(last)
        return self._packed(x, carried, segments)

    def steps(
        self, x: Float[Tensor, "B T D"], carried: Carried, segments: Segments | None = None, tap: Tap | None = None
    ) -> tuple[Float[Tensor, "B T D"], Carried]:
        """The open form: one step after the other."""
        hidden, cell = carried
        outputs = []
        w_x, w_h, b_x, b_h = self.cell.parameters()
        from_input = nn.functional.linear(x, w_x, b_x)
        for t in range(x.shape[1]):
            old_hidden, old_cell = hidden, cell
            if segments is not None:
                hidden = hidden.masked_fill(segments.fresh[:, t, None], 0.0)
                cell = None if cell is None else cell.masked_fill(segments.fresh[:, t, None], 0.0)
            from_hidden = nn.functional.linear(hidden, w_h, b_h)
            if cell is not None:
                hidden, cell = lstm_step(from_input[:, t], from_hidden, cell, tap, t)
            elif self.kind == "gru":
                hidden = gru_step(from_input[:, t], from_hidden, hidden, tap, t)
            else:
                hidden = rnn_step(from_input[:, t], from_hidden, self.kind)
            if tap is not None:
                hidden = tap("hidden", hidden, t)
            out = hidden
            if segments is not None:
                real = segments.real[:, t, None]
                out = hidden.masked_fill(~real, 0.0)
                hidden = torch.where(real, hidden, old_hidden)
                cell = None if cell is None or old_cell is None else torch.where(real, cell, old_cell)
            outputs.append(out)
        return torch.stack(outputs, dim=1), Carried(hidden, cell)

    def _packed(self, x: Tensor, carried: Carried, segments: Segments) -> tuple[Tensor, Carried]:
        if not len(segments.sizes):
            return torch.zeros_like(x), carried
        begin = Carried(*(None if s is None else s[segments.row].masked_fill(~segments.carries, 0.0) for s in carried))  # type: ignore[arg-type]
        packed = PackedSequence(x.flatten(0, 1)[segments.order], segments.sizes)
        out, last = self.cell(packed, self._initial(begin))
        hidden = torch.zeros_like(x).flatten(0, 1).index_copy(0, segments.order, out.data).view_as(x)
        none = (segments.last < 0)[:, None]
        ended = (
            None if new is None or old is None else torch.where(none, old, new[segments.last])
            for new, old in zip(self._carried(last), carried, strict=True)
        )
        return hidden, Carried(*ended)  # type: ignore[arg-type]

    def _initial(self, carried: Carried) -> Tensor | tuple[Tensor, Tensor]:
        hidden = carried.hidden[None].contiguous()
        return hidden if carried.cell is None else (hidden, carried.cell[None].contiguous())

    def _carried(self, last: Tensor | tuple[Tensor, Tensor]) -> Carried:
        return Carried(last[0], None) if isinstance(last, Tensor) else Carried(last[0][0], last[1][0])
