"""Tables that one of Spark's own readers reads (`source: {type: SPARK}`), into both formats."""

from __future__ import annotations

import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import ColumnsSpec, SparkInput, TableSpec
from lakeload_jobs.formats.registry import FORMATS
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.plan import look
from lakeload_jobs.sources.registry import Sources
from tests.integration.formats.worlds import World, load


def table(
    world: World, kind: str, *paths: Path, options: dict[str, str] | None = None, **changes: Any
) -> TableSpec:
    """Return the table with what a reader of Spark reads."""
    given = SparkInput(kind, tuple(map(str, paths)), options or {})
    return replace(world.table("none", **changes), input=given)


def written(world: World, name: str, text: str) -> Path:
    folder = Path(world.folder())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_spark_format_is_loaded_once_with_the_semantics_of_spark(world: World) -> None:
    # Spark takes a time of day for a timestamp of today, as lakeload's own reader never does.
    path = written(world, "a b [1].csv", "id,code\n1,007\n2,008\n")
    options = {"header": "true", "inferSchema": "true"}
    spec = world.spec(table(world, "csv", path, options=options))

    first = world.run(spec).tables[0]
    again = world.run(replace(spec, attempt_id=str(uuid.uuid4()))).tables[0]

    assert first.error is None
    assert (first.status, first.rows, first.index, first.reader) == ("LOADED", 2, "sparse", "jvm")
    assert (again.status, again.rows) == ("NO_OP", 2)
    assert sorted((row["id"], row["code"]) for row in world.rows()) == [(1, 7), (2, 8)]
    assert world.left() == []


def test_records_without_a_column_are_refused_and_no_records_load_nothing(world: World) -> None:
    refused = load(world, table(world, "json", written(world, "a.json", "{}\n{}\n")))
    nothing = load(world, table(world, "json", written(world, "b.json", "")))

    assert refused.error is not None
    assert refused.error.message == "the source has rows but no columns"
    assert (nothing.error, nothing.rows) == (None, 0)


def test_spark_reader_unknown_to_lakeload_loads_its_types(world: World) -> None:
    path = written(world, "lines.txt", "10\n20\n")
    columns = ColumnsSpec(types={"value": "bigint"}, rename={"value": "amount"})

    result = load(world, table(world, "text", path, columns=columns, where="value > 10"))

    assert (result.status, result.rows) == ("LOADED", 1)
    assert [row["amount"] for row in world.rows()] == [20]


def test_a_bad_value_of_a_declared_type_fails_the_load(world: World) -> None:
    path = written(world, "lines.txt", "10\nx\n")

    result = load(world, table(world, "text", path, columns=ColumnsSpec(types={"value": "int"})))

    assert result.error is not None
    assert "`value`" in result.error.message


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("no_such_format", "a.txt", "Spark has no format `no_such_format`"),
        ("csv", "missing.csv", "there is no file or folder"),
        ("parquet", "a.txt", "a.txt"),
    ],
)
def test_spark_reader_failure_is_an_error_of_the_table(
    world: World, kind: str, name: str, message: str
) -> None:
    path = written(world, "a.txt", "10\n")

    result = load(world, table(world, kind, path.with_name(name)))

    assert result.status == "FAILED"
    assert result.error is not None
    assert message in result.error.message


def test_a_plan_shows_the_columns(world: World) -> None:
    spec = world.spec(table(world, "text", written(world, "a.txt", "10\n")))
    aws = AwsSession(spec.destination)
    session = FORMATS[spec.destination.table_format].connect(world.spark, spec, aws)
    with closing(session):
        (found,) = look(session, Sources(spec, aws), spec, cast("EventLog", _Quiet()))

    assert found.error is None
    assert found.columns["value"] == "string"


class _Quiet:
    def emit(self, *event: Any, **fields: Any) -> None:
        """Drop an event."""
