"""The files of a table: those that its snapshots have, and their removal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.manifests import read_list, read_paths
from lakeload_jobs.formats.iceberg.commits.metadata import Json

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


def data_files(table: ReadTable, files: LakeFiles) -> dict[str, int]:
    """Read the locations of the data and delete files that any snapshot the table still has names,
    with their bytes. Costs and raises as `table_files`."""
    return _data_of(_manifests(table, files), files)


def table_files(table: ReadTable, files: LakeFiles) -> TableFiles:
    """Read which files belong to any snapshot the table still has: a GET for each manifest and each
    list of manifests. Raises `AwsError` when one cannot be read."""
    metadata = table.metadata
    manifests = _manifests(table, files)
    data = _data_of(manifests, files)
    known = [
        *(row["manifest_path"] for row in manifests),
        *(one["manifest-list"] for one in metadata.get("snapshots", ()) if "manifest-list" in one),
        *(one["statistics-path"] for one in metadata.get("statistics", ())),
        *(one["statistics-path"] for one in metadata.get("partition-statistics", ())),
        *(one["metadata-file"] for one in metadata.get("metadata-log", ())),
        table.metadata_location,
    ]
    inside = f"{table.location}/"
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


def remove_files(files: LakeFiles, places: Sequence[str]) -> Removal:
    """Delete files; a missing one is no error.

    Raises nothing: the table that named them is gone already, so all that can be done is done.
    """

    def remove(place: str) -> tuple[str, LakeloadError] | None:
        try:
            files.delete(place)
        except LakeloadError as error:
            return place, error
        return None

    refused = [found for found in _together(remove, places) if found is not None]
    left = tuple(place for place, _ in refused)
    return Removal(len(places) - len(left), left, refused[0][1] if refused else None)


def _manifests(table: ReadTable, files: LakeFiles) -> list[Json]:
    """Return what lists say of each manifest of the table."""
    listed = _together(partial(_listed, files), table.metadata.get("snapshots", ()))
    return list({row["manifest_path"]: row for rows in listed for row in rows}.values())


def _listed(files: LakeFiles, snapshot: Json) -> list[Json]:
    # Version 1 of the format knows snapshots without a list.
    named = snapshot.get("manifests")
    return [{"manifest_path": place} for place in named] if named else read_list(files, snapshot)


def _data_of(manifests: Sequence[Json], files: LakeFiles) -> dict[str, int]:
    found = _together(partial(read_paths, files), manifests)
    return {place: size for paths in found for place, size in paths.items()}


def _together(work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="table-files") as pool:
        return list(pool.map(work, things))
