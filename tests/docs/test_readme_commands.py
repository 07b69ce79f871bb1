"""The READMEs' commands run as they stand, with less training; their make targets exist; both say the same."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from lookback.cli import main

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh.md")
SMALLER = {
    "--minutes": ["--steps", "3", "--preset", "tiny", "--batch", "2", "--evaluate-tokens", "100"],
    "--limit": ["--limit", "300"],
}


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands(name: str) -> list[str]:
    return [line[2:] for block in blocks(name, "console") for line in block.splitlines() if line.startswith("$ ")]


def smaller(words: list[str]) -> list[str]:
    """The same command with fewer steps and tokens."""
    made: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in SMALLER:
            next(rest)
            made += SMALLER[word]
        else:
            made.append(word)
    return made


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOKBACK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_both_readmes_have_the_same_commands() -> None:
    assert commands("README.md") == commands("README.zh.md") != []
    assert blocks("README.md", "python") == blocks("README.zh.md", "python") != []


def test_the_guides_show_commands_that_the_readme_runs() -> None:
    shown = {command for name in ("docs/models.md", "docs/training.md") for command in commands(name)}
    assert shown <= set(commands("README.md"))


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md"])
def test_make_targets_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words.split()[1] for words in commands(name) if words.startswith("make ")]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.slow
def test_lookback_commands_run(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = [words for words in map(shlex.split, commands("README.md")) if words[0] == "lookback"]
    asked = {"train", "evaluate", "generate", "fill", "corpora", "models", "inspect-file", "export"}
    assert {words[1] for words in ran} >= asked
    for words in ran:
        monkeypatch.setattr(sys, "argv", smaller(words))
        try:
            main()
        except SystemExit as end:
            assert not end.code, (words, capsys.readouterr().err)
        assert capsys.readouterr().out, words


def test_python_example_runs(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("README.md", "python"):
        exec(compile(block, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) >= 2
