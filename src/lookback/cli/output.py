"""What a command prints: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import re
import sys
from decimal import Decimal
from typing import Any

from lookback.errors import InputError


def console(*, error: bool = False) -> Any:
    """A rich console; colours and widths follow the terminal."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, emoji=False, soft_wrap=True)


def print_json(record: Any) -> None:
    """One JSON object on one line, the last on standard output."""
    sys.stdout.write(json.dumps(_finite(record), ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def count(text: str | None) -> int | None:
    """A number as people write it: 800k, 1.5M, 2_000. Raises InputError for anything else."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([kKmMgGbB]?)", text.strip())
    if match is None:
        raise InputError("{got} is not a number; write it like 800000, 800k or 1.5M", got=text)
    factor = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}[match[2].lower()]
    return round(Decimal(re.sub("[_,]", "", match[1])) * factor)
