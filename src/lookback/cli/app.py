"""The commands, gathered."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import typer

from lookback import __version__
from lookback.cli import chat, corpora, demo, evaluate, export, fill, generate, inspect_file, models, names, train
from lookback.cli.language import say

app = typer.Typer(
    name="lookback",
    help=say("Train, run and look into language models: RNN, LSTM, GRU, GPT and BERT, on your own text, offline."),
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"lookback {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    lang: str = typer.Option("", "--lang", help=say("Language of the messages: en or zh (default: the locale's).")),
    version: bool = typer.Option(
        False, "--version", help=say("Print the version and stop."), callback=_version, is_eager=True
    ),
) -> None:
    """Both have been dealt with by now: ``--lang`` before the commands were made, so that their help speaks it."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C ends a command quietly, with the exit code shells expect."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            sys.exit(130)

    return run


for room in (train, evaluate, generate, fill, chat, export, inspect_file, names, demo, corpora, models):
    name = room.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name, help=say(room.HELP), epilog=say("Example:") + " " + room.EXAMPLE)(_interruptible(room.command))
