"""Real processes, killed by SIGKILL at random moments and amid their writing, end bit for bit as an unbroken one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_runs import SMALL, leftovers, result

from lookback.models import FAMILIES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")]

STEPS = 48
CASES = {f"{family} {size}": {"model": family, "micro_batch": size} for family in FAMILIES for size in (None, 3)}
OPTIONS: dict[str, Any] = {**SMALL, "steps": STEPS, "save_every": 3, "evaluate_every": 16, "dropout": 0.2}

# Every line is one call of `train`, done by a process of its own, which is forked after a first short run so that it
# need not import anything.
# ``syncs``: it kills itself instead of syncing a file that often. ``limit``: from step 7 on no file may be larger.
SERVER = """
import json, os, resource, signal, sys
import torch
torch.set_num_threads(1)
from lookback import files, train
from lookback.training import Step

def run(call, syncs, limit):
    def sync(path, really=files._sync):
        nonlocal syncs
        syncs -= 1
        if not syncs:
            os.kill(os.getpid(), signal.SIGKILL)
        really(path)

    def report(event):
        if isinstance(event, Step) and event.step == 7 and limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    files._sync = sync
    train(call.pop("source"), out=call.pop("out"), report=report, **call)

run(json.loads(sys.argv[1]), 0, 0)
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            run(*json.loads(line))
        except OSError as error:
            os._exit(error.errno)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(255)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def call(documents: Path, run: Path, name: str) -> dict[str, Any]:
    return {"source": str(documents), "out": str(run), **OPTIONS, **CASES[name]}


class Server:
    """A process that trains in children."""

    def __init__(self, documents: Path, out: Path) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", SERVER, json.dumps(call(documents, out, "bert 3") | {"steps": 1})]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _line(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def train(
        self, call: dict[str, Any], *, kill: Callable[[], bool] | None = None, syncs: int = 0, limit: int = 0
    ) -> int:
        """The exit code of a run, which is killed as soon as ``kill()``."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([call, syncs, limit]) + "\n")
        self.process.stdin.flush()
        child = self._line()
        if kill is not None:
            until = time.monotonic() + 100
            while not kill():
                assert time.monotonic() < until, "it ended before it could be killed"
            os.kill(child, signal.SIGKILL)
        return self._line()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def server(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(documents, tmp_path_factory.mktemp("first") / "run")
    yield server
    server.close()


def lines(run: Path) -> int:
    """How many lines of metrics there are by now."""
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def has_logged(run: Path, number: int, seconds: float) -> Callable[[], bool]:
    """Whether a run has logged ``number`` lines and gone on for so long."""

    def happens() -> bool:
        if lines(run) < number:
            return False
        time.sleep(seconds)
        return True

    return happens


def is_writing(run: Path, number: int) -> Callable[[], bool]:
    """Whether a run is writing a checkpoint, after so many lines of metrics."""
    return lambda: lines(run) >= number and any(run.glob(".checkpoint.*.partial"))


def resumed(documents: Path, run: Path) -> dict[str, Any]:
    return {"source": str(documents), "out": str(run), "resume": True}


@pytest.fixture(scope="module")
def unbroken(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """What every case comes to when it is left alone, under another server."""
    folder = tmp_path_factory.mktemp("unbroken")
    other = Server(documents, folder / "first")
    for name in CASES:
        assert other.train(call(documents, folder / name, name)) == 0
    other.close()
    return {name: result(folder / name) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_killed_twice_and_gone_on_with(
    name: str, documents: Path, server: Server, unbroken: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    """First at a random moment, then while it writes a checkpoint, found by the folder that it writes it to."""
    run, draw = tmp_path / "run", random.Random(name)
    kill = has_logged(run, draw.randrange(STEPS // 3), draw.random() / 50)
    assert server.train(call(documents, run, name), kill=kill) == -signal.SIGKILL
    kill = is_writing(run, lines(run) + draw.randrange(STEPS // 3))
    assert server.train(resumed(documents, run), kill=kill) == -signal.SIGKILL
    assert server.train(resumed(documents, run)) == 0
    assert result(run) == unbroken[name]
    assert not leftovers(run)


@pytest.mark.parametrize("first", (1, 3, 4, 7, 11, 13, 16, 18, 20, 24))
def test_killed_between_any_two_files(
    first: int, documents: Path, server: Server, unbroken: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    """Instead of its ``first`` sync, while the folder is laid out or its first checkpoints are written; then some syncs
    further on: between the files of a checkpoint, before and after its renames."""
    run = tmp_path / "run"
    assert server.train(call(documents, run, "gpt None"), syncs=first) == -signal.SIGKILL
    if not (run / "lookback.json").exists():
        assert first <= 2
        return  # Nothing has begun; there is nothing to go on with.
    assert server.train(resumed(documents, run), syncs=1 + 5 * first % 29) == -signal.SIGKILL
    assert server.train(resumed(documents, run)) == 0
    assert result(run) == unbroken["gpt None"]
    assert not leftovers(run)


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors"])
def test_a_file_that_cannot_be_written(
    file: str, documents: Path, server: Server, unbroken: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    """As on a full disk, a file cannot grow to its size, and the system says so to the library that writes it. The best
    model and the checkpoint of step 6 stay, and the run can be gone on with."""
    run = tmp_path / "run"
    size = len(unbroken["rnn 3"][f"checkpoint/{file}"])
    assert server.train(call(documents, run, "rnn 3"), limit=size - 1) == 27  # EFBIG
    assert not leftovers(run)
    assert json.loads((run / "checkpoint" / "progress.json").read_text("utf-8"))["step"] == 6
    assert server.train(resumed(documents, run)) == 0
    assert result(run) == unbroken["rnn 3"]
