"""Where prepared token files are kept between runs: they can always be made again, so nothing is lost with them."""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lookback.data import Corpus, Prepared, prepare
from lookback.tokenizers import Tokenizer

_CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}


def root() -> Path:
    """``LOOKBACK_CACHE`` if set, else the platform's place for caches."""
    if chosen := os.environ.get("LOOKBACK_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":  # not run there
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "lookback"
    if sys.platform == "darwin":  # not run there
        return Path.home() / "Library" / "Caches" / "lookback"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lookback"


def tokens_of(
    corpus: Corpus,
    tokenizer: Tokenizer,
    hold_out: str,
    fraction: float,
    progress: Callable[[float], None] | None = None,
) -> Prepared:
    """The corpus as packed token files, prepared once for each corpus, tokenizer and split."""
    key = f"{corpus.fingerprint} {tokenizer.fingerprint} {hold_out} {fraction!r}"
    folder = root() / "tokens" / hashlib.sha256(key.encode()).hexdigest()[:24]
    make = partial(prepare, corpus, tokenizer, hold_out=hold_out, fraction=fraction, progress=progress)
    try:
        return make(folder=folder)
    except OSError as error:
        if error.errno not in _CLOSED:
            raise
    # A cache that cannot be written to is no reason to stop: the files then live as long as this process.
    temporary = tempfile.mkdtemp(prefix="lookback-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return make(folder=Path(temporary))
