"""Rejected records as a source: those of one earlier job, read again under the settings of now.

What is read are the records as they were stored, never the files. They stand for files of the same
names, whose columns are those that the files had.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import FilesInput, JobSpec, RejectedInput, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence, RejectedRecords, StateChange
from lakeload_jobs.core.sizes import counted
from lakeload_jobs.rows.rejects import of_records
from lakeload_jobs.sources.base import EarlierColumns, Rows, unchecked
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.files.spark.text import open_text_files
from lakeload_jobs.sources.files.spark.typed import TypedTable, open_typed_files
from lakeload_jobs.sources.files.text.stored import StoredFiles, StoredText, stored_text
from lakeload_jobs.sources.files.typed.exact import is_exact_record
from lakeload_jobs.sources.files.typed.stored import StoredRecord, StoredRecords
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.key_patterns import KeyPattern
from lakeload_jobs.sources.paths.source_bytes import python_codec


def connect_rejected(
    spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, RejectedInput], RejectedSource]:
    """Return what makes the source of each table of one run."""
    s3 = S3Source(spec, aws)
    return lambda table, given: RejectedSource(spec, table, given, s3)


@dataclass(frozen=True)
class RejectedSource:
    """The rejected records of one table and job."""

    spec: JobSpec
    table: TableSpec
    given: RejectedInput
    s3: S3Source
    incremental: bool = False

    def slice(self, bookmark: Bookmark) -> RejectedSlice:
        """Return all of them, or nothing where another job has read them. Raises `AwsError`, and
        `InvalidInput` for records that are not kept as their format has them."""
        found = bookmark.rejected(self.given.job)
        records = found.read() if found.read is not None else None
        if records is not None and not records.num_rows:
            found, records = RejectedRecords("NONE"), None
        if records is not None:
            # What stands for a whole file has no text that could be read.
            records = records.filter(of_records(records))
            if not records.num_rows:
                found, records = RejectedRecords("FILES"), None
        if records is not None:
            check_kept(records["raw_bytes"].to_pylist(), self.given)
        return RejectedSlice(self.spec, self.table, self.given, self.s3, found, records)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class RejectedSlice:
    """Rejected records as one load reads them; `records` None: there is none to read."""

    spec: JobSpec
    table: TableSpec
    given: RejectedInput
    s3: S3Source
    found: RejectedRecords
    records: pa.Table | None
    records_anyway: bool = False
    must_record: bool = False
    more: bool = False
    warnings: tuple[str, ...] = ()
    change: StateChange | None = None

    def noted(self, rejected_from: Collection[str]) -> Evidence | None:
        """Return None: no file was read."""

    @property
    def idle(self) -> bool:
        """Whether there is none."""
        return self.records is None

    @property
    def sentence(self) -> str:
        """How many there are, or why there is none."""
        sentence = self.found.sentence(self.given.job)
        if self.records is None:
            return sentence
        return f"{counted(self.records.num_rows, 'record')} read again: {sentence}"

    @property
    def bytes(self) -> int | None:
        """About how much they are."""
        return None if self.records is None else self.records.nbytes

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Open them as the files of the table are opened. Raises as that does."""
        assert self.records is not None  # noqa: S101 - load_table opens no idle slice
        files, records = self.given.files, self.records.to_pylist()
        if files.format in TEXT_FORMATS:
            rows = self._open_texts(spark, earlier, StoredFiles(texts=stored_texts(records, files)))
        else:
            stored = StoredRecords(stored_records(records))
            states = self._states(dict.fromkeys(stored.records, 0))
            table = TypedTable(spark, self.spec, self.table, files, states, self.s3, stored=stored)
            rows = open_typed_files(table, earlier)
        # There is no file that could change.
        return replace(rows, check_unchanged=unchecked)

    def _open_texts(
        self, spark: SparkSession, earlier: EarlierColumns, stored: StoredFiles
    ) -> Rows:
        return open_text_files(
            spark,
            self.spec,
            self.table,
            self.given.files,
            self.s3,
            files=self._states({path: len(text.data) for path, text in stored.texts.items()}),
            earlier=earlier,
            stored=stored,
        )

    def _states(self, sizes: Mapping[str, int]) -> tuple[FileState, ...]:
        """Return the files that records stand for."""
        return tuple(
            FileState(path, size, 0, root=root_of(path, self.given.files.paths))
            for path, size in sizes.items()
        )


