"""`detect_deletes` and `max_deleted`: where they are allowed, and what they come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.spec import RejectLimit
from tests.unit.documents.documents import messages, pipeline, problems_of

SOURCE = """\
version: 1
name: shop
destination: {version: 1, bucket: my-bucket, region: eu-central-1, table_format: %s}
destination_prefix: lake
source: {type: JDBC, url: postgresql://db/shop}
%stables:
  - {table: public.orders, %s}
"""


def document(table: str, more: str = "", table_format: str = "PARQUET") -> str:
    """Return a pipeline with one table."""
    return SOURCE % (table_format, more, table)


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ("detect_deletes: true", RejectLimit(percent=30)),
        ("detect_deletes: true, max_deleted: 100 %", RejectLimit(percent=100)),
        ("detect_deletes: true, max_deleted: 5", RejectLimit(rows=5)),
        ("detect_deletes: false", None),
    ],
)
def test_the_limit_is_in_the_spec(tmp_path: Path, given: str, limit: RejectLimit | None) -> None:
    (spec,) = table_specs(pipeline(tmp_path, document(f"primary_key: [id], {given}")))

    assert spec.max_deleted == limit


KEYED = "primary_key: [id], detect_deletes: true"


@pytest.mark.parametrize(
    ("table", "more", "table_format", "message"),
    [
        ("primary_key: [], detect_deletes: true", "", "PARQUET", "needs `primary_key`"),
        (f"{KEYED}, mode: OVERWRITE", "", "ICEBERG", "no effect with `mode: OVERWRITE`"),
        ("max_deleted: 1", "", "PARQUET", "`max_deleted` has no effect without"),
        (f"{KEYED}, max_deleted: many", "", "PARQUET", "neither a number of records nor a"),
        (KEYED, "tracking_columns: NONE\n", "PARQUET", "`_supa_synced` is missing"),
        (KEYED, "tracking_columns: [_supa_job_id]\n", "ICEBERG", "`_supa_synced` is missing"),
        (f"{KEYED}, mode: UPSERT", "tracking_columns: [_supa_job_id]\n", "ICEBERG",
         "`_supa_deleted` is missing"),
        (f"{KEYED}, deletes: DELETE", "", "ICEBERG", "no effect with `mode: APPEND`"),
        (f"{KEYED}, deletes: MARK", "", "PARQUET", "setting of table_format ICEBERG"),
        ("on_same_key: WARN", "", "ICEBERG", "`on_same_key` has no effect with `mode: APPEND`"),
        (
            "mode: UPSERT, on_append_again: ALLOW",
            "",
            "ICEBERG",
            "`on_append_again` has no effect with `mode: UPSERT`",
        ),
        ("on_same_key: WARN", "", "PARQUET", "setting of table_format ICEBERG"),
    ],
)  # fmt: skip
def test_settings_that_contradict_are_errors(
    tmp_path: Path, table: str, more: str, table_format: str, message: str
) -> None:
    found = messages(problems_of(tmp_path, document(table, more, table_format)))

    assert len(found) == 1, found
    assert message in found[0]


@pytest.mark.parametrize(
    ("table", "more"),
    [
        (f"{KEYED}, mode: UPSERT, deletes: DELETE", "tracking_columns: [_supa_job_id]\n"),
        (f"{KEYED}, mode: UPSERT, deletes: MARK, deleted_when: gone", ""),
        (KEYED, ""),
    ],
)
def test_what_iceberg_tables_take(tmp_path: Path, table: str, more: str) -> None:
    assert messages(problems_of(tmp_path, document(table, more, "ICEBERG"))) == []


def test_only_databases_have_it(tmp_path: Path) -> None:
    text = document("format: CSV, paths: [a.csv], detect_deletes: true").replace(
        "{type: JDBC, url: postgresql://db/shop}", "{type: FILES}"
    )

    assert any("`detect_deletes`" in message for message in messages(problems_of(tmp_path, text)))
