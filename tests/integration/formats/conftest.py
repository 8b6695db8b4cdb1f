"""Every test of this folder runs for every format: a third one gets them by one line here."""

from __future__ import annotations

import pytest

from tests.integration.formats.iceberg.conftest import loads
from tests.integration.formats.worlds import IcebergWorld, ParquetWorld, World
from tests.integration.jobs.conftest import job

__all__ = ["job", "loads"]

WORLDS = {"parquet": ("job", ParquetWorld), "iceberg": ("loads", IcebergWorld)}


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """A table of each format, in a place of its own."""
    fixture, make = WORLDS[request.param]
    made: World = make(request.getfixturevalue(fixture), monkeypatch.setattr)
    return made
