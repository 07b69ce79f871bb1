"""Help with an example that works, in English and in Chinese, without waiting for torch."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run, environment, refusal

from lookback.cli.app import app

COMMANDS = tuple(str(command.name) for command in app.registered_commands)
HEAVY = ("torch", "numpy", "jieba", "transformers", "tokenizers", "safetensors", "rich.progress")
# Every help in one process, in the language that its arguments choose.
ALL_HELP = """
import sys
from lookback.cli import main
given = sys.argv[1:]
for words in ["--help"], *([name, "--help"] for name in %r):
    sys.argv = ["lookback", *given, *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
    print("=====")
loaded = [name for name in %r if name in sys.modules]
assert not loaded, loaded
"""


@pytest.fixture(scope="module")
def helps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The help of the whole and of each command, by language; the process asserts that nothing heavy is loaded."""
    found = {}
    for language in ("en", "zh"):
        done = subprocess.run(
            [sys.executable, "-c", ALL_HELP % (COMMANDS, HEAVY), "--lang", language],
            env={**environment(tmp_path_factory.mktemp("cache")), "COLUMNS": "100"},
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        found[language] = done.stdout.split("=====\n")[:-1]
    return found


def example(command: str) -> list[str]:
    """The words of a command's example."""
    epilog = app.registered_commands[COMMANDS.index(command)].epilog or ""
    words = shlex.split(epilog.removeprefix("Example: "))
    assert words[:2] == ["lookback", command]
    return words[1:]


def test_help_lists_the_commands(helps: dict[str, list[str]]) -> None:
    for language in helps.values():
        assert all(re.search(rf"^  {command} ", language[0], re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_explains_every_option(helps: dict[str, list[str]], command: str) -> None:
    for language, mark in (("en", "Example:"), ("zh", "示例：")):
        shown = helps[language][1 + COMMANDS.index(command)]
        assert f"{mark} lookback {command}" in " ".join(shown.split())
        options = re.findall(r"^  (?:-h, )?--(.*(?:\n {20,}.*)*)", shown, re.MULTILINE)
        assert options and all(re.search(r"\S {2,}\S", option) for option in options), options


@pytest.mark.parametrize("command", COMMANDS)
def test_chinese_help_is_chinese(helps: dict[str, list[str]], command: str) -> None:
    shown = helps["zh"][1 + COMMANDS.index(command)].split("示例：")[0]
    explained = re.findall(r"^  (?:--\S+|[A-Z]+) .*(?:\n {20,}.*)*", shown, re.MULTILINE)
    assert explained
    assert [words for words in explained if not re.search("[\u4e00-\u9fff]", words)] == []


@pytest.mark.parametrize("command", ["train", "evaluate", "generate", "fill", "corpora", "models"])
def test_the_example_works(run: Run, models: dict[str, Path], text: Path, tmp_path: Path, command: str) -> None:
    """With a small text in place of a bundled one, the models of these tests, and few steps."""
    places = {"tang": str(text), "runs/tang": str(models["gpt"]), "runs/tang-bert": str(models["bert"])}
    words = example(command)
    small = []
    if command == "train":
        places = {"tang": str(text), "runs/tang": str(tmp_path / "out")}
        small = ["--steps", "3", "--preset", "tiny", "--batch", "2"]
    ended = run(*(places.get(word, word) for word in words), *small)
    assert ended.code == 0, ended.err
    assert ended.out


def test_examples_name_options_that_exist(helps: dict[str, list[str]]) -> None:
    for command in COMMANDS:
        options = {word for word in example(command) if word.startswith("--")}
        assert all(f"  {option} " in helps["en"][1 + COMMANDS.index(command)] for option in options)


@pytest.mark.parametrize(
    ("arguments", "variables", "chinese"),
    [
        ((), {}, False),
        (("--lang", "zh"), {}, True),
        (("--lang=zh",), {}, True),
        ((), {"LANG": "zh_CN.UTF-8"}, True),
        ((), {"LC_ALL": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ((), {"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        (("--lang", "en"), {"LANG": "zh_CN.UTF-8"}, False),
    ],
)
def test_the_language_is_the_locale_s_or_the_option_s(
    run: Run, arguments: tuple[str, ...], variables: dict[str, str], chinese: bool
) -> None:
    for words in ((*arguments, "evaluate", "nowhere", "nothing"), ("evaluate", "nowhere", "nothing", *arguments)):
        said = refusal(run(*words, **variables))
        assert ("nowhere 不是模型文件夹；" in said) == chinese
        assert ("nowhere is not a model folder;" in said) != chinese


def test_what_comes_after_two_dashes_is_text(run: Run, models: dict[str, Path]) -> None:
    assert "'-' (U+002D)" in refusal(run("generate", models["gpt"], "--", "--lang"))


@pytest.mark.parametrize("language", ["fr", "", "ZH"])
def test_other_languages_are_refused(run: Run, language: str) -> None:
    assert "is not a language; --lang takes en or zh" in refusal(run("--lang", language, "corpora"))
    assert "nothing is not a language" in refusal(run("corpora", "--lang"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("write a poem", "没有命令 write；用法见 lookback --help"),
        ("train a.txt --out b --qqqqqq 3", "没有选项 --qqqqqq；用法见 lookback train --help"),
        ("train --out b", "缺少 FILE；用法见 lookback train --help"),
        ("train a.txt --out b --steps many", "--steps 的取值不可用"),
        ("train a.txt --out b --parameters many", "many 不是数；请写成 800000、800k 或 1.5M 这样的形式"),
        ("train a.txt --out b", "a.txt 不存在；请给出文本文件"),
    ],
)
def test_mistakes_are_told_in_chinese(run: Run, words: str, said: str) -> None:
    assert said in refusal(run("--lang", "zh", *words.split()))


def test_results_are_shown_in_chinese(run: Run, models: dict[str, Path], text: Path, tmp_path: Path) -> None:
    for words, said in (
        (("evaluate", models["gpt"], text, "--limit", 9), "每字节比特数"),
        (("evaluate", models["bert"], text, "--limit", 9), "掩码准确率"),
        (("corpora",), "唐诗"),
        (("models", models["gpt"].parent), "留出部分每字节"),
        (("models", tmp_path), "下没有模型"),
    ):
        assert said in run("--lang", "zh", *words).out
    assert "词元/秒" in run("--lang", "zh", "generate", models["gpt"], "床", "--max-new-tokens", 3).err


def test_version(run: Run) -> None:
    import lookback

    ended = run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"lookback {lookback.__version__}\n", "")


def test_no_arguments_are_a_call_for_help(run: Run) -> None:
    assert run() == run("--help")
    assert run().out.startswith("Usage: lookback")
