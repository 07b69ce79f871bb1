"""CASES.md, MLM masking (transformers 11155, 17377): short sentences, padding and special tokens.

There pads or [CLS] were masked, the 80/10/10 shares were off, and the loss was taken over all positions.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from lookback.data import open_corpus, prepare
from lookback.data.batches import IGNORE, mask_tokens, masked_batch
from lookback.tokenizers import learn

PAD, CLS, SEP, MASK, SPECIALS, VOCABULARY = 0, 1, 2, 3, 4, 30


def test_padded_short_sentences_are_masked_in_their_words_alone() -> None:
    sentence = [CLS, 7, 8, 9, SEP, PAD, PAD, PAD]
    ids = np.array([sentence] * 20_000)
    inputs, targets = mask_tokens(
        ids, np.random.default_rng(1), mask=MASK, vocabulary=VOCABULARY, specials=SPECIALS, rate=0.15
    )
    chosen = targets != IGNORE
    assert not chosen[:, [0, 4, 5, 6, 7]].any()
    assert (inputs[:, [0, 4, 5, 6, 7]] == [CLS, SEP, PAD, PAD, PAD]).all()
    words = ids >= SPECIALS
    assert abs(chosen.sum() / words.sum() - 0.15) < 0.007  # 5 standard deviations of 60,000 draws
    masked = inputs[chosen] == MASK
    kept = inputs[chosen] == ids[chosen]
    assert abs(masked.mean() - 0.8) < 0.021  # and of 9,000
    assert abs(kept.mean() - (0.1 + 0.1 / 26)) < 0.017
    assert (inputs[chosen][~masked] >= SPECIALS).all()
    assert (targets[chosen] == ids[chosen]).all() and (targets[~chosen] == IGNORE).all()


def test_one_word_between_special_tokens_still_gives_a_target() -> None:
    for seed in range(50):
        _, targets = mask_tokens(
            np.array([[CLS, 7, SEP]]), np.random.default_rng(seed), mask=MASK, vocabulary=VOCABULARY, specials=SPECIALS
        )
        assert targets.tolist() == [[IGNORE, 7, IGNORE]]


def test_a_text_with_nothing_to_mask_is_left_alone() -> None:
    ids = np.array([[CLS, SEP, PAD]])
    inputs, targets = mask_tokens(
        ids, np.random.default_rng(0), mask=MASK, vocabulary=VOCABULARY, specials=SPECIALS, rate=1.0
    )
    assert (inputs == ids).all() and (targets == IGNORE).all()


def test_end_tokens_of_a_real_corpus_are_never_chosen(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in ("月", "光", "床前", "明月光", "霜")]
    (tmp_path / "short.jsonl").write_text("\n".join(lines))
    corpus = open_corpus(tmp_path / "short.jsonl")
    tokenizer = learn(corpus.documents, "character", allow_unknown=True)
    tokens = prepare(corpus, tokenizer, hold_out="none", folder=tmp_path / "data").train
    specials = 1 + max(token for token in (tokenizer.end, tokenizer.mask, tokenizer.unknown) if token is not None)
    ordinary = set(tokenizer.ids("月光床前明霜").tolist())
    for step in range(30):
        batch = masked_batch(
            tokens,
            seed=1,
            step=step,
            batch=8,
            length=10,
            end=tokenizer.end,
            mask=tokenizer.mask,
            vocabulary=tokenizer.size,
            specials=specials,
            rate=0.5,
        )
        chosen = batch.targets != IGNORE
        assert chosen.any()
        assert set(batch.targets[chosen].tolist()) <= ordinary
        assert set(batch.ids[chosen].tolist()) <= ordinary | {tokenizer.mask}
        assert tokenizer.end in batch.ids[~chosen]
