"""The protocol every family answers to: its two halves, and what it refuses to read wrongly."""

from __future__ import annotations

import pytest
import torch

from lookback.errors import InputError
from lookback.models import FAMILIES, LanguageModel, build, configure
from lookback.nn.mask import Padding

CAUSAL = [family for family in FAMILIES if family != "bert"]


def model_of(family: str, **changes: object) -> LanguageModel:
    return build(configure(family, 20, preset="tiny", **changes), seed=1).eval()


def ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, 20, (batch, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("family", FAMILIES)
def test_forward_is_encode_then_unembed(family: str) -> None:
    model = model_of(family)
    hidden, state = model.encode(ids(2, 5))
    logits, _ = model(ids(2, 5))
    assert state is None
    assert hidden.shape == (2, 5, model.config.width)
    assert logits.shape == (2, 5, 20)
    assert torch.equal(model.unembed(hidden), logits)
    # Some positions only: what a loss on masked positions, or generation at the last one, asks for.
    torch.testing.assert_close(model.unembed(hidden[:, -1]), logits[:, -1], rtol=0, atol=1e-5)
    torch.testing.assert_close(model.unembed(hidden[1, 2]), logits[1, 2], rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", CAUSAL)
def test_the_state_given_is_the_state_got(family: str) -> None:
    model = model_of(family)
    state = model.start(2)
    assert state.lengths == (0, 0)
    for length in (3, 1):
        assert model.encode(ids(2, length), state=state)[1] is state
    assert state.lengths == (4, 4)
    assert all(isinstance(n, int) for n in state.lengths), "host integers"


def test_bert_has_no_state_that_stays_valid() -> None:
    with pytest.raises(InputError, match="reads both sides has no cache that stays valid"):
        model_of("bert").start(1)


@pytest.mark.parametrize("family", ["gpt", "bert"])
def test_more_than_the_context_is_refused(family: str) -> None:
    model = model_of(family, context=6)
    model.encode(ids(1, 6))
    with pytest.raises(InputError, match=r"7 tokens are more than this model's context of 6; shorten the text"):
        model.encode(ids(1, 7))
    # Padding is no token.
    model.encode(ids(2, 9), padding=Padding(9, (3, 0), (0, 4)))
    with pytest.raises(InputError, match="8 tokens"):
        model.encode(ids(2, 9), padding=Padding(9, (3, 0), (0, 1)))


@pytest.mark.parametrize("family", CAUSAL)
def test_a_state_of_another_size_is_refused(family: str) -> None:
    model = model_of(family)
    with pytest.raises(ValueError, match="3 rows of ids, but a state for 2"):
        model.encode(ids(3, 4), state=model.start(2))


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_of_another_size_is_refused(family: str) -> None:
    for padding in (Padding(5, (0, 0), (1, 0)), Padding(4, (0,), (1,))):
        with pytest.raises(ValueError, match="but ids of shape 2, 4"):
            model_of(family).encode(ids(2, 4), padding=padding)


@pytest.mark.parametrize("family", CAUSAL)
def test_documents_go_with_neither_a_state_nor_padding(family: str) -> None:
    model, documents = model_of(family), torch.zeros(2, 4, dtype=torch.long)
    for also in ({"state": model.start(2)}, {"padding": Padding(4, (0, 0), (1, 0))}):
        with pytest.raises(ValueError, match="documents go with neither"):
            model.encode(ids(2, 4), documents=documents, **also)


def test_a_state_of_another_architecture_is_refused() -> None:
    gpt, rnn = model_of("gpt"), model_of("rnn")
    with pytest.raises(ValueError, match="take one from its start"):
        gpt.encode(ids(1, 2), state=rnn.start(1))
    with pytest.raises(ValueError, match="take one from its start"):
        rnn.encode(ids(1, 2), state=gpt.start(1))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_without_columns_gives_one_back(family: str) -> None:
    model = model_of(family)
    assert model(ids(2, 0))[0].shape == (2, 0, 20)
    if family != "bert":
        state = model.start(2)
        model.encode(ids(2, 3), state=state)
        assert model(ids(2, 0), state=state)[0].shape == (2, 0, 20)
        assert state.lengths == (3, 3)
