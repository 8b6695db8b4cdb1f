"""Every test of `test_source_types.py` runs for every type: a further one gets them by one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.sources.worlds import DatabaseWorld, FilesWorld, SparkWorld, World

WORLDS: dict[str, Callable[[Path, pytest.FixtureRequest], World]] = {
    "FILES": lambda folder, _: FilesWorld(folder),
    "SPARK": lambda folder, _: SparkWorld(folder),
    "JDBC": lambda folder, request: DatabaseWorld(folder, request.getfixturevalue("postgres")),
}


GOES_ON = ("FILES", "JDBC")
"""The types that load what is new since the last load."""


@pytest.fixture(params=WORLDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A source of each type, with nothing in it."""
    return WORLDS[request.param](tmp_path, request)


@pytest.fixture(params=GOES_ON)
def growing(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A source of each type that loads what is new."""
    return WORLDS[request.param](tmp_path, request)
