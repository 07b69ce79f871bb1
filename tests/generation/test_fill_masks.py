"""Filling masks from both sides: one, several together, one by one."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from lookback.errors import InputError
from lookback.generation import fill
from lookback.models import LanguageModel, build, configure

MASK = 1
SPECIALS = range(2)


@cache
def bert() -> LanguageModel:
    model = build(configure("bert", 30, preset="tiny", context=16), seed=5, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(6)
    return model


def distribution(ids: list[int], position: int) -> torch.Tensor:
    with torch.no_grad():
        return bert()(torch.tensor([ids]))[0][0, position].softmax(-1)


def test_one_mask() -> None:
    ids = [0, 5, 6, MASK, 8]
    [fills] = fill(bert(), ids, [3], specials=SPECIALS, best=28)
    p = distribution(ids, 3)
    assert [f.probability for f in fills] == pytest.approx([float(p[f.token]) for f in fills])
    assert sorted(f.token for f in fills) == list(range(2, 30))
    assert [f.probability for f in fills] == sorted((f.probability for f in fills), reverse=True)
    assert sum(f.probability for f in fills) == pytest.approx(float(1 - p[:2].sum()))
    assert fill(bert(), ids, [3], specials=SPECIALS, best=4) == [fills[:4]]


def test_several_masks_together_do_not_know_of_each_other() -> None:
    ids = [0, MASK, 6, MASK, 8, MASK]
    fills = fill(bert(), ids, [5, 1, 3], specials=SPECIALS)
    for position, best in zip([5, 1, 3], fills, strict=True):
        p = distribution(ids, position)
        assert [f.token for f in best] == (2 + p[2:].argsort(descending=True)[:5]).tolist()


def test_one_by_one_puts_in_the_most_certain_first() -> None:
    ids, positions = [0, MASK, 6, MASK, 8, MASK], [1, 3, 5]
    fills = fill(bert(), ids, positions, specials=SPECIALS, one_by_one=True)
    left = list(positions)
    while left:
        best = {position: distribution(ids, position)[2:].max() for position in left}
        position = max(left, key=lambda p: best[p])
        first = fills[positions.index(position)][0]
        assert first.token == 2 + int(distribution(ids, position)[2:].argmax())
        assert first.probability == pytest.approx(float(best[position]))
        ids[position] = first.token
        left.remove(position)
    assert MASK not in ids
    assert fills != fill(bert(), [0, MASK, 6, MASK, 8, MASK], positions, specials=SPECIALS)


def test_a_fill_uses_both_sides() -> None:
    left, right = ([0, first, 6, MASK, last] for first, last in ((3, 4), (3, 9)))
    assert fill(bert(), left, [3], specials=SPECIALS) != fill(bert(), right, [3], specials=SPECIALS)


def test_what_cannot_be_filled_is_said_in_one_sentence() -> None:
    gpt = build(configure("gpt", 30, preset="tiny"))
    with pytest.raises(InputError, match=r"left side only.*generate"):
        fill(gpt, [0, MASK], [1], specials=SPECIALS)
    with pytest.raises(InputError, match="no mask"):
        fill(bert(), [0, 5], [], specials=SPECIALS)
    with pytest.raises(InputError, match="ask for 1 to 28"):
        fill(bert(), [0, MASK], [1], specials=SPECIALS, best=29)
    with pytest.raises(InputError, match="17 tokens are more than this model's context of 16"):
        fill(bert(), [MASK] * 17, [1], specials=SPECIALS)


def test_dropout_is_off_and_the_mode_comes_back() -> None:
    model = build(configure("bert", 30, preset="tiny", dropout=0.9)).train()
    first, second = (fill(model, [0, MASK, 4], [1], specials=()) for _ in range(2))
    assert first == second and model.training
