"""Every file that a table's metadata names, and their removal: what `reset` takes away.

Never by a prefix alone: other tables, or files that nobody knows, may lie below a location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.lake.catalogs.catalog import OpenTable
from lakeload_jobs.lake.catalogs.errors import CatalogError

AT_ONCE = 8
"""Files read or removed at once."""


@dataclass(frozen=True)
class TableFiles:
    """Locations of files below the table's own location, and `elsewhere` those that are not.

    `data` are data and delete files with their bytes; `metadata` manifests, their lists, statistics
    and the metadata files that the table still remembers.
    """

    data: dict[str, int]
    metadata: tuple[str, ...]
    elsewhere: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """The bytes of data and delete files."""
        return sum(self.data.values())

    @property
    def all(self) -> tuple[str, ...]:
        """Everything that goes with the table, data first."""
        return (*self.data, *self.metadata)


def table_files(opened: OpenTable) -> TableFiles:
    """Read which files belong to any snapshot the table still has: a GET for each manifest and each
    list of manifests. Raises `AwsError` or `CatalogError` when one cannot be read."""
    table, metadata = opened.table, opened.metadata
    with _reading(opened.location):
        listed = _together(lambda one: one.manifests(table.io), metadata.snapshots)
        manifests = {one.manifest_path: one for found in listed for one in found}
        entries = _together(lambda one: _data_files(table, one), manifests.values())
    data = dict(pair for found in entries for pair in found)
    known = [
        *manifests,
        *(one.manifest_list for one in metadata.snapshots if one.manifest_list),
        *(one.statistics_path for one in metadata.statistics),
        *(one.statistics_path for one in metadata.partition_statistics),
        *(one.metadata_file for one in metadata.metadata_log),
        opened.metadata_location,
    ]
    inside = f"{opened.location}/"
    return TableFiles(
        data={place: size for place, size in data.items() if place.startswith(inside)},
        metadata=tuple(dict.fromkeys(place for place in known if place.startswith(inside))),
        elsewhere=tuple(place for place in (*data, *known) if not place.startswith(inside)),
    )


@dataclass(frozen=True)
class Removal:
    """What became of files: how many went, which are still there and why the first one is."""

    removed: int
    left: tuple[str, ...] = ()
    error: LakeloadError | None = None


def remove_files(opened: OpenTable, places: Sequence[str]) -> Removal:
    """Delete files with the identity that read the table; a missing one is no error.

    Raises nothing: the table that named them is gone already, so all that can be done is done.
    """
    io = opened.table.io

    def remove(place: str) -> tuple[str, LakeloadError] | None:
        try:
            with _reading(place, "deleting"):
                io.delete(place)
        except LakeloadError as error:
            return place, error
        return None

    refused = [found for found in _together(remove, places) if found is not None]
    left = tuple(place for place, _ in refused)
    return Removal(len(places) - len(left), left, refused[0][1] if refused else None)


def _data_files(table: Table, manifest: ManifestFile) -> list[tuple[str, int]]:
    entries = manifest.fetch_manifest_entry(table.io)
    return [(entry.data_file.file_path, entry.data_file.file_size_in_bytes) for entry in entries]


def _together(work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="table-files") as pool:
        return list(pool.map(work, things))


@contextmanager
def _reading(place: str, doing: str = "reading the metadata of") -> Iterator[None]:
    """Translate what pyiceberg's own files raise, where the catalog gave out the keys."""
    try:
        yield
    except FileNotFoundError as error:
        if doing != "deleting":
            raise _unreadable(place, doing, error) from error
    except OSError as error:
        raise _unreadable(place, doing, error) from error


def _unreadable(place: str, doing: str, error: OSError) -> CatalogError:
    kind = type(error).__name__
    return CatalogError(f"{doing} `{place}`: the store refused ({kind})", code=kind)
