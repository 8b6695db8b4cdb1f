"""`lakeload policy --for` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.commands.command import lakeload

DESTINATION = """\
version: 1
bucket: my-data-lake
region: eu-central-1
credentials:
  role_arn: arn:aws:iam::123456789012:role/lake
  external_id: {env: LAKELOAD_EXTERNAL_ID}
glue_database_prefix: supaflow
parquet: {update_glue_catalog: true, partition_strategy: DAY}
"""
PIPELINE = """\
version: 1
name: shop
destination: destination.yml
destination_prefix: Shop
source: {type: FILES, format: CSV}
tracking_columns: [_supa_job_id]
tables:
  - {table: Größe, path: a.csv}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a pipeline and its destination."""
    (tmp_path / "destination.yml").write_text(DESTINATION, encoding="utf-8")
    (tmp_path / "pipeline.yml").write_text(PIPELINE, encoding="utf-8")
    (tmp_path / "a.csv").write_text("id\n1\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of `lakeload policy`."""
    ended = lakeload("policy", *arguments, folder=folder, LAKELOAD_EXTERNAL_ID="s3cret-id")
    assert "s3cret-id" not in ended.stdout + ended.stderr
    return ended.returncode, ended.stdout, ended.stderr


def test_queries_have_the_names_and_the_tracking_columns_of_the_pipeline(folder: Path) -> None:
    code, stdout, stderr = run(folder, "pipeline.yml", "--for", "athena")
    assert (code, stderr) == (0, "")
    day = stdout.rpartition("lakeload_partition = ")[2]
    assert stdout.replace(day, "…") == (
        "-- supaflow_shop.grosse: how many rows each job brought\n"
        "-- A job that brought no row has none here.\n"
        "SELECT _supa_job_id, count(*) AS row_count\n"
        'FROM "supaflow_shop"."grosse"\n'
        "GROUP BY _supa_job_id\n"
        "ORDER BY row_count DESC;\n"
        "\n"
        "-- supaflow_shop.grosse: the loads of one day\n"
        "-- `lakeload_partition` is text, the UTC time of the load. Name it whenever you\n"
        "-- can: Athena bills what it reads, and `_supa_synced` alone makes it read\n"
        "-- every file.\n"
        "SELECT *\n"
        'FROM "supaflow_shop"."grosse"\n'
        "WHERE lakeload_partition = …"
    )


def test_grants_as_json_are_all_of_stdout(folder: Path) -> None:
    user = "arn:aws:iam::123456789012:user/ana"
    code, stdout, stderr = run(
        folder, "pipeline.yml", "--for", "lake-formation", "--read-only", "--principal", user
    )
    assert code == 0
    entries = json.loads(stdout)["BatchGrantPermissions"]["Entries"]
    assert {entry["Principal"]["DataLakePrincipalIdentifier"] for entry in entries} == {user}
    assert "--cli-input-json" in stderr


def test_policy_option_unused_by_an_engine_is_rejected(folder: Path) -> None:
    given = ("--for", "athena", "--format", "terraform", "--only", "s3", "--with", "reset")
    code, stdout, stderr = run(folder, "pipeline.yml", *given)
    assert (code, stdout) == (2, "")
    assert "`--for athena` does not take `--only`, `--format`, `--with`" in stderr


def test_grants_do_not_go_to_a_whole_account(folder: Path) -> None:
    given = ("--for", "lake-formation", "--principal", "123456789012")
    code, _, stderr = run(folder, "destination.yml", *given)
    assert code == 2
    assert "`arn:aws:iam::123456789012:root` is an account" in stderr


def test_the_user_of_a_database_is_written_for_its_pipeline(folder: Path) -> None:
    (folder / "pipeline.yml").write_text(
        "version: 1\nname: shop\ndestination: destination.yml\n"
        "source: {type: JDBC, url: 'postgresql://loader@db.example.com/shop'}\n"
        "tables: [{table: public.orders}]\n"
    )

    ended = lakeload("policy", str(folder / "pipeline.yml"), "--for", "postgres")

    assert ended.returncode == 0, ended.stderr
    assert 'GRANT SELECT ON "public"."orders" TO "loader";' in ended.stdout
    other = lakeload("policy", str(folder / "pipeline.yml"), "--for", "mysql")
    assert (other.returncode, other.stdout) == (2, "")
    assert "whose source is MySQL or MariaDB" in other.stderr
