"""Iceberg tables as loads leave them, written with pyiceberg: no Spark."""

from __future__ import annotations

import io
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.rules.admission import next_properties
from lakeload_jobs.formats.iceberg.rules.branches import data_file_name, staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState

ATTEMPT = "3f1e0c5a-7c1e-4f1b-9d55-1f0e6e3b2a10"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)


@dataclass(frozen=True)
class IcebergWriter:
    """One table of a catalog that pyiceberg has opened by itself."""

    catalog: Catalog
    namespace: str
    name: str

    def create(self, location: str | None = None, created_by: str = "shop") -> None:
        """Make the namespace and the empty table as a first load does."""
        self.catalog.create_namespace_if_not_exists(self.namespace)
        self.catalog.create_table(
            (self.namespace, self.name),
            SCHEMA,
            location=location,
            properties={"lakeload.created-by": created_by},
        )

    def load(
        self,
        job: str,
        rows: int,
        pipeline: str = "shop",
        fingerprint: str = "f00",
        *,
        known: Any = None,
        ledger: str | None = None,
    ) -> int:
        """Publish a job of so many rows in one commit; return its snapshot. `known` and `ledger`
        are what an incremental load keeps of its files."""
        summary = _summary(job, rows, pipeline)
        table = self.table()
        facts = facts_of(self.read())
        with table.transaction() as transaction:
            transaction.append(rows_of(rows), snapshot_properties=summary)
            made = transaction.table_metadata.current_snapshot()
            assert made is not None
            state = PipelineState(
                "orders", job, made.snapshot_id, fingerprint, {"id": "id"}, known, ledger
            )
            number = made.snapshot_id
            transaction.set_properties(next_properties(facts, pipeline, job, number, state))
        return number

    def stage(self, at: datetime, attempt: str = ATTEMPT) -> str:
        """Leave what an attempt leaves that dies before it publishes."""
        table = self.table()
        head = table.current_snapshot()
        assert head is not None
        name = staging_branch(at, attempt)
        table.manage_snapshots().create_branch(head.snapshot_id, name).commit()
        self.table().append(rows_of(1), snapshot_properties=_summary("dead", 1), branch=name)
        return name

    def complete(self, at: datetime, attempt: str = ATTEMPT, *, commit: bool = False) -> str:
        """Write a data file as a task of an attempt does that began then; return its location.
        `commit` adds it to main, as a publish does that removes the branch."""
        table = self.table()
        name = data_file_name(staging_branch(at, attempt), 0, uuid.uuid4())
        location = f"{table.location()}/data/{name}"
        encoded = io.BytesIO()
        pq.write_table(rows_of(2), encoded)
        with table.io.new_output(location).create() as out:
            out.write(encoded.getvalue())
        if commit:
            table.add_files([location])
        return location

    def table(self) -> Table:
        """Return pyiceberg's own table, read now."""
        return self.catalog.load_table((self.namespace, self.name))

    def read(self) -> ReadTable:
        """Return the table as commands read it."""
        table = self.table()
        metadata = table.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
        return ReadTable(self.namespace, self.name, metadata, table.metadata_location)


def _summary(job: str, rows: int, pipeline: str = "shop") -> dict[str, str]:
    return {
        "lakeload.job-id": job,
        "lakeload.pipeline": pipeline,
        "lakeload.attempt": ATTEMPT,
        "lakeload.rows": str(rows),
        "lakeload.mode": "APPEND",
    }


def rows_of(count: int) -> pa.Table:
    """Return rows."""
    return pa.table({"id": list(range(count)), "name": ["x"] * count})
