"""What is looked for in JSON files before Spark reads them: a second value in a file, which Spark
would leave out without a word.

The bytes are read by Python, a small input in the driver and a large one in tasks, and pass
through no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.sources.files.file_state import FileState, is_s3
from lakeload_jobs.sources.files.json_values import line_of_second_value
from lakeload_jobs.sources.files.listing import SourceObjects
from lakeload_jobs.sources.files.source_bytes import (
    DAMAGED,
    Bytes,
    as_utf8,
    decompressed,
    readable,
    splittable,
)
from lakeload_jobs.sources.files.spark.s3a import S3Source

_SMALL = 4 << 20
_EXPANDS = 8
"""How many times its size a compressed file is taken for, where only the effort depends on it."""

_Found = tuple[FileState, int | None]
"""A file, and the line of its second value."""


def check_text(
    spark: SparkSession, source: FilesInput, files: Sequence[FileState], s3: S3Source | None
) -> None:
    """Look into the files of a JSON source, where Spark's reader has to be protected.

    Raises `LoadFailed` with the file, the line and the format that reads it right, and `AwsError`
    for an object that cannot be read.
    """
    files = [file for file in files if readable(file.path)]
    if source.format != "JSON" or not files:
        return
    identity = None if s3 is None else s3.readers.identity(source)
    check = _Check(source, identity, "" if s3 is None else s3.label)
    if sum(map(_effort, files)) <= _SMALL:
        found = list(check.look(files))
    else:
        context = spark.sparkContext
        slices = min(len(files), 4 * context.defaultParallelism)
        found = context.parallelize(files, slices).mapPartitions(check.in_task).collect()
    for file, line in sorted(found, key=lambda pair: pair[0].path):
        if line is not None:
            raise LoadFailed(
                f"reading `{file.path}`: line {line:,} goes on after the end of the first JSON "
                "value",
                hint="`format: NDJSON` reads one object on each line; `format: JSON` takes one "
                "value or one array from each file",
            )


@dataclass(frozen=True)
class _Check:
    """The function that looks at files; it travels to the tasks, so it holds references to secrets
    and no secret. `identity` reads `s3://` paths."""

    source: FilesInput
    identity: DestinationSpec | None
    label: str

    def in_task(self, files: Iterable[FileState]) -> Iterator[_Found]:
        """Do what `look` does, with failures as they cross to the driver."""
        with failures_for_driver("open"):
            yield from self.look(files)

    def look(self, files: Iterable[FileState]) -> Iterator[_Found]:
        """Yield what each file was found to hold."""
        options = {name.lower(): value for name, value in self.source.options.items()}
        encoding = options.get("encoding", options.get("charset"))
        objects = None
        if self.identity is not None:
            objects = SourceObjects(AwsSession(self.identity, label=self.label))
        for file in files:
            with self._opened(file, objects) as stream:
                try:
                    yield (
                        file,
                        line_of_second_value(
                            as_utf8(decompressed(file.path, stream), encoding),
                            single_quotes=options.get("allowsinglequotes", "true").lower()
                            == "true",
                            comments=options.get("allowcomments", "false").lower() == "true",
                        ),
                    )
                except DAMAGED:
                    # Spark cannot read it either, and says so.
                    yield file, None

    def _opened(
        self, file: FileState, objects: SourceObjects | None
    ) -> AbstractContextManager[Bytes]:
        if objects is not None and is_s3(file.path):
            return objects.stream(file, 0)
        return Path(file.path).open("rb")


def _effort(file: FileState) -> int:
    return file.size if splittable(file.path) else file.size * _EXPANDS
