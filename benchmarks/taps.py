"""What looking inside costs: a forward that nobody taps, one whose tap wants nothing, one that records all weights."""

from __future__ import annotations

import time
from statistics import median

import torch
from torch import Tensor

from lookback.models import build, configure
from lookback.nn.tap import Tap

ROUNDS = 15


class Recording:
    """A tap that keeps what ``wanted`` names end with."""

    def __init__(self, *wanted: str) -> None:
        self.wanted = wanted
        self.kept: list[Tensor] = []

    def __call__(self, name: str, value: Tensor, step: int | None = None) -> Tensor:
        if self.wants(name):
            self.kept.append(value)
        return value

    def wants(self, name: str) -> bool:
        return name.endswith(self.wanted) if self.wanted else False

    def inside(self, prefix: str) -> Tap:
        return self


def main() -> None:
    """Print the median of paired ratios."""
    model = build(configure("gpt", 8000, preset="small", context=512), seed=1).eval()
    ids = torch.randint(0, 8000, (1, 512), generator=torch.Generator().manual_seed(0))
    print("| forward of 512 tokens | time against an untapped one |")
    print("|---|---|")
    for title, wanted in (("a tap that wants nothing", ()), ("all attention weights recorded", ("weights",))):
        ratios = []
        for _ in range(ROUNDS):
            plain = _seconds(model, ids, None)
            ratios.append(_seconds(model, ids, Recording(*wanted)) / plain)
        print(f"| {title} | {median(ratios):.2f}× |")


def _seconds(model: torch.nn.Module, ids: Tensor, tap: Tap | None) -> float:
    began = time.perf_counter()
    with torch.inference_mode():
        model(ids, tap=tap)
    return time.perf_counter() - began
