from __future__ import annotations

from collections.abc import Callable

import pytest

from lookback.tokenizers import Tokenizer, learn

TEXTS = [
    "We had not said a word, and he didn't say one; 'tis 1564.\n" * 3,
    "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n" * 3,
    "我们用苹果手机看电影。 The naïve café — Ünder_score\tx 😀 e\u0301\r\n" * 2,
    "we'll   indent\n\n    xxxx 12345\n" * 4,
]


@pytest.fixture(scope="session")
def tokenizer() -> Callable[[str], Tokenizer]:
    """A small tokenizer of the kind asked for; "open" is characters with an unknown token."""
    made = {
        kind: learn(lambda: iter(TEXTS), kind, vocabulary=340) for kind in ("character", "bpe", "wordpiece", "word")
    }
    made["open"] = learn(lambda: iter(TEXTS), "character", allow_unknown=True)
    return made.__getitem__
