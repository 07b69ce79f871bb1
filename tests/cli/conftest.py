"""The command line as a person meets it: run in this process, which is quick, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import FAMILIES, Ended, Run, environment

from lookback.cli import main
from lookback.session import train

LINES = ("床前明月光，疑是地上霜。", "举头望明月，低头思故乡。", "白日依山尽，黄河入海流。", "欲穷千里目，更上一层楼。")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where prepared token files go."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: ``run("train", "a.txt", "--out", "x", LANG="zh_CN.UTF-8")``."""

    def run(*arguments: object, **variables: str) -> Ended:
        wanted = {**environment(cache), **variables}
        with monkeypatch.context() as patch:
            for name in set(os.environ) - set(wanted):
                patch.delenv(name)
            for name, value in wanted.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["lookback", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        said = capsys.readouterr()
        return Ended(code or 0, said.out, said.err)

    return run


@pytest.fixture
def process(cache: Path, tmp_path: Path) -> Run:
    """Run a command as a process of its own, in ``tmp_path``."""

    def process(*arguments: object, **variables: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "lookback", *map(str, arguments)],
            cwd=tmp_path,
            env={**environment(cache), **variables},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return process


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of four lines of verse, in changing order."""
    path = tmp_path_factory.mktemp("text") / "verse.txt"
    path.write_text("".join(LINES[i * i % 7 % 4] + "\n" for i in range(120)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, text: Path, cache: Path) -> dict[str, Path]:
    """A barely trained model of each family; nobody may write into these folders."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKBACK_CACHE", str(cache))
        for family in FAMILIES:
            train(text, out=folder / family, model=family, preset="tiny", steps=4, batch=2, length=16, seed=1)
    return {family: folder / family for family in FAMILIES}
