"""Files and folders are written whole or not at all, wherever a crash, a full disk or an error falls."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback import files
from lookback.files import settled, sweep, write_aside, write_folder_aside

TO_DISK = ("open", "fsync", "mkdir", "rename", "replace")  # of module os; what a full disk may refuse
AWAY = ("unlink", "rmdir")
FOLDERS = {"old": {"a": b"1", "b": b"2", "sub/c": b"3"}, "new": {"a": b"10", "d": b"4", "sub/c": b"30"}}


def write_file(target: Path, content: bytes) -> None:
    with write_aside(target) as aside:
        aside.write_bytes(content)


def write_folder(target: Path, name: str) -> None:
    with write_folder_aside(target) as aside:
        for path, content in FOLDERS[name].items():
            (aside / path).parent.mkdir(exist_ok=True)
            (aside / path).write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def meeting(happens: Callable[[], None], number: int, names: tuple[str, ...], work: Callable[[], None]) -> bool:
    """Run ``work`` with ``happens`` before its call ``number`` to one of ``names``; whether it came to that call."""
    calls = count(1)
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            real = getattr(os, name)

            def called(*args: object, real: Callable[..., object] = real, **kwargs: object) -> object:
                if next(calls) == number:
                    happens()
                return real(*args, **kwargs)

            patch.setattr(os, name, called)
        with suppress(FullError):
            work()
    return next(calls) > number


class FullError(OSError):
    """There is no room on the disk."""


def full() -> None:
    raise FullError(errno.ENOSPC, "No space left on device")


def with_a_full_disk(work: Callable[[], None]) -> Iterator[int]:
    """Do ``work`` again and again, its first, second, … call to the disk failing, until it is done in fewer calls."""
    return takewhile(lambda number: meeting(full, number, TO_DISK, work), count(1))


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(work: Callable[[], None]) -> Iterator[int]:
    """The same in a process of its own that SIGKILL ends before that call."""

    def survives(number: int) -> bool:
        child = os.fork()
        if not child:
            try:
                meeting(kill, number, TO_DISK + AWAY, work)
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
        return status == 0

    return takewhile(lambda number: not survives(number), count(1))


forks = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


@given(contents=st.lists(st.binary(max_size=30), min_size=1, max_size=4))
def test_the_last_content_written_stays(contents: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    for content in contents:
        write_file(folder / "new" / "file", content)
        assert (folder / "new" / "file").read_bytes() == content
    assert listed(folder / "new") == ["file"]


def test_nobody_sees_a_file_before_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_file(target, b"old")
    with write_aside(target) as aside:
        aside.write_bytes(b"ne")
        assert target.read_bytes() == b"old"
        aside.write_bytes(b"new")
    assert target.read_bytes() == b"new"


def test_a_file_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    sync, replace = files._sync, Path.replace
    monkeypatch.setattr(files, "_sync", lambda path: (order.append(f"sync {path.suffix or path.name}"), sync(path)))
    monkeypatch.setattr(Path, "replace", lambda path, to: (order.append("rename"), replace(path, to)))
    write_file(tmp_path / "folder" / "file", b"new")
    assert order == ["sync .partial", "rename", "sync folder"]


def test_every_file_of_a_folder_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    sync, rename = files._sync, Path.rename
    monkeypatch.setattr(files, "_sync", lambda path: (order.append(path.name), sync(path)))
    monkeypatch.setattr(Path, "rename", lambda path, to: (order.append("rename"), rename(path, to)))
    write_folder(tmp_path / "folder", "new")
    *before, renamed, after = order
    assert sorted(before) == sorted(["a", "d", "sub", "c", f".folder.{os.getpid()}.partial"])
    assert (renamed, after) == ("rename", tmp_path.name)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_what_was_there(error: type[BaseException], tmp_path: Path) -> None:
    write_file(tmp_path / "file", b"old")
    write_folder(tmp_path / "folder", "old")
    with pytest.raises(error), write_aside(tmp_path / "file") as aside:
        aside.write_bytes(b"half")
        raise error
    with pytest.raises(error), write_folder_aside(tmp_path / "folder") as aside:
        (aside / "a").write_bytes(b"half")
        raise error
    assert contents(tmp_path) == {"file": b"old", **{f"folder/{k}": v for k, v in FOLDERS["old"].items()}}
    assert listed(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("before", [True, False], ids=["replaced", "first"])
def test_a_disk_that_is_full_at_any_call(before: bool, tmp_path: Path) -> None:
    target, tried = tmp_path / "file", 0
    if before:
        write_file(target, b"old")
    for _ in with_a_full_disk(lambda: write_file(target, b"new")):
        tried += 1
        assert contents(tmp_path) in ({"file": b"new"}, {"file": b"old"} if before else {})
    assert tried >= 4
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("before", [True, False], ids=["replaced", "first"])
def test_a_disk_that_is_full_at_any_call_for_a_folder(before: bool, tmp_path: Path) -> None:
    target, tried = tmp_path / "folder", 0
    if before:
        write_folder(target, "old")
    for _ in with_a_full_disk(lambda: write_folder(target, "new")):
        tried += 1
        assert not list(tmp_path.glob("*.partial"))
        assert contents(target) in (FOLDERS["new"], FOLDERS["old"] if before else {})
    assert tried >= 8
    assert contents(tmp_path) == {f"folder/{name}": content for name, content in FOLDERS["new"].items()}


@forks
def test_a_process_killed_at_any_call(tmp_path: Path) -> None:
    target, tried = tmp_path / "file", 0
    write_file(target, b"old")
    for _ in killed(lambda: write_file(target, b"new")):
        tried += 1
        assert target.read_bytes() in (b"old", b"new")
        write_file(target, b"next")
        assert target.read_bytes() == b"next"
        write_file(target, b"old")
    assert tried >= 4


@forks
@pytest.mark.parametrize("asked", [True, False], ids=["settled", "written at once"])
def test_a_process_killed_at_any_call_for_a_folder(asked: bool, tmp_path: Path) -> None:
    """Also between the two renames: `settled` gives the old folder back, and the next write needs nobody to ask."""
    target, tried, between = tmp_path / "folder", 0, 0
    write_folder(target, "old")
    for _ in killed(lambda: write_folder(target, "new")):
        tried += 1
        between += not target.exists()
        if asked:
            assert settled(target) == target
            assert contents(target) in FOLDERS.values()
        write_folder(target, "old")
        assert contents(target) == FOLDERS["old"]
        sweep(tmp_path)
        assert listed(tmp_path) == ["folder"]
    assert tried >= 8
    assert between


def test_settled_changes_nothing_else(tmp_path: Path) -> None:
    assert settled(tmp_path / "nothing") == tmp_path / "nothing"
    assert listed(tmp_path) == []
    for name in ("new", "old"):
        (tmp_path / {"new": "folder", "old": ".folder.old"}[name]).mkdir()
    settled(tmp_path / "folder")
    assert listed(tmp_path) == [".folder.old", "folder"]


def test_sweep_takes_only_what_is_half_written(tmp_path: Path) -> None:
    kept = [".hidden", ".folder.old", "file.partial", "file"]
    for name in [*kept, ".file.17.partial"]:
        (tmp_path / name).write_text("x")
    (tmp_path / ".folder.17.partial" / "sub").mkdir(parents=True)
    sweep(tmp_path)
    assert listed(tmp_path) == sorted(kept)
    sweep(tmp_path / "missing")
