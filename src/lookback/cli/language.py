"""Messages in English, or in Chinese where the locale or ``--lang zh`` says so.

A message is an English template; `say` finds its translation in `lookback.cli.zh` and fills it. The rooms below raise
`InputError` with a template, so they need not know the language.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from lookback.errors import InputError

_chinese = False


def choose(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Set the language from ``--lang`` or the locale; give back the arguments without ``--lang``."""
    global _chinese
    rest, wanted, words = [], None, iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == "--lang":
            wanted = next(words, "")
        elif word.startswith("--lang="):
            wanted = word.partition("=")[2]
        else:
            rest.append(word)
    if wanted not in (None, "en", "zh"):
        raise InputError("{got} is not a language; --lang takes en or zh", got=wanted or "nothing")
    locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    _chinese = wanted == "zh" or (wanted is None and locale.lower().startswith("zh"))
    return rest


def say(template: str, /, **values: object) -> str:
    """The message in the chosen language."""
    if _chinese:
        from lookback.cli.zh import CHINESE

        template = CHINESE.get(template, template)
    return template.format(**values) if values else template


def is_chinese() -> bool:
    """Whether messages are Chinese."""
    return _chinese


def from_environment() -> list[str]:
    """`choose` for this process."""
    import sys

    return choose(sys.argv[1:], os.environ)
