"""Properties are checked here alone, as hypothesis takes a second to import; HOME is used again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.environments import many

# How quick a machine is decides no verdict.
settings.register_profile(
    "patient",
    deadline=None,
    max_examples=many(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def kept_homes() -> list[Path]:
    """The folder that the last test had as HOME."""
    return []


@pytest.fixture
def home(homes: Iterator[Path], kept_homes: list[Path]) -> Path:
    """An empty folder: the last test's, as nearly every test leaves it."""
    if not kept_homes or any(kept_homes[-1].iterdir()):
        kept_homes.append(next(homes))
        kept_homes[-1].mkdir()
    return kept_homes[-1]
