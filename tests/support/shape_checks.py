"""The run-time checker of annotations that the import hook in conftest puts around `nn` and `models`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, runtime_checkable

from beartype import BeartypeConf, beartype

# A fixed item of each container is looked at: a random one would draw from the global generator.
_fixed = beartype(conf=BeartypeConf(is_random=False))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with its annotations checked at each call; protocols are checked by their members' presence.

    Configurations are left alone: they hold no tensors, and what is wrong in them must come out as their own sentence.
    """
    if function.__module__.endswith(".config"):
        return function
    for value in list(vars(sys.modules[function.__module__]).values()):
        if getattr(value, "_is_protocol", False) and value.__module__.startswith("lookback"):
            runtime_checkable(value)
    return _fixed(function)
