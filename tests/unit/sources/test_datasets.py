"""Names of datasets, compared with the naming helpers of OpenLineage's client."""

from __future__ import annotations

import pytest
from openlineage.client.naming.dataset import (
    S3,
    DatasetNaming,
    LocalFileSystem,
    MySQL,
    Oracle,
    Postgres,
)

from lakeload.sources.datasets import Dataset, dataset_of_table, dataset_of_url, datasets_of_paths
from lakeload_jobs.contract.spec import JdbcInput


def named(rule: DatasetNaming) -> tuple[str, str]:
    return rule.get_namespace(), rule.get_name()


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/data/orders.csv", LocalFileSystem("/data/orders.csv")),
        ("/data/orders/", LocalFileSystem("/data/orders")),
        ("/data/orders/*.csv", LocalFileSystem("/data/orders")),
        ("/data/orders/**/*.csv.gz", LocalFileSystem("/data/orders")),
        ("/data/orders-*.csv", LocalFileSystem("/data/orders-*.csv")),
        ("/data/2026-??/orders.csv", LocalFileSystem("/data/2026-??/orders.csv")),
        ("s3://landing/shop/orders/*", S3("landing", "shop/orders")),
        ("s3://landing/shop/orders-*.json", S3("landing", "shop/orders-*.json")),
        ("s3://landing/*.csv", S3("landing", "/")),
    ],
)
def test_dataset_of_a_path_is_its_folder_file_or_pattern(path: str, rule: DatasetNaming) -> None:
    (found,) = datasets_of_paths((path, path))
    assert (found.namespace, found.name) == named(rule)


def read(database: str, **changes: object) -> JdbcInput:
    given = {"host": "db.example", "port": 5432, "name": "shop", "schema": "sales", "table": "t"}
    return JdbcInput(database=database, **{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (read("POSTGRESQL"), Postgres("db.example", "5432", "shop", "sales", "t")),
        (read("MYSQL", port=3306), MySQL("db.example", "3306", "sales", "t")),
        (read("ORACLE", port=1521), Oracle("db.example", "1521", "shop", "sales", "t")),
    ],
)
def test_dataset_of_a_database_is_named_by_the_rules(given: JdbcInput, rule: DatasetNaming) -> None:
    found = dataset_of_table(given)
    assert found is not None
    assert (found.namespace, found.name) == named(rule)


def test_dataset_of_sql_server_has_database_schema_and_table() -> None:
    found = dataset_of_table(read("SQLSERVER", port=1433))
    assert found == Dataset("mssql://db.example:1433", "shop.sales.t")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:db2://h:50000/SHOP", Dataset("db2://h:50000", "SHOP.sales.t")),
        ("jdbc:teradata://h;LOGMECH=TD2", Dataset("teradata://h", "sales.t")),
        ("jdbc:x://user:secret@h/SHOP", None),
        ("jdbc:h2:mem:shop", None),
    ],
)
def test_dataset_of_another_database_needs_a_host_without_a_login(
    url: str, expected: Dataset | None
) -> None:
    assert dataset_of_table(read("OTHER", url=url, host="", port=0, name="")) == expected


def test_query_is_no_dataset() -> None:
    assert dataset_of_table(read("POSTGRESQL", query="SELECT 1", schema="", table="")) is None


def test_dataset_of_a_table_location_is_named_as_spark_names_it() -> None:
    assert dataset_of_url("s3a://lake/a/b/") == Dataset("s3://lake", "a/b")
