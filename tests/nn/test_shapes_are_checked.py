"""The checks on shapes that conftest installs do catch a wrong one, in functions, methods and dataclasses."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from lookback.models import build, configure
from lookback.nn.attention import mix
from lookback.nn.mask import At
from lookback.nn.position import Rotation


def test_a_function() -> None:
    good = torch.zeros(1, 2, 3, 4)
    mix(good, torch.zeros(1, 2, 4, 5))
    with pytest.raises(TypeCheckError, match="B K S H"):
        mix(good, torch.zeros(1, 2, 3, 5))  # S must be 4
    with pytest.raises(TypeCheckError, match="Float"):
        mix(good.long(), torch.zeros(1, 2, 4, 5))


def test_a_model() -> None:
    model = build(configure("gpt", 5, preset="tiny"))
    model(torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(TypeCheckError, match="B T"):
        model(torch.zeros(3, dtype=torch.long))
    with pytest.raises(TypeCheckError, match="documents"):
        model(torch.zeros(1, 3, dtype=torch.long), documents=torch.zeros(1, 4, dtype=torch.long))


def test_a_dataclass() -> None:
    At(torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long))
    with pytest.raises(TypeCheckError):
        At(torch.zeros(2, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long))
    with pytest.raises(TypeCheckError):
        Rotation(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 3))
