"""Every file that a table's metadata names, and their removal: what `reset` takes away.

Never by a prefix alone: other tables, or files that nobody knows, may lie below a location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyiceberg.manifest import ManifestFile

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.vended_credentials import s3_with
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs.catalog import OpenTable
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

AT_ONCE = 8
"""Files read or removed at once."""
CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0


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


@dataclass(frozen=True)
class _Lent:
    """The store as the keys see it that a catalog lends for one table."""

    s3: S3Client


def files_of(opened: OpenTable, destination: DestinationSpec, session: AwsSession) -> LakeFiles:
    """Return the files of a table, with the keys that its catalog lends for it, else with the
    destination's own. Lent keys are not renewed. Raises `AwsError`."""
    keys = opened.vended_keys(destination.region)
    if keys is None:
        return LakeFiles(session, destination)
    endpoint = destination.endpoints.s3
    if keys.endpoint is None and endpoint:
        # A catalog that says nothing of its store leaves that to the destination.
        keys = replace(keys, endpoint=endpoint, path_style=True)
    client = s3_with(keys, connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
    return LakeFiles(_Lent(client), destination)


def table_files(opened: OpenTable, files: LakeFiles) -> TableFiles:
    """Read which files belong to any snapshot the table still has: a GET for each manifest and each
    list of manifests. Raises `AwsError` when one cannot be read."""
    metadata = opened.metadata
    listed = _together(lambda one: one.manifests(files), metadata.snapshots)
    manifests = {one.manifest_path: one for found in listed for one in found}
    entries = _together(lambda one: _data_files(files, one), manifests.values())
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


def remove_files(files: LakeFiles, places: Sequence[str]) -> Removal:
    """Delete files; a missing one is no error.

    Raises nothing: the table that named them is gone already, so all that can be done is done.
    """

    def remove(place: str) -> tuple[str, LakeloadError] | None:
        try:
            files.delete(place)
        except AwsError as error:
            return place, error
        return None

    refused = [found for found in _together(remove, places) if found is not None]
    left = tuple(place for place, _ in refused)
    return Removal(len(places) - len(left), left, refused[0][1] if refused else None)


def _data_files(files: LakeFiles, manifest: ManifestFile) -> list[tuple[str, int]]:
    entries = manifest.fetch_manifest_entry(files)
    return [(entry.data_file.file_path, entry.data_file.file_size_in_bytes) for entry in entries]


def _together(work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="table-files") as pool:
        return list(pool.map(work, things))
