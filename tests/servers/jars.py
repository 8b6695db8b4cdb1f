"""The jars that Spark needs in tests: fetched once, into a cache that all runs share."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import SETS, pinned
from lakeload.machine.jars.repository import REPOSITORY_VARIABLE

# Read when the plugin is loaded: each test then has a HOME and an environment of its own.
CACHE = platformdirs.user_cache_path("lakeload-tests", appauthor=False)
REPOSITORY = {name: os.environ[name] for name in (REPOSITORY_VARIABLE,) if os.environ.get(name)}


@pytest.fixture(scope="session")
def jars_cache() -> Path:
    """A LAKELOAD_CACHE_DIR that has the jars of every feature.

    The first run fetches 130 MB from Maven Central, or from the repository that
    LAKELOAD_MAVEN_REPOSITORY names; without either the tests fail, saying so.
    """
    fetch(pinned(*SETS), CACHE / "jars", REPOSITORY)
    return CACHE


@pytest.fixture(scope="session")
def jars(jars_cache: Path, jdbc_jars: tuple[Path, ...]) -> tuple[Path, ...]:
    """The jars themselves; Iceberg's first, whose AWS clients are newer than those of Hadoop."""
    features = pinned("iceberg", "s3", "avro", "postgresql")
    return (*fetch(features, jars_cache / "jars", REPOSITORY), *jdbc_jars)


@pytest.fixture(scope="session")
def jdbc_jars() -> tuple[Path, ...]:
    """The JDBC drivers that users of tests name: of H2, and of SQLite."""
    from tests.servers.catalog_jars import catalog_jars

    return tuple(catalog_jars("jdbc"))
