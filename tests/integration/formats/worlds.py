"""A table of any format: loads into it, and what an independent reader finds in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import InputFile
from pyspark.sql import SparkSession

from lakeload_jobs.contract.result import RunResult, TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.iceberg.load.write import StagedIceberg
from lakeload_jobs.formats.parquet.load.write import StagedParquet
from tests.inputs import files_of
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.jobs.conftest import Job

PLAIN = {"schema_changes": "ADD_COLUMNS", "nested": "NATIVE", "table_handling": "APPEND"}


class World(Protocol):
    """One table, `orders`, in a place of the test's own."""

    spark: SparkSession

    def file(self, name: str, rows: list[dict[str, Any]]) -> str:
        """Write a Parquet file and return its path."""

    def folder(self) -> str:
        """Return the folder of the files."""

    def table(self, *paths: str, **changes: Any) -> TableSpec:
        """Return the spec of the table."""

    def spec(self, table: TableSpec, **changes: Any) -> JobSpec:
        """Return the spec of a new job."""

    def run(self, spec: JobSpec) -> RunResult:
        """Run a job."""

    def rows(self, name: str = "orders") -> list[dict[str, Any]]:
        """Return all visible rows of a table, with their tracking columns."""

    def files(self, name: str = "orders") -> list[bytes]:
        """Return the visible data files of a table."""

    def state(self) -> Any:
        """Return the state that the newest commit holds for the pipeline."""

    def left(self) -> list[str]:
        """Return what a load that ended has left open: uploads, or branches."""

    def before_commit(self, act: Callable[[], object]) -> None:
        """Do something once, when the next load has staged and is about to commit."""


def load(world: World, table: TableSpec, **changes: Any) -> TableResult:
    """Run a new job with the table and return its result, whatever it is."""
    result = world.run(world.spec(table, **changes))
    assert result.error is None, result.error
    return result.tables[0]


class ParquetWorld:
    """A table of Parquet files."""

    def __init__(self, job: Job, patch: Callable[[object, str, object], None]) -> None:
        self.spark = job.spark
        self._job = job
        self._patch = patch

    def file(self, name: str, rows: list[dict[str, Any]]) -> str:
        return _write(self._job.file(name, b""), rows)

    def folder(self) -> str:
        return str(self._job.folder / "input")

    def table(self, *paths: str, **changes: Any) -> TableSpec:
        return self._job.table(*paths, file_format="PARQUET", **changes)

    def spec(self, table: TableSpec, **changes: Any) -> JobSpec:
        return self._job.spec(table, **changes)

    def run(self, spec: JobSpec) -> RunResult:
        return self._job.run(spec)

    def rows(self, name: str = "orders") -> list[dict[str, Any]]:
        return [row for body in self.files(name) for row in _read(body)]

    def files(self, name: str = "orders") -> list[bytes]:
        keys = [key for key in self._job.lake.data_keys() if f"/{name}/" in key]
        return [self._job.lake.read(key) for key in keys]

    def state(self) -> Any:
        lake = self._job.lake
        log = [key for key in lake.keys() if "/log/" in key]  # noqa: SIM118
        records = [json.loads(lake.read(key)) for key in log if key.endswith(".json")]
        changes = [record["state"] for record in records if record.get("state")]
        return changes[-1]["after"] if changes else None

    def left(self) -> list[str]:
        return self._job.lake.uploads()

    def before_commit(self, act: Callable[[], object]) -> None:
        self._patch(StagedParquet, "commit", _once_before(act, StagedParquet.commit))


class IcebergWorld:
    """An Iceberg table in a REST catalog."""

    def __init__(self, loads: Loads, patch: Callable[[object, str, object], None]) -> None:
        self.spark = loads.spark
        self._loads = loads
        self._patch = patch

    def file(self, name: str, rows: list[dict[str, Any]]) -> str:
        (self._loads.folder / "input").mkdir(exist_ok=True)
        return _write(str(self._loads.folder / "input" / name), rows)

    def folder(self) -> str:
        return str(self._loads.folder / "input")

    def table(self, *paths: str, **changes: Any) -> TableSpec:
        return self._loads.table(*paths, **changes)

    def spec(self, table: TableSpec, **changes: Any) -> JobSpec:
        return self._loads.spec(table, **changes)

    def run(self, spec: JobSpec) -> RunResult:
        return self._loads.run(spec)

    def rows(self, name: str = "orders") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._loads.read(name).scan().to_arrow().to_pylist()
        return found

    def files(self, name: str = "orders") -> list[bytes]:
        table = self._loads.read(name)
        paths = [task.file.file_path for task in table.scan().plan_files()]
        return [_content(table.io.new_input(path)) for path in paths]

    def state(self) -> Any:
        text = self._loads.read().properties["lakeload.state.shop"]
        return json.loads(text)["state"]

    def left(self) -> list[str]:
        return [name for name in self._loads.read().metadata.refs if name != "main"]

    def before_commit(self, act: Callable[[], object]) -> None:
        self._patch(StagedIceberg, "commit", _once_before(act, StagedIceberg.commit))


def incremental(world: World, **changes: Any) -> TableSpec:
    """Return a table that is loaded from every new file of the world's folder."""
    spec = world.table(f"{world.folder()}/*.parquet", **changes)
    given = replace(files_of(spec), incremental=True, folder=world.folder())
    return replace(spec, input=given)


def _once_before(act: Callable[[], object], then: Callable[..., Any]) -> Callable[..., Any]:
    done: list[bool] = []

    def commit(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(True)
            act()
        return then(*arguments, **named)

    return commit


def _content(file: InputFile) -> bytes:
    with file.open() as stream:
        return stream.read()


def _write(path: str, rows: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def _read(body: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(pa.BufferReader(body)).to_pylist()
    return found
