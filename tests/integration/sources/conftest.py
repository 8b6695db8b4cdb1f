"""Every test of `test_source_types.py` runs for every type: a further one gets them by one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.sources.worlds import DatabaseWorld, FilesWorld, SparkWorld, World

WORLDS: dict[str, type[World]] = {"FILES": FilesWorld, "SPARK": SparkWorld, "JDBC": DatabaseWorld}


@pytest.fixture(params=WORLDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A source of each type, with nothing in it."""
    return WORLDS[request.param].made(tmp_path, request)


@pytest.fixture(params=[name for name, world in WORLDS.items() if world.goes_on])
def growing(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A source of each type that loads what is new since the last load."""
    return WORLDS[request.param].made(tmp_path, request)
