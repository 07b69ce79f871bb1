"""Scoring with masks, against a loop that masks one token at a time."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookback.data import TokenFile
from lookback.errors import InputError
from lookback.evaluation import evaluate_masked
from lookback.models import LanguageModel, build, configure

END, MASK = 0, 1
SPECIALS = range(3)
CONTEXT = 8


@cache
def bert() -> LanguageModel:
    model = build(configure("bert", 20, preset="tiny", width=16, context=CONTEXT), seed=4)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(6)
    return model


@cache
def double() -> LanguageModel:
    copy = build(bert().config, dtype=torch.float64)
    copy.load_state_dict(bert().state_dict())
    return copy.eval()


def packed(*documents: list[int]) -> TokenFile:
    ids = [token for document in documents for token in (END, *document)] + [END]
    return TokenFile(np.array(ids, dtype=np.uint16), len(documents), 3 * sum(map(len, documents)))


def by_hand(tokens: TokenFile, width: int, cross: bool) -> list[tuple[float, bool]]:
    """For every token: its nats alone under a mask, in the middle of its window, and whether it is guessed."""
    ids = tokens.ids.tolist()
    found = []
    for place, target in enumerate(ids):
        if target in SPECIALS:
            continue
        first = 0 if cross else max(at for at in range(place) if at == 0 or ids[at] == END)
        last = len(ids) if cross else min(at for at in range(place, len(ids)) if ids[at] == END)
        begin = max(first, min(place - width // 2, last - width))
        window = ids[begin : min(begin + width, last)]
        window[place - begin] = MASK
        with torch.no_grad():
            p = double()(torch.tensor([window]))[0][0, place - begin].log_softmax(-1)
        found.append((-float(p[target]), int(p.argmax()) == target))
    return found


DOCUMENTS = st.lists(st.lists(st.integers(2, 19), max_size=15), min_size=1, max_size=3)


@settings(max_examples=15, deadline=None)
@given(
    DOCUMENTS.filter(lambda documents: any(token > 2 for document in documents for token in document)),
    st.none() | st.integers(1, CONTEXT),
    st.booleans(),
    st.integers(1, 7),
)
def test_equals_a_loop_over_single_masks(
    documents: list[list[int]], window: int | None, cross: bool, batch_size: int
) -> None:
    tokens = packed(*documents)
    score = evaluate_masked(
        bert(),
        tokens,
        end=END,
        mask=MASK,
        specials=SPECIALS,
        window=window,
        cross_documents=cross,
        batch_size=batch_size,
    )
    right = by_hand(tokens, window or CONTEXT, cross)
    assert score.nats == pytest.approx(sum(nats for nats, _ in right), rel=1e-10)
    assert (score.tokens, score.correct) == (len(right), sum(guessed for _, guessed in right))
    assert score.bytes == tokens.text_bytes
    assert score.accuracy == score.correct / score.tokens  # type: ignore[operator]


def test_any_batch_size_gives_the_same_number() -> None:
    generator = np.random.default_rng(1)
    tokens = packed(*(generator.integers(3, 20, n).tolist() for n in generator.integers(1, 20, 12)))
    one, *others = (
        evaluate_masked(bert(), tokens, end=END, mask=MASK, specials=SPECIALS, batch_size=size) for size in (1, 3, 16)
    )
    for other in others:
        assert other.nats == pytest.approx(one.nats, rel=1e-12)
        assert other.correct == one.correct


def test_limit_spreads_over_the_text() -> None:
    tokens = packed([*range(3, 13)], [*range(13, 20)])
    right = by_hand(tokens, CONTEXT, False)
    score = evaluate_masked(bert(), tokens, end=END, mask=MASK, specials=SPECIALS, limit=4)
    assert score.nats == pytest.approx(sum(right[at][0] for at in (0, 4, 8, 12)), rel=1e-10)
    assert (score.tokens, score.bytes) == (4, round(51 * 4 / 17))
    whole = evaluate_masked(bert(), tokens, end=END, mask=MASK, specials=SPECIALS, limit=17)
    assert whole == evaluate_masked(bert(), tokens, end=END, mask=MASK, specials=SPECIALS)


def test_what_cannot_be_scored_is_said_in_one_sentence() -> None:
    options = {"end": END, "mask": MASK, "specials": SPECIALS}
    with pytest.raises(InputError, match="left side only"):
        evaluate_masked(build(configure("gpt", 20, preset="tiny")), packed([3]), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no text to score"):
        evaluate_masked(bert(), packed([]), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="only special tokens"):
        evaluate_masked(bert(), packed([2, 2]), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="takes 1 to 8"):
        evaluate_masked(bert(), packed([3]), window=9, **options)  # type: ignore[arg-type]
