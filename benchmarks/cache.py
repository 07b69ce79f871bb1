"""What the state saves: writing with it against recomputing everything, side by side, at growing lengths."""

from __future__ import annotations

import torch

from lookback.generation import Sampling, generate
from lookback.models import build, configure
from lookback.tokenizers import learn

LENGTHS = (64, 256, 1024)


def main() -> None:
    """Print the ratio of tokens a second with and without the state, and of positions computed."""
    tokenizer = learn(lambda: iter(["".join(map(chr, range(32, 127)))]), "character")
    print("| model | new tokens | with the state | without | ratio | positions computed, ratio | bytes of state |")
    print("|---|---|---|---|---|---|---|")
    for family in ("gpt", "lstm"):
        size = {"context": 2 * LENGTHS[-1]} if family == "gpt" else {}
        model = build(configure(family, tokenizer.size, preset="small", **size), seed=1)
        for length in LENGTHS:
            made = {}
            for cache in (True, False):
                torch.manual_seed(0)
                made[cache] = generate(
                    model,
                    tokenizer,
                    [[tokenizer.end]],
                    max_new_tokens=length,
                    sampling=Sampling(0.0),
                    end=None,
                    cache=cache,
                )
            fast, slow = made[True], made[False]
            print(
                f"| {family} | {length} | {fast.tokens_per_second:,.0f} /s | {slow.tokens_per_second:,.0f} /s "
                f"| {fast.tokens_per_second / slow.tokens_per_second:.1f}× | {slow.work / fast.work:.0f}× "
                f"| {fast.state_bytes:,} |",
                flush=True,
            )
