"""What the tests of the command line share: how a command ended, what it left behind, and how it refuses."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAMILIES = ("gpt", "bert", "rnn", "lstm", "gru")
TINY = ("--preset", "tiny", "--steps", "4", "--batch", "2", "--length", "16", "--seed", "1")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def environment(cache: Path) -> dict[str, str]:
    """This process's, but with English messages, one thread, and a cache of the test's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "LOOKBACK_"))}
    return {**kept, "LANG": "C.UTF-8", "LOOKBACK_CACHE": str(cache), "OMP_NUM_THREADS": "1"}


def tree(folder: Path) -> dict[str, str]:
    """Every folder below ``folder``, and every file with a hash of its contents."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def refusal(ended: Ended) -> str:
    """What a command said that refused: code 2 and one sentence, nothing else on either stream."""
    assert ended.code == 2, ended
    assert ended.out == "", ended.out
    (line,) = ended.err.splitlines()
    assert line.startswith("lookback: ")
    assert "Traceback" not in line
    return line.removeprefix("lookback: ")


def the_object(ended: Ended) -> dict[str, Any]:
    """The one JSON object that a command put on the one line of its standard output."""
    assert ended.code == 0, ended.err
    (line,) = ended.out.splitlines()
    record = json.loads(line)
    assert isinstance(record, dict)
    return record
