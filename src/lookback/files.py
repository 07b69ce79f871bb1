"""Writing files so that a crash, a full disk or Ctrl-C leaves either the old thing or the new one, never half of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_aside(target: Path) -> Iterator[Path]:
    """Give a path beside ``target`` to write a file to; on leaving, sync it and rename it over ``target``.

    An error inside the block removes what was written and leaves ``target`` as it was. Raises OSError as the disk does.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def write_folder_aside(target: Path) -> Iterator[Path]:
    """The same for a whole folder: its files are synced, then it takes the place of ``target`` by renaming.

    An existing ``target`` steps aside as ``.NAME.old`` first, because a folder that holds files cannot be renamed over;
    `settled` gives that one back should a crash fall between the two renames.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    old = _old(target)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        for path in (*partial.rglob("*"), partial):
            _sync(path)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        partial.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if settled(target).exists():
            shutil.rmtree(old, ignore_errors=True)


def settled(target: Path) -> Path:
    """``target``, after giving back its older self if a crash fell between the two renames of `write_folder_aside`."""
    if not target.exists() and _old(target).exists():
        _old(target).rename(target)
    return target


def sweep(folder: Path) -> None:
    """Remove what a crash left half written in ``folder``. For its owner only: a writer at work would lose its file."""
    for path in folder.glob(".*.partial"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows cannot open a folder to sync it (not run there).
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