def check_kept(kept: Sequence[bytes | None], given: RejectedInput) -> None:
    """Raise `InvalidInput` where records are not kept as their format is read from; `kept` are
    their `raw_bytes`."""
    file_format = given.files.format
    is_exact = [raw is not None and is_exact_record(raw) for raw in kept]
    if file_format in TEXT_FORMATS:
        if any(is_exact):
            raise InvalidInput(
                f"the rejected records of job `{given.job}` are not {file_format}",
                hint="set `format` to the format of the files that this job loaded",
            )
        return
    if not all(is_exact):
        raise InvalidInput(
            f"{is_exact.count(False):,} of {len(kept):,} rejected records of job `{given.job}` "
            f"cannot be loaded as {file_format}: the column `raw_bytes` of the side table does "
            "not contain them. An older version of lakeload rejected them, they have another "
            "format, or they contain intervals of Spark",
            hint="write these rows of `source_file` to a new file, and load that file",
        )


def stored_records(records: Sequence[Mapping[str, Any]]) -> dict[str, tuple[StoredRecord, ...]]:
    """Return the records of each file of Parquet, ORC or Avro, in the order of their job."""
    return {
        path: tuple(
            StoredRecord(record["raw_bytes"], record["row_group"], record["row_number"])
            for record in own
        )
        for path, own in _by_file(records).items()
    }


def stored_texts(records: Sequence[Mapping[str, Any]], given: FilesInput) -> dict[str, StoredText]:
    """Return the text of the records of each file, in the order of their job."""
    reading = TEXT_FORMATS[given.format].reading(given.options)
    encoding = reading.options.encoding
    found = {}
    for path, own in _by_file(records).items():
        names = json.loads(own[0]["source_columns"] or "[]")
        lines = [(record["source_line"] or 1, _bytes_of(record, encoding)) for record in own]
        found[path] = stored_text(names, lines, reading.line_break)
    return found


def _by_file(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    by_file: dict[str, list[Mapping[str, Any]]] = {}
    for record in sorted(records, key=lambda record: record["_supa_index"]):
        by_file.setdefault(record["source_file"], []).append(record)
    return dict(sorted(by_file.items()))


def _bytes_of(record: Mapping[str, Any], encoding: str | None) -> bytes:
    """Return a record in UTF-8. Bytes that were no text are decoded as the encoding of now has it;
    what is none in it either stays as it is, and is rejected again."""
    raw: bytes | None = record["raw_bytes"]
    if raw is None:
        return str(record["raw_record"]).encode()
    if encoding is None:
        return raw
    try:
        return raw.decode(python_codec(encoding, "")).encode()
    except UnicodeError:
        return raw


def root_of(path: str, patterns: Sequence[str]) -> str:
    """Return the folder above a file that a pattern names, '' where one names the file."""
    for pattern in patterns:
        if is_s3(pattern) != is_s3(path):
            continue
        if is_s3(pattern):
            parsed = KeyPattern.parse(pattern)
            bucket, _, key = path.removeprefix("s3://").partition("/")
            if parsed.bucket == bucket and (root := parsed.root_of(key)):
                return f"s3://{bucket}/{root}"
            continue
        names, wanted = path.split("/"), pattern.rstrip("/").split("/")
        if len(wanted) < len(names) and all(map(fnmatchcase, names, wanted)):
            return "/".join(names[: len(wanted)])
    return ""
