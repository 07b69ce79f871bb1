"""A full disk, a folder that is read-only: one sentence, and nothing is lost or half there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import Ended, Run, environment, refusal, tree

from lookback.session import train

OPTIONS = ("--preset", "tiny", "--steps", "4", "--batch", "2", "--length", "16", "--evaluate-every", "2")
KEPT = ("config.json", "model.safetensors", "tokenizer.json", "checkpoint/optimizer.safetensors", "metrics.jsonl")
NOBODY = 65534


def refusal_while_training(ended: Ended) -> str:
    """The sentence, after whatever progress was shown."""
    assert (ended.code, ended.out) == (2, ""), ended
    *progress, last = ended.err.splitlines()
    assert last.startswith("lookback: ") and not any("Traceback" in line for line in progress)
    return last


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """As on a full disk, no write goes beyond ``size`` bytes of a file."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def disk_full_at(count: int) -> Iterator[list[int]]:
    """The disk is full from the ``count``-th time on that a file is synced; gives the number of times so far."""
    calls = [0]

    def sync(handle: int) -> None:
        calls[0] += 1
        if calls[0] >= count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        yield calls


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory, text: Path, cache: Path) -> dict[str, str]:
    """What a run leaves that nothing disturbs."""
    folder = tmp_path_factory.mktemp("unbroken")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKBACK_CACHE", str(cache))
        train(text, out=folder / "run", preset="tiny", steps=4, batch=2, length=16, evaluate_every=2)
    return tree(folder / "run")


def goes_on(run: Run, text: Path, out: Path, unbroken: dict[str, str]) -> None:
    """Training can be taken up where it broke off, or begun again, and ends as if nothing had happened."""
    resume = ("--resume",) if out.exists() else ()
    ended = run("train", text, *OPTIONS, "--out", out, *resume)
    assert ended.code == 0, ended.err
    after = tree(out)
    assert {name: after[name] for name in KEPT} == {name: unbroken[name] for name in KEPT}
    assert after.keys() == unbroken.keys()


def break_off(run: Run, text: Path, tmp_path: Path, count: int) -> bool:
    """A run whose disk fills up at the ``count``-th sync; False if it has fewer."""
    cache = {"LOOKBACK_CACHE": str(tmp_path / f"cache {count}")}
    with disk_full_at(count) as calls:
        ended = run("train", text, *OPTIONS, "--out", tmp_path / str(count), **cache)
    if calls[0] < count:
        assert ended.code == 0, ended.err
        return False
    assert "No space left on device" in refusal_while_training(ended)
    out = tmp_path / str(count)
    assert not out.exists() or (out / "metrics.jsonl").exists()  # nothing is there before the first step
    return True


@pytest.mark.parametrize("count", [1, 6, 8, 14, 20, 27, 33, 38])
def test_the_disk_is_full_at_some_point(
    run: Run, text: Path, tmp_path: Path, unbroken: dict[str, str], count: int
) -> None:
    assert break_off(run, text, tmp_path, count)
    assert not [name for name in tree(tmp_path) if ".partial" in name]
    goes_on(run, text, tmp_path / str(count), unbroken)


@pytest.mark.slow
def test_the_disk_is_full_at_every_point(run: Run, text: Path, tmp_path: Path, unbroken: dict[str, str]) -> None:
    count = 1
    while break_off(run, text, tmp_path, count):
        assert not [name for name in tree(tmp_path) if ".partial" in name]
        goes_on(run, text, tmp_path / str(count), unbroken)
        count += 1
    assert count > 30


@pytest.mark.parametrize("size", [0, 2_000, 30_000, 150_000])
def test_files_cannot_grow(run: Run, text: Path, tmp_path: Path, unbroken: dict[str, str], size: int) -> None:
    """The weights are written by a library with errors of its own."""
    with no_file_over(size):
        ended = run("train", text, *OPTIONS, "--out", tmp_path / "run", LOOKBACK_CACHE=str(tmp_path / "cache"))
    assert "the system refused" in refusal_while_training(ended), ended.err
    if size < 2_500:  # not even the tokens found room
        refusal(ended)
        assert not (tmp_path / "run").exists()
    assert not [name for name in tree(tmp_path) if ".partial" in name]
    goes_on(run, text, tmp_path / "run", unbroken)


