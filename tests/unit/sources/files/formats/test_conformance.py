"""What holds for every format of source files: a further one gets these tests by a line in
samples.py."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from lakeload.sources.files.inspection import inspect_file
from lakeload_jobs.sources.base import Splits, UnreadableFile
from lakeload_jobs.sources.files.formats.base import TextFormat, TypedFormat
from lakeload_jobs.sources.files.formats.registry import (
    FILE_FORMATS,
    TEXT_FORMATS,
    TYPED_FORMATS,
    named_format,
)
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.files.typed import rows as typed_rows
from lakeload_jobs.sources.files.typed.columns import settled, unite
from lakeload_jobs.sources.files.typed.rows import ReadTyped, split_files
from lakeload_jobs.sources.part_sizes import ONE_TASK, Parallelism
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.local_listing import file_state
from tests.unit.documents.documents import problems_of
from tests.unit.sources.files.formats.samples import SAMPLES

ROWS = [{"id": number, "name": f"name of {number}"} for number in range(400)]
NAMES = ("id", "name")
VALUES = (
    *("true", "false", "1", ";", "|", "\\n", "", "utf-8", "yyyy-MM-dd", "UTC", "SAFE", "NULL"),
    *("FAIL", "en", "$.items[*]", "stop_at_delimiter"),
)
"""Each option takes one of these."""

each_format = pytest.mark.parametrize("name", FILE_FORMATS)


@each_format
def test_a_file_is_known_by_the_endings_of_its_name(name: str) -> None:
    for ending in FILE_FORMATS[name].endings:
        assert named_format(f"/data/Orders{ending}") == name
        assert named_format(f"s3://bucket/orders{ending.upper()}.gz") == name


@each_format
def test_a_file_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    found = inspect_file(_written(name, tmp_path / "orders"), FileBytes())

    assert found.error is None
    assert (found.format, tuple(found.columns), found.rows_read) == (name, NAMES, len(ROWS))
    assert found.rows == tuple((str(row["id"]), row["name"]) for row in ROWS[:3])
    assert FILE_FORMATS[name].option_problems(SAMPLES[name].options) == []


@each_format
def test_the_columns_that_inspection_and_a_load_find_are_those_that_reading_yields(
    name: str, tmp_path: Path
) -> None:
    file = _written(name, tmp_path / "orders")

    schema, splits = _read(name, [file])

    assert tuple(schema.names) == tuple(inspect_file(file, FileBytes()).columns) == NAMES
    assert {batch.schema for part in splits.parts for batch in splits.read(part)} == {schema}
    assert schema.field("id").type == pa.int64()
    assert schema.field("name").type == pa.string()


@each_format
@pytest.mark.parametrize("files", [1, 3])
def test_the_parts_of_files_have_all_their_rows_once(
    name: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files are read whole where it would take as long to open them again.
    monkeypatch.setattr(typed_rows, "Parallelism", lambda tasks: Parallelism(tasks, 512, 64))
    if SAMPLES[name].least:
        monkeypatch.setattr(SAMPLES[name].least, 512)
    listed = [_written(name, tmp_path / f"orders{number}") for number in range(files)]

    _, splits = _read(name, listed, Parallelism(8, 512, 64))

    some = _rows(splits)
    rows = pa.concat_tables(some).sort_by("id").to_pylist()
    assert rows == [row for row in ROWS for _ in range(files)]
    assert splits.counts == tuple(table.num_rows for table in some)
    assert len(some) > files if SAMPLES[name].has_parts else len(some) == files


@each_format
def test_a_part_can_be_read_again(name: str, tmp_path: Path) -> None:
    _, splits = _read(name, [_written(name, tmp_path / "orders")], Parallelism(4, 512, 64))

    last = splits.parts[-1]
    assert list(splits.read(last)) == list(splits.read(last))


@each_format
def test_a_truncated_file_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    path, data = tmp_path / "orders", SAMPLES[name].content(ROWS)
    if name in TEXT_FORMATS:
        # Text may end anywhere, what packs it may not.
        path, data = tmp_path / "orders.gz", gzip.compress(data)
    path.write_bytes(data[: len(data) // 2])

    with pytest.raises(UnreadableFile, match=f"reading `{path}`: "):
        _rows(_read(name, [file_state(str(path))])[1])


@each_format
def test_validate_accepts_each_option_and_no_other(name: str, tmp_path: Path) -> None:
    given = FILE_FORMATS[name]

    assert len({option.lower() for option in given.options}) == len(given.options)
    for option in given.options:
        for written in (option, option.upper()):
            assert _accepted(name, written, tmp_path), f"no value of `{written}` is accepted"
    (problem,) = given.option_problems({"no_such_option": "1"})
    assert problem.message == f"{name} has no reader option `no_such_option`"
    (problem,) = given.option_problems({"path": "a"})
    assert problem.message == "the reader option `path` belongs to lakeload"


@each_format
def test_options_that_only_spark_knows_are_options(name: str) -> None:
    given = FILE_FORMATS[name]

    assert set(given.spark_options) <= set(given.options)
    assert [given.only_spark({option: "1"}) for option in given.spark_options] == list(
        given.spark_options
    )
    assert given.only_spark(dict.fromkeys(given.own_options, "1")) is None


def test_each_registered_format_has_a_sample() -> None:
    assert SAMPLES.keys() == FILE_FORMATS.keys()
    assert all(isinstance(one, TextFormat) for one in TEXT_FORMATS.values())
    assert all(isinstance(one, TypedFormat) for one in TYPED_FORMATS.values())
    assert all(name == one.name for name, one in FILE_FORMATS.items())


def _written(name: str, path: Path) -> FileState:
    path.write_bytes(SAMPLES[name].content(ROWS))
    return file_state(str(path))


def _read(
    name: str, files: Sequence[FileState], parallelism: Parallelism = ONE_TASK
) -> tuple[pa.Schema, Splits]:
    """Return the columns and the parts of files, as a load reads them."""
    if name in TEXT_FORMATS:
        reading = TEXT_FORMATS[name].reading(SAMPLES[name].options)
        table = TextFiles(tuple(files), reading).split(_scanned, parallelism)
        return table.schema, table.splits
    given, opener = TYPED_FORMATS[name], FileBytes()
    schemas = given.schemas(files, opener)
    columns = unite(schemas, [column.name for column in schemas[0].columns])
    schema = pa.schema([(column.name, settled(column.kind)) for column in columns])
    read = ReadTyped(schema, given.reader(opener))
    return schema, split_files(schemas, read, base=None, parallelism=parallelism.tasks)


def _rows(splits: Splits) -> list[pa.Table]:
    return [pa.Table.from_batches(splits.read(part)) for part in splits.parts]


def _scanned(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return list(map(scan, parts))


def _accepted(name: str, option: str, folder: Path) -> bool:
    """Tell whether a pipeline with some value of an option is valid."""
    for options in _options(name, option):
        if not FILE_FORMATS[name].option_problems(options):
            written = ", ".join(f"{key}: '{value}'" for key, value in options.items())
            document = (
                "version: 1\nname: shop\n"
                "destination: {version: 1, bucket: my-data-lake, region: us-east-1}\n"
                f"source: {{type: FILES, format: {name}, options: {{{written}}}}}\n"
                "tables:\n  - {table: orders, path: orders}\n"
            )
            return problems_of(folder, document) == []
    return False


def _options(name: str, option: str) -> Iterator[Mapping[str, str]]:
    for value in VALUES:
        yield {option: value}
        yield {**SAMPLES[name].beside, option: value}
