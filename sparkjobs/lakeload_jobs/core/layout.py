"""Object keys in the bucket (docs/protocol-parquet.md)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, assert_never

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.file_names import FILE_SUFFIX
from lakeload_jobs.core.names import LOG_NAME, REJECTED_SUFFIX

LogKind = Literal["record", "end", "clean", "cat"]

MAX_KEY_BYTES = 1024
"""S3's limit for a key in UTF-8."""

_EXTENSIONS: dict[str, LogKind] = {"json": "record", "end": "end", "clean": "clean", "cat": "cat"}
_LOG_NAME = re.compile(r"([0-9]{20})\.(json|end|clean|cat)")
_SEGMENT = re.compile(r"[A-Za-z0-9_]{1,255}")
_PARTITION_FORMATS = {"DAY": "%Y/%m/%d", "HOUR": "%Y/%m/%d/%H"}


@dataclass(frozen=True)
class TableLocation:
    """One table of a destination: where its data and its log lie. Names are normalised.

    `prefix` and `schema` may be '': the segment is then left out. Raises `InvalidInput` for
    a prefix that S3 or its clients would change, `ValueError` for a name that is not normalised.
    """

    prefix: str
    schema: str
    table: str

    def __post_init__(self) -> None:
        """Refuse what could lead out of the prefix, whoever made the names."""
        if problem := prefix_problem(self.prefix):
            raise InvalidInput(
                f"prefix `{self.prefix}`: {problem}", hint="change `prefix` in the destination"
            )
        for name in (*([self.schema] if self.schema else []), self.table):
            if not _SEGMENT.fullmatch(name):
                raise ValueError(f"{name!r} is not a normalised name")

    @property
    def name(self) -> str:
        """`schema.table`, as queries and people name it."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    @property
    def data_path(self) -> str:
        """`{prefix}/{schema}/{table}/`: everything a reader of the table lists."""
        return _path(self.prefix, self.schema, self.table)

    def url(self, bucket: str) -> str:
        """`s3://{bucket}/{prefix}/{schema}/{table}`, without a final slash."""
        return f"s3://{bucket}/{self.data_path}".rstrip("/")

    @property
    def side_table(self) -> TableLocation:
        """The table that takes this table's rejected records, in this table's log. Raises
        `ValueError` where its name is too long."""
        return TableLocation(self.prefix, self.schema, self.table + REJECTED_SUFFIX)

    @property
    def with_side_table(self) -> tuple[TableLocation, ...]:
        """Where data files of this table's jobs lie."""
        name = self.table + REJECTED_SUFFIX
        return (self, self.side_table) if _SEGMENT.fullmatch(name) else (self,)

    @property
    def log_path(self) -> str:
        """`{prefix}/_lakeload/{schema}/{table}/log/`: the commit log."""
        return _path(self.prefix, LOG_NAME, self.schema, self.table, "log")

    @property
    def checkpoint_key(self) -> str:
        """The cache of the log's settled beginning; it sorts after every record."""
        return self.log_path + "checkpoint.json"

    def record_key(self, number: int) -> str:
        """The record itself, LOAD or FENCE. It sorts last of its number, so a LIST that starts
        after it goes on with the next number."""
        return self._log_key(number, "json")

    def end_key(self, number: int) -> str:
        """Done or void, with the reason."""
        return self._log_key(number, "end")

    def clean_key(self, number: int) -> str:
        """A void record's files are gone."""
        return self._log_key(number, "clean")

    def cat_key(self, number: int) -> str:
        """The catalog is in step."""
        return self._log_key(number, "cat")

    def parse_log_key(self, key: str) -> tuple[int, LogKind] | None:
        """Return number and kind of a key in this log, None for any other key.

        Keys deeper below are none of ours: the log of table `log` in schema `a` lies inside the
        log path of table `a` without a schema.
        """
        if not key.startswith(self.log_path):
            return None
        match = _LOG_NAME.fullmatch(key, len(self.log_path))
        return None if match is None else (int(match[1]), _EXTENSIONS[match[2]])

    def _log_key(self, number: int, extension: str) -> str:
        if not 0 <= number < 10**20:
            raise ValueError(f"{number} is not a number of the log")
        return f"{self.log_path}{number:020d}.{extension}"


