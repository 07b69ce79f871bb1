"""Runs keep their prepared tokens out of the person's cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_runs import own_cache, write_documents


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with own_cache(folder):
        yield folder


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .jsonl file of 40 short documents."""
    return write_documents(tmp_path_factory.mktemp("text"))
