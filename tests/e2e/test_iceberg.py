"""A pipeline of Iceberg tables in Glue through the command line: two jobs, one of them twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from lakeload.config.load import load_destination
from lakeload.config.spec import destination_spec
from lakeload.demo.aws import ACCOUNT_ID
from lakeload.demo.aws_policies import destination_policy
from tests.e2e.command import lakeload, sync
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

DATABASE = "supaflow_shop"
TABLES: list[dict[str, Any]] = [
    {
        "table": "visits",
        "path": "visits/*.csv",
        "partition_by": ["day(at)"],
        "columns": {"types": {"at": "timestamp"}},
        "table_properties": {"write.parquet.compression-codec": "gzip"},
    },
    {
        "table": "customers",
        "path": "customers/*.csv",
        "mode": "UPSERT",
        "primary_key": ["id"],
        "cursor": "version",
        "deleted_when": "gone",
        "deletes": "DELETE",
    },
]
CSV = {"header": True, "inferSchema": True}


@pytest.fixture
def folder(lake: Lake, tmp_path: Path) -> Iterator[Path]:
    """A folder with the documents, the first files, and a role that is allowed what they need."""
    place = lake.server.endpoint
    lake.write_pipeline(
        tmp_path,
        tables=TABLES,
        source={"type": "FILES", "format": "CSV", "options": CSV, "incremental": True},
        destination={
            "endpoints": {"s3": place, "sts": place, "glue": place},
            "table_format": "ICEBERG",
            "glue_database_prefix": "supaflow",
        },
    )
    allow(lake, tmp_path / "destination.yml")
    write(tmp_path / "visits" / "1.csv", "page,at", "a,2026-03-01T10:00:00Z")
    write(
        tmp_path / "customers" / "1.csv",
        "id,name,version,gone",
        "1,new,2,false",
        "1,old,1,false",
        "2,b,1,false",
        "3,never,1,true",
    )
    yield tmp_path
    glue = glue_of(lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def allow(lake: Lake, path: Path) -> None:
    """Give the lake's role what `policy` writes for a destination.

    Where AWS checks a call on a database against that database, the emulator looks for a table of
    its name.
    """
    policy = destination_policy(destination_spec(load_destination(path, {})))
    table = f"arn:aws:glue:{lake.seeded.region}:{ACCOUNT_ID}:table/{DATABASE}"
    emulators = {"Effect": "Allow", "Action": "glue:*Database", "Resource": table}
    statements = policy["Statement"]
    assert isinstance(statements, list)
    whole = {**policy, "Statement": [*statements, emulators]}
    lake.server.admin.put_role_policy(lake.seeded.role, whole)


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def table(lake: Lake, name: str) -> Table:
    """Return a table as a client of its own reads it, with the administrator's keys."""
    place = lake.server.endpoint
    keys = {"access-key-id": "test", "secret-access-key": "test", "region": lake.seeded.region}
    catalog = load_catalog(
        "reader",
        **{"type": "glue", "glue.endpoint": place, "s3.endpoint": place},
        **{f"{of}.{key}": value for of in ("glue", "s3") for key, value in keys.items()},
    )
    return catalog.load_table((DATABASE, name))


def rows(lake: Lake, name: str, *columns: str) -> list[tuple[Any, ...]]:
    found = table(lake, name).scan().to_arrow().select(list(columns)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_tables_are_appended_to_and_upserted_by_jobs_that_count_once(
    lake: Lake, folder: Path
) -> None:
    planned = lakeload(lake, folder, "plan", "pipeline.yml")
    assert planned.code == 0, planned.stderr
    assert "UPSERT" in planned.stdout

    first = sync(lake, folder, "--job-id", "job-1")
    assert first.code == 0, first.stderr + first.stdout
    assert {name: found["status"] for name, found in first.tables.items()} == {
        "visits": "LOADED",
        "customers": "LOADED",
    }
    visits = table(lake, "visits")
    assert visits.current_snapshot().snapshot_id == first.tables["visits"]["snapshot_id"]  # type: ignore[union-attr]
    assert [str(field.transform) for field in visits.spec().fields] == ["day"]
    assert visits.properties["write.parquet.compression-codec"] == "gzip"
    assert rows(lake, "visits", "page", "_supa_job_id") == [("a", "job-1")]
    assert rows(lake, "customers", "id", "name") == [(1, "new"), (2, "b")]

    again = sync(lake, folder, "--job-id", "job-1")
    assert again.code == 0, again.stderr
    assert {found["status"] for found in again.tables.values()} == {"NO_OP"}
    assert again.document["log"] is None, "Spark was started for nothing"
    assert again.tables["visits"]["snapshot_id"] == first.tables["visits"]["snapshot_id"]

    write(folder / "visits" / "2.csv", "page,at", "b,2026-03-02T10:00:00Z")
    write(
        folder / "customers" / "2.csv", "id,name,version,gone", "1,newer,3,false",
        "2,gone,2,true", "4,d,1,false",
    )  # fmt: skip
    second = sync(lake, folder, "--job-id", "job-2")
    assert second.code == 0, second.stderr + second.stdout
    assert second.tables["customers"]["changes"] == {"inserted": 1, "updated": 1, "deleted": 1}
    assert rows(lake, "customers", "id", "name") == [(1, "newer"), (4, "d")]
    assert rows(lake, "visits", "page", "_supa_job_id") == [("a", "job-1"), ("b", "job-2")]

    flags = ("--older-than", "0", "--only", "compact,expire,orphans", "--output", "json")
    maintained = lakeload(lake, folder, "maintain", "pipeline.yml", *flags)
    assert maintained.code == 0, maintained.stderr + maintained.stdout
    found = {
        name: {step["step"]: (step["status"], step["snapshots"]) for step in one["steps"]}
        for name, one in maintained.tables.items()
    }
    assert found["visits"]["expire"] == ("WOULD_DO", len(table(lake, "visits").snapshots()) - 1)
    # Most of the rows of the customers' first file are deleted.
    compact = {name: steps["compact"][0] for name, steps in found.items()}
    assert compact == {"visits": "NOTHING_TO_DO", "customers": "WOULD_DO"}
    assert {found[name]["orphans"][0] for name in found} == {"NOTHING_TO_DO"}
    assert not maintained.document["applied"]

    other = sync(lake, folder, "--job-id", "job-2", "--full-refresh", "--table", "customers")
    assert other.code == 2, "the same id with other settings is no repetition"
