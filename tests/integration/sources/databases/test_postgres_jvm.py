"""Tables of PostgreSQL that Spark's JDBC source reads, in the same snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.databases.engines.postgres.snapshot import ExportedSnapshot
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database
from tests.integration.sources.databases.test_postgres_loads import ORDERS, small_splits
from tests.servers.postgres import PASSWORD

__all__ = ["small_splits"]

# The reader is the same below both formats; one of them shows that Iceberg takes its rows.
parquet_only = pytest.mark.parametrize("world", ["parquet"], indirect=True)


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Write what Spark's history server and its web pages show of the block's jobs."""
    jvm: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext._jsc
    conf = context.sc().getConf().clone().set("spark.eventLog.compress", "false")
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "log",
        jvm.scala.Option.empty(),
        jvm.java.net.URI(folder.as_uri()),
        conf,
        context.hadoopConfiguration(),
    )
    listener.start()
    context.sc().addSparkListener(listener)
    try:
        yield
        context.sc().listenerBus().waitUntilEmpty()
    finally:
        context.sc().removeSparkListener(listener)
        listener.stop()


@pytest.mark.usefixtures("small_splits")
def test_all_partitions_read_the_rows_of_one_snapshot_and_nothing_shows_the_password(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    database.run(ORDERS + """ALTER TABLE orders ADD "ID" int DEFAULT 5;""")
    split = ExportedSnapshot.parts

    def then_change(self: ExportedSnapshot, *about: Any) -> Any:
        parts = split(self, *about)
        assert len(parts) > 1
        database.run("DELETE FROM orders WHERE id <= 500; UPDATE orders SET note = 'changed'")
        return parts

    monkeypatch.setattr(ExportedSnapshot, "parts", then_change)
    columns = ColumnsSpec(types={"ratio": "double"})

    logs = tmp_path / "logs"
    logs.mkdir()
    with event_log(world.spark, logs):
        result = load(world, database.table(world, columns=columns), reader="JVM")

    assert result.error is None, result.error
    assert (result.status, result.rows, result.index) == ("LOADED", 1000, "dense")
    assert result.reader == "jvm"
    rows = sorted(world.rows(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(1, 1001))
    assert sorted(row["_supa_index"] for row in rows) == list(range(1, 1001))
    assert (rows[6]["note"], rows[6]["free"], rows[6]["ID_1"]) == ("note 7", "NaN", 5)
    files = [path for path in logs.rglob("*") if path.is_file()]
    shown = "".join(path.read_text(encoding="utf-8") for path in files)
    assert "JDBCRelation" in shown
    assert PASSWORD not in shown
    assert PASSWORD not in repr(result)


@parquet_only
@pytest.mark.parametrize("wrong", [1, -1])
def test_rows_that_are_not_those_that_were_counted_are_not_committed(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    database.run(ORDERS)
    split = ExportedSnapshot.parts

    def miscounted(self: ExportedSnapshot, *about: Any) -> Any:
        (part,) = split(self, *about)
        return (replace(part, rows=part.rows + wrong),)

    monkeypatch.setattr(ExportedSnapshot, "parts", miscounted)

    result = load(world, database.table(world), reader="JVM")

    assert result.error is not None
    assert f"{1000 + wrong:,} rows were counted in the snapshot" in result.error.message
    assert result.error.retryable
    assert (world.rows(), world.left()) == ([], [])


@parquet_only
def test_bad_values_and_errors_of_the_server_are_those_of_the_other_reader(
    world: World, database: Database
) -> None:
    database.run(
        "CREATE TABLE orders AS SELECT n AS a, 'infinity'::date AS day FROM generate_series(1, 2) n"
        ";"
        "CREATE VIEW divided AS SELECT 1 / (a - a) AS b FROM orders"
    )

    failed = load(world, database.table(world), reader="JVM")
    divided = load(world, database.table(world, "divided"), reader="JVM")
    table = database.table(world, on_bad_value="NULL")
    loaded = load(world, table, reader="JVM")

    assert failed.error is not None
    assert "column `day`: the value `infinity` cannot be loaded" in failed.error.message
    assert divided.error is not None
    assert divided.error.message.endswith("division by zero (SQLSTATE 22012)")
    assert divided.error.hint == "leave the column out with `columns.exclude`, or fix the view"
    assert any("2 values" in warning for warning in loaded.warnings), loaded.warnings