def partition_path(strategy: PartitionStrategy, synced: datetime, job_id: str) -> str:
    """Return the partition's path without slashes at its ends; '' for NONE.

    `synced` is the job's one instant: a load that runs past the hour stays in one partition.
    """
    match strategy:
        case "NONE":
            return ""
        case "SYNC_ID":
            return job_id
        case "DAY" | "HOUR":
            return synced.astimezone(UTC).strftime(_PARTITION_FORMATS[strategy])
        case _:
            assert_never(strategy)


def data_key(location: TableLocation, partition: str, file_name: str) -> str:
    """Return the key of a data file; `file_name` comes without its suffix.

    Raises `InvalidInput` when S3 would refuse the key for its length.
    """
    key = location.data_path + _path(partition) + file_name + FILE_SUFFIX
    if (size := len(key.encode())) > MAX_KEY_BYTES:
        raise InvalidInput(
            f"the key `{key[:80]}…` has {size} bytes and S3 allows {MAX_KEY_BYTES}",
            hint="shorten `prefix`, the table's `name` or `namespace`, or `file_name_pattern`",
        )
    return key


def log_root(prefix: str) -> str:
    """`{prefix}/_lakeload/`: below it lie the logs of all tables."""
    return _path(prefix, LOG_NAME)


def conditional_writes_key(prefix: str) -> str:
    """`{prefix}/_lakeload/conditional-writes`: no target's name holds `-`."""
    return log_root(prefix) + "conditional-writes"


def binding_key(prefix: str, pipeline: str, source: str) -> str:
    """`{prefix}/_lakeload/pipeline-sources/{pipeline}/{hash}.json`: where a pipeline loads one
    source table. Sources are hashed, for they may hold any character."""
    mark = hashlib.sha256(source.encode()).hexdigest()[:16]
    return f"{log_root(prefix)}pipeline-sources/{pipeline}/{mark}.json"


def job_history_path(prefix: str, pipeline: str = "") -> str:
    """`{prefix}/_lakeload/job-history/{pipeline}/`: one object a day; without a pipeline, those of
    all. No target's name holds `-`."""
    return _path(prefix, LOG_NAME, "job-history", pipeline)


def probe_path(prefix: str) -> str:
    """`{prefix}/_lakeload/probe/`: where the connection test puts its objects."""
    return _path(prefix, LOG_NAME, "probe")


def prefix_problem(prefix: str) -> str | None:
    """Say why `prefix` cannot be used, or return None. It has no slash at either end."""
    if prefix == "":
        return None
    segments = prefix.split("/")
    if "" in segments:
        return "it has an empty segment (`//`, or `/` at an end)"
    if any(segment in (".", "..") for segment in segments):
        return "S3 clients change or reject the segments `.` and `..`"
    if LOG_NAME in segments:
        return f"`{LOG_NAME}` is where lakeload stores its own log"
    if not prefix.isprintable() or any(char in prefix for char in '\\{}^%`[]"<>~#|*?'):
        return "it contains a character that the documentation of S3 advises against"
    if len(prefix.encode()) > 400:
        return "it has more than 400 bytes, which leaves too little of S3's 1024 for the rest"
    return None


def overlaps(locations: Sequence[TableLocation]) -> list[tuple[TableLocation, TableLocation]]:
    """Return pairs (outer, inner) of which one's data lies inside the other's.

    It takes a table without a schema and a schema of the same name; readers of the outer table
    would read the inner one's files.
    """
    by_path = {location.data_path: location for location in locations}
    return [
        (by_path[outer], location)
        for location in locations
        if (outer := location.data_path.rstrip("/").rpartition("/")[0] + "/") in by_path
    ]


def _path(*segments: str) -> str:
    """Join the segments that are not '' with a slash after each."""
    return "".join(f"{segment}/" for segment in segments if segment)
