"""`InputError`: a sentence, and the template it was made from."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import lookback
from lookback.errors import InputError


def test_the_sentence_is_the_template_filled() -> None:
    error = InputError("{path} holds {got}; give {allowed}", path=Path("a b"), got=3, allowed="4 {or} 5")
    assert str(error) == "a b holds 3; give 4 {or} 5"
    assert error.template == "{path} holds {got}; give {allowed}"
    assert error.values == {"path": Path("a b"), "got": 3, "allowed": "4 {or} 5"}
    assert isinstance(error, ValueError)


def test_a_value_may_be_called_anything() -> None:
    assert str(InputError("{template} and {self}", template=1, self=2)) == "1 and 2"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_it_survives_the_way_out_of_a_child_process(copied: object) -> None:
    assert callable(copied)
    error = copied(InputError("{got} is wrong", got="片"))
    assert type(error) is InputError
    assert (str(error), error.template, error.values) == ("片 is wrong", "{got} is wrong", {"got": "片"})


def test_a_field_without_a_value_is_our_fault() -> None:
    with pytest.raises(KeyError):
        InputError("{got} is wrong", gotten=1)


def test_it_is_a_public_name() -> None:
    assert lookback.InputError is InputError
