"""``python -m lookback``."""

from __future__ import annotations

from lookback.cli import main

if __name__ == "__main__":
    main()
