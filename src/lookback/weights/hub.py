"""A model by its hub name: the one place that may ask a server, and only for ``hf:owner/name`` or ``modelscope:…``."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from lookback.errors import InputError

_NAME = re.compile(r"(hf|modelscope):(\w[\w.-]*/\w[\w.-]*)")
# Not consolidated.safetensors, which some repositories hold beside it: the same numbers a second time.
_WANTED = ("model*.safetensors", "*.json", "*.jinja", "vocab.txt", "merges.txt")


def is_hub_name(name: str) -> bool:
    """Whether ``name`` says that a hub is meant. A path is never taken for one."""
    return name.startswith(("hf:", "modelscope:"))


def fetch(name: str) -> Path:
    """The folder that a hub model was downloaded to (or had been before). ``HF_ENDPOINT`` is honoured.

    Raises InputError for a name that is none, a package that is missing, and whatever the hub or the network say.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError("{got} is not a hub name; write hf:owner/name or modelscope:owner/name", got=name)
    hub, repository = match.groups()
    package = "huggingface_hub" if hub == "hf" else "modelscope"
    try:
        download = importlib.import_module(package).snapshot_download
    except ImportError:
        raise InputError(
            "{got} needs the package {package}; pip install {package}", got=name, package=package
        ) from None
    patterns = {"allow_patterns" if hub == "hf" else "allow_file_pattern": list(_WANTED)}
    try:
        return Path(download(repository, **patterns))
    except Exception as error:  # every hub client has errors of its own, and all of them mean the same here
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError("{got} could not be had from the hub: {reason}", got=name, reason=reason) from None
