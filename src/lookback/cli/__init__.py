"""The command line: one file a command. Arguments are parsed first; torch is imported after."""

from __future__ import annotations

import os
import re
import sys
from typing import Any


def main() -> None:
    """Run ``lookback``. It exits with 2 after a person's mistake, 1 after ours, 130 after Ctrl-C; never a traceback."""
    from lookback.cli.language import from_environment, say
    from lookback.errors import InputError

    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")  # A terminal that has no Chinese still gets an answer.
    try:
        sys.argv[1:] = from_environment() or ["--help"]
        from lookback.cli.app import app

        code = app(prog_name="lookback", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except InputError as error:
        _stop(say(error.template, **error.values), 2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # Whoever read our output has left.
        _close_output()
        sys.exit(1)
    except OSError as error:
        _close_output()
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        _stop(say("the system refused: {what}; what was there before is left as it was", what=what), 2)
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's word for a command line that it cannot read.
            _stop(_misread(error), 2)
        if os.environ.get("LOOKBACK_TRACEBACK"):
            raise
        if _is_of_memory(error):
            _stop(say("there is not enough memory for this; choose a smaller model, batch or length"), 2)
        template = "this is a fault of lookback's, not yours: {kind}: {error}; LOOKBACK_TRACEBACK=1 shows where"
        _stop(say(template, kind=type(error).__name__, error=error), 1)


def _close_output() -> None:
    """Give out what is left; if that fails, drop it, or it would fail once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_of_memory(error: Exception) -> bool:
    """Whether the memory is too small; PyTorch has no type of error for that but says so in many words."""
    return isinstance(error, MemoryError | OverflowError) or any(
        words in str(error)
        for words in (
            "out of memory",
            "not enough memory",
            "allocate memory",
            "size calculation overfl",
            "dimension exceeded",
        )
    )


def _misread(error: Any) -> str:
    """Typer's error as a sentence in the chosen language; what it says of a value stays English."""
    from lookback.cli.language import say

    reason = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "lookback"
    found = re.search(r"'([^']+)'", reason)
    name = getattr(error, "option_name", None) or (found[1] if found else "")
    kind = type(error).__name__
    if kind == "NoSuchOption":
        near = f" ({', '.join(error.possibilities)})" if error.possibilities else ""
        return say("there is no option {name}{near}; see {command} --help", name=name, near=near, command=command)
    if kind == "MissingParameter":
        return say("{name} is missing; see {command} --help", name=name, command=command)
    if reason.startswith("No such command"):
        return say("there is no command {name}; see {command} --help", name=name, command=command)
    if kind == "BadParameter":
        return say(
            "{name} cannot take this value ({reason}); see {command} --help",
            name=name,
            reason=error.message.rstrip("."),
            command=command,
        )
    return say("{reason}; see {command} --help", reason=reason, command=command)


def _stop(sentence: str, code: int) -> None:
    print(f"lookback: {' '.join(sentence.splitlines())}", file=sys.stderr)  # noqa: T201
    sys.exit(code)
