"""The jars that Spark does not bring: pinned in jars.toml, by line of Spark and by set.

Nothing else decides which code runs beside the data, so a file counts only with the SHA-256 that
is written down here, wherever it came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lakeload.data import read_toml
from lakeload.machine.spark import SUPPORTED
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.spec import ReaderChoice, TableFormat, TableInput
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.sources.databases.engines.registry import ENGINES

_OF_ENGINES = (engine.facts.jar_set for engine in ENGINES.values())
SETS = ("s3", "avro", "iceberg", *filter(None, _OF_ENGINES))
"""Input from S3, Avro files, Iceberg tables, and databases that Spark reads with a JDBC driver."""

JARS = "jars"
"""The folder of the cache that has them."""

Presence = Literal["present", "missing", "broken"]


@dataclass(frozen=True)
class Jar:
    """One artifact of Maven: the SHA-256 (hex) of its bytes, and how many there are."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int
    feature: str = ""
    """The set it belongs to."""

    @property
    def file_name(self) -> str:
        """The name of its file, in a repository and in the cache."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where every Maven repository has it, relative to its base URL."""
        folder = self.group.replace(".", "/")
        return f"{folder}/{self.artifact}/{self.version}/{self.file_name}"

    @property
    def coordinates(self) -> str:
        """Its name for people and build tools."""
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True)
class JarState:
    """What lies in the cache under a jar's name. `found` is the SHA-256 of a broken one."""

    jar: Jar
    path: Path
    state: Presence
    found: str | None = None


def pinned(*features: str, spark: str = SUPPORTED) -> tuple[Jar, ...]:
    """Return the jars of the named sets, in the order they are pinned, for a line of Spark."""
    sets = read_toml("lakeload.machine", "jars.toml")[spark]
    jars = []
    for feature in features:
        for coordinates, pin in sets[feature].items():
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(group, artifact, version, pin["sha256"], pin["size"], feature))
    return tuple(jars)


def jar_sets_for(
    inputs: Iterable[TableInput],
    table_format: TableFormat = "PARQUET",
    reader: ReaderChoice = "AUTO",
    *,
    format_jars: bool = True,
) -> tuple[str, ...]:
    """Return which sets loads of these inputs into such tables need, each once, sorted; with
    `format_jars` those of the format too."""
    found = set(FORMATS[table_format].jar_sets if format_jars else ())
    for given in inputs:
        found |= facts_of(given, reader).jar_sets
    return tuple(sorted(found))


def look_at(jar: Jar, folder: Path) -> JarState:
    """Compare the file of a jar in `folder` with what is pinned. Never fails."""
    path = folder / jar.file_name
    try:
        found = digest(path)
    except FileNotFoundError:
        return JarState(jar, path, "missing")
    except OSError:
        return JarState(jar, path, "broken")
    if found == jar.sha256:
        return JarState(jar, path, "present", found)
    return JarState(jar, path, "broken", found)


def look_at_all(jars: Sequence[Jar], folder: Path) -> tuple[JarState, ...]:
    """Return the state of each jar in the cache folder; no network."""
    return tuple(look_at(jar, folder) for jar in jars)


def is_intact(jar: Jar, folder: Path) -> bool:
    """Whether the jar is in `folder` with its pinned content."""
    return look_at(jar, folder).state == "present"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, hex. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
