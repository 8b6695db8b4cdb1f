"""Content of the cache, read without a network and without Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeload.machine.appcds import ArchiveKey, ArchiveState, archive_key, archive_states
from lakeload.machine.jars.pins import JARS, SETS, JarState, look_at_all, pinned
from lakeload.machine.java import find_java
from lakeload.machine.spark import find_spark
from lakeload_jobs.contract.errors import MachineNotReady


@dataclass(frozen=True)
class CacheState:
    """The pinned jars of the sets that were asked for, and every AppCDS archive.

    `archives` is empty and `unknown` says why where this machine has no Java or no Spark that an
    archive could be compared with.
    """

    folder: Path
    jars: tuple[JarState, ...]
    archives: tuple[ArchiveState, ...]
    unknown: str | None = None


def cache_state(
    cache: Path, environment: Mapping[str, str], features: Sequence[str] = SETS
) -> CacheState:
    """Recompute every checksum of the cache and compare. Never fails."""
    jars = look_at_all(pinned(*features), cache / JARS)
    try:
        java, spark = find_java(environment), find_spark(environment)
    except MachineNotReady as lack:
        return CacheState(cache, jars, (), lack.message)

    def current(wanted: tuple[str, ...]) -> ArchiveKey:
        return archive_key(java.home, spark.home, class_path(cache, wanted), environment)

    return CacheState(cache, jars, archive_states(cache, current))


def class_path(cache: Path, features: Sequence[str]) -> tuple[Path, ...]:
    """Return the files of the named sets, in the order in which a driver gets them."""
    known = [feature for feature in features if feature in SETS]
    return tuple(cache / JARS / jar.file_name for jar in pinned(*known))
