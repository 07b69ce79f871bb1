"""Batches: windows of the stream, the documents in them, BERT's masking, and their being pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookback.data import TokenFile
from lookback.data.batches import IGNORE, Batch, mask_tokens, masked_batch, next_token_batch
from lookback.errors import InputError

END, MASK, SPECIALS, VOCABULARY = 0, 1, 3, 50


def stream(ids: Any) -> TokenFile:
    return TokenFile(np.asarray(ids, dtype=np.uint16), documents=1, text_bytes=1)


def text(length: int, seed: int = 0, ends: float = 0.1) -> TokenFile:
    random = np.random.default_rng(seed)
    return stream(np.where(random.random(length) < ends, END, random.integers(SPECIALS, VOCABULARY, length)))


def next_tokens(tokens: TokenFile, **changes: Any) -> Batch:
    return next_token_batch(tokens, **({"seed": 1, "step": 0, "batch": 4, "length": 8, "end": END} | changes))


def masked(tokens: TokenFile, **changes: Any) -> Batch:
    settings = {"seed": 1, "step": 0, "batch": 4, "length": 8, "end": END}
    settings |= {"mask": MASK, "vocabulary": VOCABULARY, "specials": SPECIALS}
    return masked_batch(tokens, **(settings | changes))


def same(one: Batch, other: Batch, rows: slice = slice(None)) -> bool:
    """Whether ``one`` is exactly those rows of ``other``."""
    if (one.documents is None) != (other.documents is None):
        return False
    pairs = [(one.ids, other.ids), (one.targets, other.targets)]
    if one.documents is not None and other.documents is not None:
        pairs.append((one.documents, other.documents))
    return all(torch.equal(a, b[rows]) for a, b in pairs)


both = pytest.mark.parametrize("make", [next_tokens, masked])


def test_targets_are_the_tokens_after_the_inputs() -> None:
    batch = next_tokens(stream(range(1000)), batch=64, length=10)
    assert batch.ids.shape == batch.targets.shape == (64, 10)
    assert batch.ids.dtype == batch.targets.dtype == torch.int64
    assert torch.equal(batch.ids, batch.ids[:, :1] + torch.arange(10))
    assert torch.equal(batch.targets, batch.ids + 1)


@both
def test_windows_begin_anywhere_and_anywhere_alike(make: Any) -> None:
    width = 5 if make is next_tokens else 4
    batch = make(stream(range(SPECIALS, SPECIALS + 9 + width)), batch=10_000, length=4)
    whole = torch.where(batch.targets == IGNORE, batch.ids, batch.targets) if make is masked else batch.ids
    counts = torch.bincount(whole[:, 0] - SPECIALS)
    assert len(counts) == 10
    assert ((counts - 1000).abs() < 5 * 30).all()  # standard deviation 30


@both
def test_a_batch_is_a_pure_function_of_seed_and_step(make: Any) -> None:
    tokens = text(500)
    assert same(make(tokens), make(tokens))
    batches = [make(tokens, seed=seed, step=step).ids for seed in (1, 2, 2**63 + 5) for step in (0, 1, 2, 10**9)]
    assert all(not torch.equal(a, b) for number, a in enumerate(batches) for b in batches[:number])


@both
@given(lo=st.integers(0, 12), size=st.integers(0, 12), step=st.integers(0, 99), ends=st.sampled_from([0.0, 0.003, 0.2]))
def test_a_rank_has_exactly_its_rows_of_the_global_batch(make: Any, lo: int, size: int, step: int, ends: float) -> None:
    tokens = text(500, ends=ends)
    rows = slice(lo, lo + size)
    assert same(make(tokens, batch=12, step=step).rows(rows), make(tokens, batch=12, step=step), rows)


@both
@given(seed=st.integers(0, 10**6), ends=st.sampled_from([0.02, 0.1, 0.5, 1.0]))
def test_documents_are_numbered_from_the_end_tokens(make: Any, seed: int, ends: float) -> None:
    batch = make(text(200, seed, ends), seed=seed)
    numbers = []
    for row in batch.ids.tolist():  # END is special, so masking leaves it
        number, found = 0, []
        for place, token in enumerate(row):
            number += token == END and place > 0
            found.append(number)
        numbers.append(found)
    if any(map(any, numbers)):
        assert batch.documents is not None and batch.documents.tolist() == numbers
    else:
        assert batch.documents is None


@both
def test_documents_are_left_out_where_they_cannot_matter(make: Any) -> None:
    assert make(text(200, ends=0.5)).documents is not None
    assert make(text(200, ends=0.5), cross_documents=True).documents is None
    assert make(text(200, ends=0.0)).documents is None
    assert make(stream([END, *range(3, 11)])).documents is None  # the one document begins the one window


def test_crossing_documents_changes_nothing_else() -> None:
    for make in (next_tokens, masked):
        apart, across = make(text(200)), make(text(200), cross_documents=True)
        assert torch.equal(apart.ids, across.ids) and torch.equal(apart.targets, across.targets)


def test_streams_that_are_too_short_say_so() -> None:
    assert next_tokens(stream(range(9)), length=8).ids[0].tolist() == list(range(8))
    with pytest.raises(InputError, match="there are 8 tokens and one window needs 9"):
        next_tokens(stream(range(8)), length=8)
    assert masked(stream(range(8)), length=8).ids.shape == (4, 8)
    with pytest.raises(InputError, match="there are 7 tokens and one window needs 8"):
        masked(stream(range(7)), length=8)


def test_masking_takes_15_percent_and_treats_them_80_10_10() -> None:
    tokens = text(20_000, ends=0.2)
    counts = dict.fromkeys(["ordinary", "chosen", "masked", "kept", "random"], 0)
    strangers = np.zeros(VOCABULARY, dtype=int)
    for step in range(20):
        batch = masked(tokens, step=step, batch=64, length=64)
        scored = batch.targets != IGNORE
        original = torch.where(scored, batch.targets, batch.ids)
        assert (original[scored] >= SPECIALS).all()
        other = scored & (batch.ids != MASK) & (batch.ids != batch.targets)
        counts["ordinary"] += int((original >= SPECIALS).sum())
        counts["chosen"] += int(scored.sum())
        counts["masked"] += int((scored & (batch.ids == MASK)).sum())
        counts["kept"] += int((scored & (batch.ids == batch.targets)).sum())
        counts["random"] += int(other.sum())
        strangers += np.bincount(batch.ids[other], minlength=VOCABULARY)
    ordinary = VOCABULARY - SPECIALS
    luck = 0.1 / ordinary  # a random token may be the old one

    def within(name: str, total: int, share: float) -> None:
        assert abs(counts[name] - total * share) < 5 * (total * share * (1 - share)) ** 0.5, name

    within("chosen", counts["ordinary"], 0.15)
    within("masked", counts["chosen"], 0.8)
    within("random", counts["chosen"], 0.1 - luck)
    within("kept", counts["chosen"], 0.1 + luck)
    assert (strangers[:SPECIALS] == 0).all() and (strangers[SPECIALS:] > 0).all()


@given(
    ids=st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=6, max_size=6), min_size=1, max_size=5),
    rate=st.sampled_from([0.001, 0.15, 1.0]),
    seed=st.integers(0, 10**6),
    width=st.sampled_from([np.uint16, np.uint32, np.int64]),
)
def test_only_chosen_positions_change_or_have_a_target(
    ids: list[list[int]], rate: float, seed: int, width: type[Any]
) -> None:
    original = np.array(ids, dtype=width)
    inputs, targets = mask_tokens(
        original, np.random.default_rng(seed), mask=MASK, vocabulary=VOCABULARY, specials=SPECIALS, rate=rate
    )
    chosen = targets != IGNORE
    assert (inputs[~chosen] == original[~chosen]).all()
    assert (targets[chosen] == original[chosen]).all()
    assert (original[chosen] >= SPECIALS).all()
    assert ((inputs[chosen] == MASK) | (inputs[chosen] >= SPECIALS)).all()
    assert (inputs < VOCABULARY).all()
    assert chosen.any() == (original >= SPECIALS).any()
    if rate == 1.0:
        assert (chosen == (original >= SPECIALS)).all()


def test_masking_leaves_the_stream_as_it_is() -> None:
    tokens = text(200)
    before = tokens.ids.copy()
    masked(tokens, rate=1.0)
    assert (tokens.ids == before).all()
