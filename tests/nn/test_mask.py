"""Masks are rules over absolute positions; padding is said, not guessed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lookback.models.state import stateless
from lookback.nn.mask import At, Causal, Padding, Present, Readable, Rule, SameDocument, SlidingWindow

RULES: list[tuple[Rule, ...]] = [
    (),
    (Causal(),),
    (Causal(), SlidingWindow(3)),
    (Present(), Causal()),
    (SameDocument(), Causal(), SlidingWindow(2)),
    (SameDocument(),),
]


def at(query: list[int], key: list[int], *, dense: bool = False) -> At:
    return At(torch.tensor([query]), torch.tensor([key]), dense=dense)


def table(*rows: str) -> Tensor:
    """A mask drawn with x for what may be read."""
    return torch.tensor([[[[c == "x" for c in row] for row in rows]]])


def test_the_rules_drawn() -> None:
    here = at([0, 1, 2, 3], [0, 1, 2, 3])
    assert torch.equal(Readable((), here).tensor, table("xxxx", "xxxx", "xxxx", "xxxx"))
    assert torch.equal(Readable((Causal(),), here).tensor, table("x...", "xx..", "xxx.", "xxxx"))
    assert torch.equal(Readable((Causal(), SlidingWindow(2)), here).tensor, table("x...", "xx..", ".xx.", "..xx"))
    assert torch.equal(Readable((SlidingWindow(1),), here).tensor, table("xxxx", ".xxx", "..xx", "...x"))


def test_fewer_queries_than_keys_are_aligned_by_position() -> None:
    assert torch.equal(Readable((Causal(),), at([3, 4], [0, 1, 2, 3, 4])).tensor, table("xxxx.", "xxxxx"))
    assert torch.equal(Readable((Causal(), SlidingWindow(2)), at([4], [0, 1, 2, 3, 4])).tensor, table("...xx"))
    # The keys of a ring stand in any order.
    assert torch.equal(Readable((Causal(), SlidingWindow(3)), at([4], [3, 4, 2, 1])).tensor, table("xxx."))


def test_padding_reads_nothing_and_is_not_read() -> None:
    readable = Readable((Present(), Causal()), stateless(4, Padding(4, (1,), (1,)), None, torch.device("cpu")))
    assert torch.equal(readable.at.query, torch.tensor([[-1, 0, 1, -1]]))
    assert torch.equal(readable.tensor, table("....", ".x..", ".xx.", "...."))
    assert readable.empty is not None
    assert readable.empty.flatten().tolist() == [True, False, False, True]


def test_a_position_that_holds_nothing_is_out_of_reach_on_both_sides() -> None:
    here = at([-1, 0, 1], [0, -1, 1])
    assert torch.equal(Readable((Present(),), here).tensor, table("...", "x.x", "x.x"))


def test_documents_begin_at_position_0_and_do_not_see_each_other() -> None:
    here = stateless(5, None, torch.tensor([[4, 4, 9, 4, 4]]), torch.device("cpu"))
    assert torch.equal(here.query, torch.tensor([[0, 1, 0, 0, 1]]))
    drawn = table("x....", "xx...", "..x..", "...x.", "...xx")
    assert torch.equal(Readable((Causal(), SameDocument()), here).tensor, drawn)


@given(data=st.data(), rules=st.sampled_from(RULES), length=st.integers(1, 12))
def test_any_slice_of_queries_and_keys_is_that_slice_of_the_whole_mask(
    data: st.DataObject, rules: tuple[Rule, ...], length: int
) -> None:
    """So a mask never depends on how many queries or keys happen to be at hand."""
    positions = torch.arange(length)[None]
    documents = positions // 4
    whole = Readable(rules, At(positions, positions, documents, documents)).tensor
    some = st.lists(st.integers(0, length - 1), min_size=1, unique=True)
    q, k = torch.tensor(data.draw(some)), torch.tensor(data.draw(some))
    part = At(positions[:, q], positions[:, k], documents[:, q], documents[:, k])
    assert torch.equal(Readable(rules, part).tensor, whole[:, :, q][..., k])


@given(rules=st.sampled_from(RULES[:3]), keys=st.integers(1, 8), data=st.data())
def test_a_shape_known_on_the_host_says_what_the_tensor_says(
    rules: tuple[Rule, ...], keys: int, data: st.DataObject
) -> None:
    queries = data.draw(st.integers(1, keys))
    positions = torch.arange(keys)[None] + data.draw(st.integers(0, 5))
    readable = Readable(rules, At(positions[:, keys - queries :], positions, dense=True))
    shape = readable.shape
    assert "tensor" not in vars(readable), "the shape must not cost the tensor"
    if shape == "everything":
        assert readable.tensor.all()
    elif shape == "triangle":
        assert torch.equal(readable.tensor, torch.ones(1, 1, keys, keys, dtype=torch.bool).tril())
    assert readable.tensor.any(-1).all(), "a dense layout has no empty row"


def test_common_layouts_need_no_tensor() -> None:
    steps = list(range(6))
    assert Readable((), at(steps, steps, dense=True)).shape == "everything"
    assert Readable((Causal(),), at(steps, steps, dense=True)).shape == "triangle"
    assert Readable((Causal(),), at([5], steps, dense=True)).shape == "everything"
    assert Readable((Causal(), SlidingWindow(6)), at(steps, steps, dense=True)).shape == "triangle"
    assert Readable((Causal(), SlidingWindow(5)), at(steps, steps, dense=True)).shape == "tensor"
    assert Readable((Causal(),), at([4, 5], steps, dense=True)).shape == "tensor"
    assert Readable((Causal(),), at(steps, steps)).shape == "tensor"


def test_padding_counts_real_tokens() -> None:
    padding = Padding(4, left=(0, 2, 4), right=(1, 0, 0))
    assert padding.counts == (3, 2, 0)
    assert padding.real().tolist() == [[True, True, True, False], [False, False, True, True], [False] * 4]
    assert Padding.after([3, 0], 4) == Padding(4, (0, 0), (1, 4))


@pytest.mark.parametrize(("left", "right"), [((1,), (4,)), ((-1,), (0,)), ((0,), (-2,)), ((0, 0), (0,))], ids=str)
def test_padding_that_does_not_fit_is_refused(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit rows of 4"):
        Padding(4, left, right)
