"""The Chinese catalogue: English template to Chinese template, with the same fields (a test holds them together)."""

from __future__ import annotations

from lookback.cli.zh.commands import COMMANDS
from lookback.cli.zh.rooms import ROOMS
from lookback.cli.zh.tokenizers import TOKENIZERS

CHINESE: dict[str, str] = {**COMMANDS, **ROOMS, **TOKENIZERS}
