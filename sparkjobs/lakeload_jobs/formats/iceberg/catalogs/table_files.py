"""The files of a table: those that its snapshots have, and their removal."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.formats.iceberg.catalogs.files import MOST_TOGETHER, LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.reading import supported
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.manifests import ManifestLists, each_of, read_paths

logger = logging.getLogger(__name__)


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
    return _read(table, files)[1]


def table_files(table: ReadTable, files: LakeFiles) -> TableFiles:
    """Read which files belong to any snapshot the table still has: a GET for each manifest and each
    list of manifests. Raises `AwsError`, `LoadFailed` and `CatalogError` when one cannot be
    read."""
    metadata = table.metadata
    manifests, data = _read(table, files)
    known = [
        *manifests,
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
    """Delete files, many with one request; a missing one is no error.

    Raises nothing: the table that named them is gone already, so all that can be done is done.
    """

    def remove_together(some: Sequence[str]) -> Collection[str]:
        try:
            return files.delete_together(some) if len(some) > 1 else some
        except LakeloadError as error:
            logger.info("files are deleted one by one: %s", error.message)
            return some

    def remove(place: str) -> tuple[str, LakeloadError] | None:
        try:
            files.delete(place)
        except LakeloadError as error:
            return place, error
        return None

    # One by one, S3's client retries what S3 was too busy for, and its errors say more.
    stayed = [one for some in each_of(remove_together, _together(files, places)) for one in some]
    refused = [found for found in each_of(remove, stayed) if found is not None]
    left = tuple(place for place, _ in refused)
    return Removal(len(places) - len(left), left, refused[0][1] if refused else None)


def _together(files: LakeFiles, places: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield files that one request can delete."""
    held: dict[str, list[str]] = {}
    for one in places:
        place = files.place(one)
        held.setdefault(place, []).append(one)
        if len(held[place]) == MOST_TOGETHER:
            yield held.pop(place)
    yield from held.values()


def _read(table: ReadTable, files: LakeFiles) -> tuple[list[str], dict[str, int]]:
    """Return the manifests of a table, and the files that they name."""
    with supported(f"reading the files of the table `{table.target}`"):
        manifests = ManifestLists(files).read(table.metadata.get("snapshots", ()))
        found = each_of(partial(read_paths, files), manifests.values())
        return list(manifests), {place: size for paths in found for place, size in paths.items()}
