"""What is looked for in CSV and JSON files before Spark reads them, because Spark would load wrong
rows without a word: a second value in a JSON file, a line break inside quotes in CSV.

The bytes are read by Python, a small input in the driver and a large one in tasks, and pass
through no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.rows.failures import TaskFailed, expected_failure
from lakeload_jobs.sources.files.file_state import FileState, is_s3
from lakeload_jobs.sources.files.json_values import line_of_second_value
from lakeload_jobs.sources.files.listing import SourceObjects
from lakeload_jobs.sources.files.source_bytes import (
    DAMAGED,
    Bytes,
    as_utf8,
    decompressed,
    is_wide,
    readable,
    splittable,
    whole_lines,
)
from lakeload_jobs.sources.files.spark.csv_quotes import Dialect, Lines, LineScan
from lakeload_jobs.sources.files.spark.s3a import S3Source

_SMALL = 4 << 20
_EXPANDS = 8
"""How many times its size a compressed file is taken for, where only the effort depends on it."""

_SPLIT = 64 << 20


@dataclass(frozen=True)
class _Part:
    """A part of a file that is looked at by itself, `end` None for one up to the file's end."""

    file: FileState
    start: int
    end: int | None


def check_text(
    spark: SparkSession, source: FilesInput, files: Sequence[FileState], s3: S3Source | None
) -> None:
    """Look into the files of a CSV or JSON source, where Spark's reader has to be protected.

    Raises `LoadFailed` with the file, the line and the setting that reads it right, and `AwsError`
    for an object that cannot be read.
    """
    check = _check(source, s3)
    files = [file for file in files if readable(file.path)]
    if check is None or not files:
        return
    parts = list(_parts(source, files))
    if sum(map(_effort, files)) <= _SMALL:
        found = list(check.look(parts))
    else:
        context = spark.sparkContext
        slices = min(len(parts), 4 * context.defaultParallelism)
        found = context.parallelize(parts, slices).mapPartitions(check.in_task).collect()
    _raise_first(source, found)


@dataclass(frozen=True)
class _Check:
    """The function that looks at parts of files; it travels to the tasks, so it holds references
    to secrets and no secret. `identity` reads `s3://` paths."""

    source: FilesInput
    identity: DestinationSpec | None
    label: str

    def in_task(self, parts: Iterable[_Part]) -> Iterator[tuple[_Part, Lines]]:
        """Do what `look` does, with failures as they cross to the driver."""
        try:
            yield from self.look(parts)
        except Exception as error:
            failure = expected_failure(error)
            if failure is None:
                raise
            raise TaskFailed(ErrorInfo.of(failure, "open")) from error

    def look(self, parts: Iterable[_Part]) -> Iterator[tuple[_Part, Lines]]:
        """Yield what each part was found to hold."""
        options = {name.lower(): value for name, value in self.source.options.items()}
        encoding = options.get("encoding", options.get("charset"))
        objects = None
        if self.identity is not None:
            objects = SourceObjects(AwsSession(self.identity, label=self.label))
        for part in parts:
            with self._opened(part, objects) as file:
                try:
                    yield part, self._lines(part, decompressed(part.file.path, file), encoding)
                except DAMAGED:
                    # Spark cannot read it either, and says so.
                    yield part, Lines(0, None)

    def _opened(self, part: _Part, objects: SourceObjects | None) -> AbstractContextManager[Bytes]:
        start = max(part.start - 1, 0)
        if objects is not None and is_s3(part.file.path):
            return objects.stream(part.file, start)
        return _local(part.file.path, start)

    def _lines(self, part: _Part, chunks: Iterator[bytes], encoding: str | None) -> Lines:
        options = {name.lower(): value for name, value in self.source.options.items()}
        if self.source.format == "JSON":
            line = line_of_second_value(
                as_utf8(chunks, encoding),
                single_quotes=options.get("allowsinglequotes", "true").lower() == "true",
                comments=options.get("allowcomments", "false").lower() == "true",
            )
            return Lines(0, None if line is None else line - 1)
        charset = encoding or "utf-8"
        if is_wide(charset):
            chunks, charset = as_utf8(chunks, encoding), "utf-8"
        else:
            if part.start or part.end is not None:
                chunks = whole_lines(chunks, part.start, part.end)
            if part.start == 0:
                chunks = as_utf8(chunks, charset)
        return LineScan(Dialect.from_options(self.source.options), charset).lines(chunks)


def _check(source: FilesInput, s3: S3Source | None) -> _Check | None:
    """Return what looks at the files of a source, None where Spark is right about all of them."""
    if source.format == "CSV":
        options = {name.lower(): value.lower() for name, value in source.options.items()}
        if options.get("multiline") == "true" or not Dialect.from_options(source.options).quote:
            return None
    elif source.format != "JSON":
        return None
    identity = None if s3 is None else s3.readers.identity(source)
    return _Check(source, identity, "" if s3 is None else s3.label)


def _parts(source: FilesInput, files: Sequence[FileState]) -> Iterator[_Part]:
    options = {name.lower(): value for name, value in source.options.items()}
    cut = source.format == "CSV" and "linesep" not in options
    cut = cut and not is_wide(options.get("encoding", options.get("charset", "utf-8")))
    for file in files:
        if not cut or not splittable(file.path) or file.size <= _SPLIT:
            yield _Part(file, 0, None)
            continue
        for start in range(0, file.size, _SPLIT):
            end = start + _SPLIT
            yield _Part(file, start, end if end < file.size else None)


def _effort(file: FileState) -> int:
    return file.size if splittable(file.path) else file.size * _EXPANDS


def _raise_first(source: FilesInput, found: Iterable[tuple[_Part, Lines]]) -> None:
    """Raise `LoadFailed` for the first file in which something was found, with its line."""
    lines: dict[str, int] = {}
    for part, held in sorted(found, key=lambda pair: (pair[0].file.path, pair[0].start)):
        path = part.file.path
        if held.before_open is None:
            lines[path] = lines.get(path, 0) + held.breaks
            continue
        line = lines.get(path, 0) + held.before_open + 1
        if source.format == "JSON":
            raise LoadFailed(
                f"reading `{path}`: line {line:,} goes on after the end of the first JSON value",
                hint="`format: NDJSON` reads one object on each line; `format: JSON` takes one "
                "value or one array from each file",
            )
        raise LoadFailed(
            f"reading `{path}`: line {line:,} ends inside quotes",
            hint="set the reader option `multiLine: true`, which reads line breaks in quotes; "
            "where quotes have no meaning in these files, `quote: ''`",
        )


@contextmanager
def _local(path: str, start: int) -> Iterator[Bytes]:
    with Path(path).open("rb") as file:
        file.seek(start)
        yield file
