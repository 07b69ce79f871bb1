"""Without a state: padded rows equal each row alone, and documents in one row equal separate runs (rules 2 and 13)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import (
    DTYPES,
    Ragged,
    all_configs,
    assert_near,
    logits_of,
    ragged_batches,
    random_ids,
    random_model,
    seeds,
)
from torch import Tensor

from lookback.models import LanguageModel
from lookback.models.language_model import Config

precisions = pytest.mark.parametrize("dtype", DTYPES, ids=["fp64", "fp32"])


@precisions
@given(config=all_configs, batch=ragged_batches(steps=1, longest=12), seed=seeds)
def test_padding_on_either_side(config: Config, batch: Ragged, seed: int, dtype: torch.dtype) -> None:
    model = random_model(config, seed, dtype)
    logits, state = model(batch.chunks()[0], padding=batch.paddings[0])
    assert state is None
    assert logits.isfinite().all()
    for row, actual in zip(batch.rows, batch.unpad([logits]), strict=True):
        assert_near(actual, logits_of(model, row))


@given(config=all_configs, batch=ragged_batches(steps=1), seed=seeds)
def test_what_fills_the_padding_is_never_read(config: Config, batch: Ragged, seed: int) -> None:
    model = random_model(config, seed)
    (padding,), real = batch.paddings, batch.paddings[0].real()
    one, two = (model.encode(batch.chunks(filler)[0], padding=padding)[0] for filler in (3, 7))
    assert torch.equal(one[real], two[real])


@st.composite
def cuts(draw: st.DrawFn, batch: int, length: int) -> Tensor:
    """Document numbers [B, T] that change where a document begins, whatever the numbers are."""
    rows = []
    for _ in range(batch):
        begins = torch.tensor(draw(st.lists(st.booleans(), min_size=length, max_size=length)))
        rows.append(begins.long().cumsum(0))
    # Counting on, or alternating: only that the number changes may matter.
    return torch.stack(rows) % draw(st.sampled_from([2, 1000]))


def check_documents(model: LanguageModel, ids: Tensor, documents: Tensor) -> None:
    logits, _ = model(ids, documents=documents)
    for row, numbers, actual in zip(ids, documents, logits, strict=True):
        sizes = torch.unique_consecutive(numbers, return_counts=True)[1].tolist()
        alone = [logits_of(model, document) for document in row.split(sizes)]
        assert_near(actual, torch.cat(alone))


@precisions
@given(data=st.data(), config=all_configs, seed=seeds)
def test_documents_in_a_row(data: st.DataObject, config: Config, seed: int, dtype: torch.dtype) -> None:
    batch, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 16))
    documents = data.draw(cuts(batch, length))
    check_documents(random_model(config, seed, dtype), random_ids(seed, batch, length), documents)


@pytest.mark.slow
@settings(max_examples=250)
@given(data=st.data(), config=all_configs, batch=ragged_batches(steps=1, longest=12), seed=seeds)
def test_padding_and_documents_at_length(data: st.DataObject, config: Config, batch: Ragged, seed: int) -> None:
    model = random_model(config, seed)
    logits, _ = model(batch.chunks()[0], padding=batch.paddings[0])
    for row, actual in zip(batch.rows, batch.unpad([logits]), strict=True):
        assert_near(actual, logits_of(model, row))
    check_documents(model, random_ids(seed, 2, 16), data.draw(cuts(2, 16)))
