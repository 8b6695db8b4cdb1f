"""Names of datasets by the rules of OpenLineage (https://openlineage.io/docs/spec/naming)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from lakeload_jobs.sources.paths.file_state import is_s3

_MAGIC = re.compile(r"[*?\[]")
_WHOLE_FOLDER = re.compile(r"\*\*?|\*(?:\.[A-Za-z0-9]+)+")
"""A pattern for all files of a folder, or all that have one extension."""
_JDBC_URL = re.compile(
    r"jdbc:(?P<database>[a-z0-9+.-]+)://(?P<place>[^/;?@]+)(?=[/;?]|$)(?:/(?P<name>\w+))?"
)


@dataclass(frozen=True)
class Alias:
    """Another name of a dataset, such as that of a table in its catalog."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Dataset:
    """A dataset: where it is stored, its name there, and other names that it has."""

    namespace: str
    name: str
    aliases: tuple[Alias, ...] = ()
    storage: str | None = None
    """The layer above the files: `iceberg`."""


def datasets_of_paths(paths: Iterable[str]) -> tuple[Dataset, ...]:
    """Return the folders, files and patterns that paths name, each once."""
    return tuple(dict.fromkeys(_of_path(path) for path in paths))


def _of_path(path: str) -> Dataset:
    """Return the dataset of one path. A pattern for whole folders is the folder, so that it has the
    name under which another job writes it; any other pattern keeps its name."""
    if is_s3(path):
        bucket, _, key = path.removeprefix("s3://").partition("/")
        return Dataset(f"s3://{bucket}", _folder(key) or "/")
    return Dataset("file", _folder(path) or "/")


def _folder(path: str) -> str:
    names = path.split("/")
    first = next((i for i, name in enumerate(names) if _MAGIC.search(name)), len(names))
    if all(_WHOLE_FOLDER.fullmatch(name) for name in names[first:]):
        names = names[:first]
    return "/".join(names).rstrip("/")


def dataset_of_url(
    url: str, aliases: tuple[Alias, ...] = (), storage: str | None = None
) -> Dataset:
    """Return the dataset that is stored at an `s3://` or other URL."""
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    # Spark's names for the same objects.
    scheme = "s3" if scheme in ("s3a", "s3n") else scheme
    return Dataset(f"{scheme}://{place}", path.strip("/") or "/", aliases, storage)


def dataset_of_table(read: JdbcInput) -> Dataset | None:
    """Return the dataset of a table of a database; None for a query, and for a URL of a driver
    that names no host."""
    if read.query is not None:
        return None
    if read.url is not None:
        found = _JDBC_URL.match(read.url)
        if found is None:
            return None
        names = (found["name"], read.schema, read.table)
        return Dataset(f"{found['database']}://{found['place']}", ".".join(filter(None, names)))
    facts = ENGINES[read.database].facts
    first = () if facts.schema_is_database and read.schema else (read.name,)
    names = (*first, read.schema, read.table)
    return Dataset(f"{facts.lineage}://{read.host}:{read.port}", ".".join(filter(None, names)))
