"""What every test runs under: shapes checked at run time, no network, one thread, repeatable examples."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

sys.path.append(str(Path(__file__).parent / "support"))

# Shapes in signatures are checked from here on; modules imported earlier would go unchecked.
_unchecked = [name for name in sys.modules if name.startswith(("lookback.nn", "lookback.models"))]
assert not _unchecked, f"imported before their shapes could be checked: {_unchecked}"
install_import_hook(["lookback.nn", "lookback.models"], "shape_checks.checked")

import torch  # noqa: E402

torch.set_num_threads(1)  # pytest -n 2 already fills two cores

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, derandomize=True, **_common)
settings.register_profile("search", max_examples=500, **_common)  # new examples each time: --hypothesis-profile=search
settings.load_profile("quick")
