"""Training on a large Chinese text stays under 1.5 GB, with characters and with byte-level BPE."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB there")]

LIMIT = 1.5e9
CHILD = """
import resource, sys
from lookback import train

train(sys.argv[1], out=sys.argv[2], tokenizer=sys.argv[3], model="gpt", preset="tiny", steps=3, batch=4,
      evaluate_tokens=500)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def write_chinese(path: Path, megabytes: int) -> None:
    """Characters by Zipf's law, with punctuation and now and then a new line."""
    draw = np.random.default_rng(0)
    weights = 1 / np.arange(3, 3503)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(megabytes):
            codes = draw.choice(np.arange(0x4E00, 0x4E00 + 3500), size=1_000_000 // 3, p=weights / weights.sum())
            kind = draw.random(len(codes))
            codes[kind < 0.07] = ord("，")
            codes[kind < 0.03] = ord("。")
            codes[kind < 0.005] = ord("\n")
            file.write(codes.astype("<u4").tobytes().decode("utf-32-le"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose large files do not outlive the test, as pytest keeps those of the last three runs."""
    yield tmp_path
    for path in tmp_path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(("tokenizer", "megabytes"), [("character", 100), ("bpe", 20)])
def test_memory(tokenizer: str, megabytes: int, folder: Path) -> None:
    """The vocabulary of the BPE comes from a sample of 5 MB, which takes most of its memory and time."""
    text = folder / "text.txt"
    write_chinese(text, megabytes)
    command = [sys.executable, "-c", CHILD, str(text), str(folder / "run"), tokenizer]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LOOKBACK_CACHE": str(folder / "cache")}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stderr
    assert 2e8 < int(ended.stdout) < LIMIT
