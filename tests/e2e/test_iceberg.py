"""A pipeline of Iceberg tables in Glue through the command line: jobs, one of them twice, the
maintenance of what they made, and a full refresh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from lakeload.policy.iam import PolicyOptions, role_policies
from lakeload.policy.model import PolicyDocument
from tests.e2e.command import Ended, lakeload, sync
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

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
PROMISED = ("files", "files_after", "bytes", "snapshots")


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
        "5,e,1,false",
    )
    yield tmp_path
    glue = glue_of(lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def allow(lake: Lake, path: Path, *, maintain: bool = False, without: str = "") -> None:
    """Give the lake's role what `policy` writes for a destination, `--with maintain` or not, but
    the action `without`.

    Where AWS checks a call on a database against that database, the emulator looks for a table of
    its name.
    """
    destination = destination_spec(load_destination(path, {}))
    documents = role_policies(destination, PolicyOptions(maintain=maintain))
    table = f"arn:aws:glue:{lake.seeded.region}:{ACCOUNT_ID}:table/{DATABASE}"
    emulators = {"Effect": "Allow", "Action": "glue:*Database", "Resource": table}
    statements = [one for document in documents for one in document.statements]
    whole = PolicyDocument("all", tuple(statements)).as_json()
    listed = whole["Statement"]
    assert isinstance(listed, list)
    for statement in listed if without else ():
        actions = statement["Action"]
        statement["Action"] = [
            one for one in ([actions] if isinstance(actions, str) else actions) if one != without
        ]
    listed = [statement for statement in listed if statement["Action"]]
    lake.server.admin.put_role_policy(
        lake.seeded.role, {**whole, "Statement": [*listed, emulators]}
    )


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


def rows(lake: Lake, name: str, *columns: str, at: Ended | None = None) -> list[tuple[Any, ...]]:
    """Return rows as they are now, or as a sync left them."""
    snapshot = at.tables[name]["snapshot_id"] if at else None
    scan = table(lake, name).scan(snapshot_id=snapshot)
    found = scan.to_arrow().select(list(columns)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def loaded(lake: Lake, folder: Path, *arguments: str) -> Ended:
    """Run a sync that has to succeed."""
    ended = sync(lake, folder, *arguments)
    assert ended.code == 0, ended.stderr + ended.stdout
    return ended


def arrive(folder: Path) -> None:
    """Write the second files: a page, and a change, a deletion and a new customer."""
    write(folder / "visits" / "2.csv", "page,at", "b,2026-03-02T10:00:00Z")
    write(
        folder / "customers" / "2.csv", "id,name,version,gone", "1,newer,3,false",
        "2,gone,2,true", "4,d,1,false",
    )  # fmt: skip


MERGED = [(1, "newer"), (4, "d"), (5, "e")]
"""The customers of both files."""


def test_iceberg_job_run_twice_loads_new_tables_once(lake: Lake, folder: Path) -> None:
    first = loaded(lake, folder, "--job-id", "job-1")
    assert {name: found["status"] for name, found in first.tables.items()} == {
        "visits": "LOADED",
        "customers": "LOADED",
    }
    visits = table(lake, "visits")
    assert visits.current_snapshot().snapshot_id == first.tables["visits"]["snapshot_id"]  # type: ignore[union-attr]
    assert [str(field.transform) for field in visits.spec().fields] == ["day"]
    assert visits.properties["write.parquet.compression-codec"] == "gzip"
    assert rows(lake, "visits", "page", "_supa_job_id") == [("a", "job-1")]
    assert rows(lake, "customers", "id", "name") == [(1, "new"), (2, "b"), (5, "e")]

    again = sync(lake, folder, "--job-id", "job-1")
    assert again.code == 0, again.stderr
    assert {found["status"] for found in again.tables.values()} == {"NO_OP"}
    assert again.document["log"] is None, "Spark was started for nothing"
    assert again.tables["visits"]["snapshot_id"] == first.tables["visits"]["snapshot_id"]


def test_iceberg_tables_are_appended_and_upserted(lake: Lake, folder: Path) -> None:
    loaded(lake, folder, "--job-id", "job-1")
    arrive(folder)
    second = loaded(lake, folder, "--job-id", "job-2")
    assert second.tables["customers"]["changes"] == {
        "inserted": 1,
        "updated": 1,
        "deleted": 1,
        "unchanged": 0,
        "ignored": 0,
    }
    assert rows(lake, "customers", "id", "name") == MERGED
    assert rows(lake, "visits", "page", "_supa_job_id") == [("a", "job-1"), ("b", "job-2")]
    other = sync(lake, folder, "--job-id", "job-2", "--full-refresh", "--table", "customers")
    assert other.code == 2, "the same id with other settings is no repetition"


def test_maintain_apply_does_what_its_dry_run_listed_and_keeps_the_latest_load(
    lake: Lake, folder: Path
) -> None:
    only = ("--table", "customers")
    first = loaded(lake, folder, "--job-id", "job-1", *only)
    arrive(folder)
    second = loaded(lake, folder, "--job-id", "job-2", *only)
    allow(lake, folder / "destination.yml", maintain=True)
    before = len(table(lake, "customers").snapshots())
    said, did = (maintain(lake, folder, *apply) for apply in ((), ("--apply",)))
    # Most of the rows of the first file are deleted, and both are small. The latest load stays.
    assert (said["compact"]["status"], said["compact"]["files"]) == ("WOULD_DO", 2)
    assert said["expire"]["status"] == "WOULD_DO"
    assert said["expire"]["snapshots"] == before - 1
    for name, step in said.items():
        assert did[name]["status"] == "DONE"
        assert [did[name][what] for what in PROMISED] == [step[what] for what in PROMISED]
    left = {one.snapshot_id for one in table(lake, "customers").snapshots()}
    assert second.tables["customers"]["snapshot_id"] in left
    assert first.tables["customers"]["snapshot_id"] not in left
    assert rows(lake, "customers", "id", "name") == MERGED


def test_full_refresh_leaves_only_rows_of_the_current_files(lake: Lake, folder: Path) -> None:
    arrive(folder)
    before = loaded(lake, folder, "--job-id", "job-1")
    assert rows(lake, "customers", "id", "name") == MERGED
    # What is in the folder now is all that is in the table afterwards: files are known no longer.
    (folder / "customers" / "1.csv").unlink()
    loaded(lake, folder, "--job-id", "job-2", "--full-refresh", "--table", "customers")
    assert rows(lake, "customers", "id", "name") == [(1, "newer"), (4, "d")]
    assert rows(lake, "customers", "id", "name", at=before) == MERGED
    nothing = sync(lake, folder)
    assert {found["status"] for found in nothing.tables.values()} == {"NO_OP"}
    assert nothing.document["log"] is None, "Spark was started for nothing"


def maintain(lake: Lake, folder: Path, *flags: str) -> dict[str, dict[str, Any]]:
    """Run `lakeload maintain` for the customers, and return what it says of each step."""
    steps = ("--only", "compact,expire", "--older-than", "0", "--table", "customers")
    ended = lakeload(lake, folder, "maintain", "pipeline.yml", *steps, "--output", "json", *flags)
    assert ended.code == 0, ended.stderr + ended.stdout
    assert ended.document["applied"] == ("--apply" in flags)
    return {step["step"]: step for step in ended.tables["customers"]["steps"]}


def test_generated_policy_allows_quarantine_and_a_missing_action_is_named(
    lake: Lake, folder: Path
) -> None:
    place = lake.server.endpoint
    lake.write_pipeline(
        folder,
        tables=TABLES[:1],
        source={"type": "FILES", "format": "CSV", "options": CSV, "incremental": True},
        destination={
            "endpoints": {"s3": place, "sts": place, "glue": place},
            "table_format": "ICEBERG",
            "glue_database_prefix": "supaflow",
        },
        on_bad_value="QUARANTINE",
        max_rejected=1,
    )
    loaded(lake, folder)
    write(folder / "visits" / "2.csv", "page,at", "b,2026-03-02T10:00:00Z", "c,never")

    # The side table is made by the first load with rejected records.
    allow(lake, folder / "destination.yml", without="glue:CreateTable")
    failed = sync(lake, folder)
    before = rows(lake, "visits", "page")
    allow(lake, folder / "destination.yml")
    done = loaded(lake, folder)

    assert failed.code != 0
    assert "glue:CreateTable" in str(failed.tables["visits"]["error"])
    assert before == [("a",)]
    assert (done.tables["visits"]["rows"], done.tables["visits"]["rejected"]) == (1, 1)
    assert rows(lake, "visits", "page") == [("a",), ("b",)]
    assert rows(lake, "visits_rejected", "column_value") == [("never",)]
