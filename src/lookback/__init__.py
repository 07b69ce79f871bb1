"""lookback: language models you can look into.

    import lookback as lb
    session = lb.train("my.txt", model="gpt", out="runs/mine")
    print(session.generate("床前明月光").samples[0].text)

The public names are imported when first used, so that ``import lookback`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookback.errors import InputError
    from lookback.session import Session, load, train

__version__ = "0.1.0"
__all__ = ["InputError", "Session", "load", "train"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lookback' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("lookback.errors" if name == "InputError" else "lookback.session"), name)
