"""Properties are checked here alone, as hypothesis takes a second to import; HOME is used again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lakeload.sources.files import inspected_tables
from lakeload.sources.files.formats.base import InspectedFile
from lakeload.sources.files.inspection import inspect_file
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from tests.environments import EXHAUSTIVE, many

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


@pytest.fixture
def inspected_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect files in this process: a fork of all that the tests have imported costs 60 ms.

    What the process does is proven by test_bounded.py; `make faults` starts it in every test.
    """

    def inspect_files(files: Sequence[FileState], opener: FileBytes) -> Iterator[InspectedFile]:
        return (inspect_file(file, opener) for file in files)

    if not EXHAUSTIVE:
        monkeypatch.setattr(inspected_tables, "inspect_files", inspect_files)
