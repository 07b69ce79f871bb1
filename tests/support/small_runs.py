"""Training runs that take a moment: a made text, small models, ways to stop a run and to read what it left."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lookback.training import Event, Step

CHARACTERS = "天地玄黄宇宙洪荒日月盈昃辰宿列张"
SMALL: dict[str, Any] = {
    "preset": "tiny",
    "width": 8,
    "layers": 2,
    "batch": 4,
    "length": 8,
    "seed": 3,
    "evaluate_every": 5,
    "evaluate_tokens": 64,
    "rate": 1e-2,
}


class StoppedError(Exception):
    """Raised out of a report, as if the process had died there."""


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """Prepared tokens go to ``folder`` while this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKBACK_CACHE", str(folder))
        yield


def write_documents(folder: Path, number: int = 40, seed: int = 0) -> Path:
    """A .jsonl file of short random documents, so that every window of 8 tokens sees several beginnings."""
    draw = random.Random(seed)
    lines = [json.dumps({"text": "".join(draw.choices(CHARACTERS, k=draw.randint(1, 14)))}) for _ in range(number)]
    path = folder / "documents.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def stop_after(step: int) -> Callable[[Event], None]:
    """A report that dies at the end of ``step``, before anything of it is logged."""

    def report(event: Event) -> None:
        if isinstance(event, Step) and event.step == step:
            raise StoppedError

    return report


def result(run: Path) -> dict[str, bytes]:
    """All that a run's end is, byte for byte: both models, the optimizer, and the metrics."""
    names = ["model.safetensors", "checkpoint/model.safetensors", "checkpoint/optimizer.safetensors", "metrics.jsonl"]
    return {name: (run / name).read_bytes() for name in names}


def metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]


def leftovers(folder: Path) -> list[str]:
    """What a crash left half written or stepped aside, anywhere in ``folder``."""
    return [name for _, folders, files in os.walk(folder) for name in (*folders, *files) if name.startswith(".")]