@pytest.mark.parametrize("size", [0, 30_000, 150_000])
def test_a_finished_model_survives_a_resumed_run_without_room(
    run: Run, models: dict[str, Path], text: Path, tmp_path: Path, size: int
) -> None:
    """Nothing is left to do, but the result is written down once more."""
    folder = Path(shutil.copytree(models["gpt"], tmp_path / "gpt"))
    with no_file_over(size):
        ended = run("train", text, "--out", folder, "--resume")
    assert ended.code in (0, 2)
    before, after = tree(models["gpt"]), tree(folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= {"metrics.jsonl", "lookback.json"}
    assert run("generate", folder, "床", "--max-new-tokens", "3").code == 0


@pytest.mark.slow
def test_a_disk_that_is_really_full(text: Path, tmp_path: Path, cache: Path) -> None:
    """On a file system of 300 kB, made in a mount namespace of the child's own."""
    command = ["unshare", "--mount"] if os.name == "posix" and os.geteuid() == 0 else ["unshare", "-rm"]
    place = tmp_path / "disk"
    place.mkdir()
    script = 'mount -t tmpfs -o size=300k none "$0" && cd "$0" && touch mine && "$@"; code=$?; ls -A; exit $code'
    arguments = [sys.executable, "-m", "lookback", "train", str(text), *OPTIONS, "--out", "run"]
    try:
        done = subprocess.run(
            [*command, "sh", "-c", script, str(place), *arguments],
            env={**environment(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("no file system can be made here")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("lookback: the system refused: ") and "Traceback" not in done.stderr
    assert "No space left on device" in last
    assert set(done.stdout.split()) <= {"mine", "run"}


def test_standard_output_is_full(process: Run) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lookback", "--help"], stdout=full, stderr=subprocess.PIPE, encoding="utf-8"
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions bind even where tests run as root."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public(models: dict[str, Path], text: Path) -> Iterator[Path]:
    """A folder open to all, with the text, a model, a folder that nobody may write to, and a cache."""
    if not hasattr(os, "geteuid"):
        pytest.skip("permissions are other ones here")
    folder = Path(tempfile.mkdtemp(prefix="lookback-test-"))
    try:
        shutil.copy(text, folder / "verse.txt")
        shutil.copytree(models["gpt"], folder / "gpt")
        for name in ("closed", "cache"):
            (folder / name).mkdir()
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        (folder / "cache").chmod(0o777)
        yield folder
    finally:
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(folder)


def test_the_folder_is_read_only(run: Run, public: Path) -> None:
    before = tree(public / "closed")
    with without_privileges():
        own = {"LOOKBACK_CACHE": str(public / "cache")}
        ended = run("train", public / "verse.txt", *OPTIONS, "--out", public / "closed" / "run", **own)
        assert "Permission denied" in refusal(ended)
        ended = run("train", public / "verse.txt", *OPTIONS, "--out", public / "closed", **own)
        assert "Permission denied" in refusal(ended)
    assert tree(public / "closed") == before


def test_a_run_that_is_read_only_cannot_be_gone_on_with(run: Run, public: Path) -> None:
    before = tree(public / "gpt")
    with without_privileges():
        ended = run("train", public / "verse.txt", "--out", public / "gpt", "--resume")
    assert "Permission denied" in refusal(ended)
    assert tree(public / "gpt") == before


def test_a_model_that_is_read_only_works(run: Run, public: Path) -> None:
    before = tree(public / "gpt")
    with without_privileges():
        assert run("generate", public / "gpt", "床", "--max-new-tokens", "2").code == 0
        own = {"LOOKBACK_CACHE": str(public / "cache")}
        assert run("evaluate", public / "gpt", public / "verse.txt", "--limit", "9", **own).code == 0
    assert tree(public / "gpt") == before


def test_a_cache_that_is_read_only_is_done_without(run: Run, public: Path) -> None:
    with without_privileges():
        for cache in (public / "closed", public / "verse.txt", public / "closed" / "new"):
            ended = run("evaluate", public / "gpt", public / "verse.txt", "--limit", "9", LOOKBACK_CACHE=str(cache))
            assert ended.code == 0, ended.err
    assert tree(public / "closed") == {}


def test_a_file_that_may_not_be_read(run: Run, public: Path) -> None:
    (public / "verse.txt").chmod(0)
    (public / "gpt" / "model.safetensors").chmod(0)
    with without_privileges():
        ended = run("train", public / "verse.txt", *OPTIONS, "--out", public / "cache" / "run")
        assert "verse.txt cannot be read (Permission denied)" in refusal(ended)
        assert "model.safetensors" in refusal(run("generate", public / "gpt", "床"))
    assert tree(public / "cache") == {}
