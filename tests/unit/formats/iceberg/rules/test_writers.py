"""Who writes the data files of an Iceberg table: what is not known is Spark's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    FilesInput,
    IcebergSpec,
    JobSpec,
    PartitionField,
    RejectedInput,
    RejectLimit,
    RuntimeSpec,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.commits.metadata import normalised
from lakeload_jobs.formats.iceberg.rules.facts import table_facts
from lakeload_jobs.formats.iceberg.rules.writers import (
    WrittenTable,
    file_settings,
    needs_java,
    only_spark,
    partition_fields,
    written_table,
)
from tests.unit.formats.iceberg.metadata import metadata_of
from tests.unit.launch.specs import SYNCED

BY_LAKELOAD = {
    "commit.retry.num-retries": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.parquet.compression-codec": "zstd",
    "lakeload.created-by": "shop",
}


def field(number: int, name: str, kind: Any, *, required: bool = False, **more: Any) -> Any:
    return {"id": number, "name": name, "type": kind, "required": required, **more}


FIELDS = [field(1, "id", "long", required=True), field(2, "price", "decimal(12, 2)")]
TABLE = TableSpec(
    source="orders",
    schema="shop",
    table="orders",
    input=FilesInput("CSV", ("/a.csv",), {}),
    fingerprint="",
)
PLAIN = WrittenTable(
    {"type": "struct", "fields": FIELDS}, (), False, BY_LAKELOAD, "s3://lake/shop/orders", 2
)
GLUE = CatalogSpec()
OF_VERSION_2 = (
    *("schemas", "current-schema-id", "partition-specs", "default-spec-id", "refs"),
    *("table-uuid", "sort-orders", "default-sort-order-id"),
)
PRICES = "the table is partitioned by `truncate(5, price)`, a decimal(12, 2)"


def asked(written: WrittenTable = PLAIN, table: TableSpec = TABLE, **given: Any) -> str:
    values: dict[str, Any] = {"catalog": GLUE, "columns": ["id", "price"]}
    return only_spark(written, table, **{**values, "key": ["id"], **given})


def of(kind: Any, **more: Any) -> WrittenTable:
    return replace(PLAIN, schema={"fields": [*FIELDS, field(3, "more", kind, **more)]})


def test_a_plain_table_is_written_by_tasks() -> None:
    assert asked() == ""
    assert asked(table=replace(TABLE, mode="OVERWRITE")) == ""
    nested = {
        "type": "map",
        "key": "string",
        "value": {"type": "list", "element": {"type": "struct", "fields": FIELDS}},
    }
    assert asked(of(nested)) == ""
    # The catalog may choose another bucket than the destination's.
    assert asked(replace(PLAIN, location="s3://other/shop")) == ""


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (replace(PLAIN, partitions=("truncate(5, price)",)), PRICES),
        (replace(PLAIN, partitions=("day(gone)",)), "the table is partitioned by `day(gone)`"),
        (replace(PLAIN, partitions=("void(id)",)), "the table is partitioned by `void(id)`"),
        (replace(PLAIN, sorted=True), "the table has a sort order"),
        (
            replace(PLAIN, location="gs://lake/shop"),
            "the location of the table is no `s3://` folder",
        ),
        (
            replace(PLAIN, location="s3://lake/a?b"),
            "the location of the table has characters that mean something in a URL",
        ),
        (replace(PLAIN, io="a.b.HadoopFileIO"), "files are written by `HadoopFileIO`"),
        (of("uuid"), "column `more` is a uuid"),
        (of({"type": "list", "element": "variant"}), "column `more` is a variant"),
        (of("string", **{"write-default": "x"}), "column `more` has a default"),
        (of("long", required=True), "the load has no column `more`, which is required"),
    ],
)
def test_a_table_that_tasks_do_not_know_is_written_by_spark(
    written: WrittenTable, reason: str
) -> None:
    assert asked(written) == reason


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_only_format_versions_that_are_compared_are_written_by_tasks(version: int) -> None:
    found = asked(replace(PLAIN, version=version))
    assert found == ("" if version in (2, 3) else f"the table has format version {version}")


@pytest.mark.parametrize(
    "name",
    [
        # Other keys, or another place.
        *("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.endpoint"),
        *("s3.signer.uri", "s3.remote-signing-enabled", "s3.access-grants.enabled"),
        *("s3.access-points.lake", "s3.acceleration-enabled", "s3.client-factory-impl"),
        *("client.region", "client.factory", "client.assume-role.arn", "io-impl"),
        *("client.credentials-provider", "client.refresh-credentials-endpoint"),
        *("http-client.proxy-endpoint", "lakeformation.table-name"),
        # Other objects.
        *("s3.acl", "s3.sse.type", "s3.sse.key", "s3.sse.md5", "s3.write.storage-class"),
        *("s3.write.tags.team", "s3.write.table-tag-enabled", "s3.write.namespace-tag-enabled"),
        # What nobody knows.
        *("s3.something-new", "client.something-new", "s3.staging-dir-of-another"),
    ],
)
def test_a_file_io_that_the_catalog_sets_up_in_another_way_is_sparks(name: str) -> None:
    found = asked(replace(PLAIN, io_settings=("warehouse", "s3.path-style-access", name)))
    assert found == f"the catalog sets `{name}` for the files"


def test_settings_of_a_file_io_that_change_no_object_are_passed_over() -> None:
    names = (
        *("s3.multipart.part-size-bytes", "s3.staging-dir", "s3.checksum-enabled", "s3.region"),
        *("s3.retry.num-retries", "s3.delete.batch-size", "s3.delete.tags.gone", "s3.crt.enabled"),
        *("http-client.type", "http-client.apache.max-connections", "s3.preload-client-enabled"),
        # The catalog's own.
        *("uri", "warehouse", "token", "header.team", "rest.auth.type", "glue.id", "polaris.x"),
    )
    assert asked(replace(PLAIN, io_settings=names)) == ""


def test_settings_of_the_load_decide_too() -> None:
    assert asked(table=replace(TABLE, mode="UPSERT")) == "rows are merged"
    partitioned = replace(PLAIN, partitions=("id", "bucket(8, price)", "truncate(10, ID)"))
    assert asked(partitioned) == ""
    assert partition_fields(partitioned.partitions)[1] == PartitionField("bucket", "price", 8)
    mode = {**BY_LAKELOAD, "write.distribution-mode": "none"}
    assert asked(replace(PLAIN, properties=mode)) == ""
    why = "the table has `write.distribution-mode` none"
    assert asked(replace(partitioned, properties=mode)) == why
    compared = replace(TABLE, max_deleted=RejectLimit(rows=1))
    assert asked(table=compared).startswith("the keys of the source are compared")
    assert asked(catalog=CatalogSpec("REST")) == "the catalog vends credentials for the files"
    assert asked(catalog=CatalogSpec("REST", access_delegation="NONE")) == ""
    assert asked(key=[]) == "column `id` is required and not in the primary key"
    assert asked(columns=["id", "new"]) == "the table has no column `new`"


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("write.parquet.compression-codec", "GZIP", True),
        ("write.parquet.compression-codec", "lz4", False),
        ("write.parquet.compression-level", "9", True),
        ("write.parquet.compression-level", "40", False),
        ("write.format.default", "parquet", True),
        ("write.format.default", "orc", False),
        ("write.target-file-size-bytes", "1000", True),
        ("write.target-file-size-bytes", "0", False),
        ("write.object-storage.enabled", "true", False),
        ("write.location-provider.impl", "a.B", False),
        ("write.data.path", "s3://lake/elsewhere", True),
        ("write.metadata.metrics.default", "full", True),
        ("write.parquet.bloom-filter-enabled.column.id", "TRUE", True),
        ("write.parquet.bloom-filter-enabled.column.id", "yes", False),
        ("write.parquet.bloom-filter-enabled.column.gone", "true", False),
        ("write.parquet.bloom-filter-enabled.column.Id", "true", False),
        ("write.parquet.bloom-filter-fpp.column.id", "0.2", True),
        ("write.parquet.bloom-filter-fpp.column.id", "1", False),
        ("write.parquet.bloom-filter-fpp.column.id", "x", False),
        ("write.parquet.bloom-filter-ndv.column.id", "1000", False),
        ("write.parquet.bloom-filter-max-bytes", "1000", False),
        ("write.parquet.bloom-filter-enabled.column.id", "false", True),
        ("write.parquet.bloom-filter-adaptive-enabled", "true", True),
        ("write.something-new", "1", False),
        ("encryption.key-id", "k", False),
        ("parquet.bloom.filter.enabled", "true", False),
        ("history.expire.max-snapshot-age-ms", "1", True),
        ("write.delete.granularity", "partition", True),
        ("team", "shop", True),
    ],
)
def test_only_properties_that_are_known_leave_the_files_to_tasks(
    name: str, value: str, known: bool
) -> None:
    found = asked(replace(PLAIN, properties={**BY_LAKELOAD, name: value}))
    assert found == ("" if known else f"the table has `{name}`")


@pytest.mark.parametrize("kind", ["boolean", {"type": "list", "element": "long"}])
def test_a_bloom_filter_that_tasks_do_not_write_is_sparks(kind: Any) -> None:
    name = "write.parquet.bloom-filter-enabled.column.more"
    found = asked(replace(of(kind), properties={name: "true"}), columns=["id", "more"])
    assert found == f"the table has `{name}`"


def test_settings_of_files_are_those_of_the_table() -> None:
    plain = file_settings({})
    assert (plain.codec, plain.level, plain.target_size) == ("zstd", None, 512 << 20)
    assert (plain.row_group_size, plain.long_bounds) == (None, False)
    given = file_settings(
        {
            "write.parquet.compression-codec": "GZIP",
            "write.parquet.compression-level": "6",
            "write.target-file-size-bytes": "1000",
            "write.parquet.row-group-size-bytes": "500",
            "write.metadata.metrics.column.a": "truncate(17)",
            "write.parquet.bloom-filter-enabled.column.a": "true",
            "write.parquet.bloom-filter-fpp.column.a": "0.2",
            "write.parquet.bloom-filter-enabled.column.b": "True",
            "write.parquet.bloom-filter-enabled.column.c": "false",
            "write.parquet.bloom-filter-fpp.column.c": "0.3",
        }
    )
    assert (given.codec, given.level, given.target_size) == ("gzip", 6, 1000)
    assert (given.row_group_size, given.long_bounds) == (500, True)
    assert given.bloom_filters == {"a": 0.2, "b": 0.01}


def test_what_decides_is_read_from_metadata() -> None:
    metadata = metadata_of(properties={"write.format.default": "orc"}, refs={"main": 1})
    found = written_table(metadata)
    assert found.partitions == ("bucket(16, id)", "void(price)", "price")
    assert [one["name"] for one in found.schema["fields"]] == ["id", "price"]
    assert (found.sorted, found.version, found.location) == (False, 2, metadata["location"])
    assert asked(found) == "the table is partitioned by `void(price)`"
    orders = [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": [{"source-id": 1}]}]
    metadata |= {"sort-orders": orders, "default-sort-order-id": 1}
    assert written_table(metadata).sorted


def test_old_metadata_of_version_1_is_read_too() -> None:
    metadata = metadata_of(refs={"main": 7})
    old = normalised(
        {
            **{name: value for name, value in metadata.items() if name not in OF_VERSION_2},
            "format-version": 1,
            "schema": metadata["schemas"][0],
            "partition-spec": [],
            "current-snapshot-id": 7,
        }
    )
    assert written_table(old).partitions == ()
    facts = table_facts(old, None)
    assert (facts.refs, facts.uuid, facts.sorted) == ({"main": 7}, "", False)
    assert facts.identifiers == ("id",)


DESTINATION = DestinationSpec("lake", "us-east-1", table_format="ICEBERG")
JOB = JobSpec(1, "shop", "job-1", "a", SYNCED, DESTINATION, (TABLE,), "", "")
VENDS = IcebergSpec(CatalogSpec("REST", uri="https://c", access_delegation="VENDED_CREDENTIALS"))
KEYS = CredentialsSpec(access_key_id=SecretReference("env", "KEY"))
ELSEWHERE = RuntimeSpec(tasks_share_driver=False)


def test_appends_and_overwrites_of_plain_tables_need_no_java() -> None:
    assert needs_java(JOB, TABLE) == ""
    assert needs_java(JOB, replace(TABLE, mode="OVERWRITE"), PLAIN) == ""
    assert needs_java(replace(JOB, runtime=ELSEWHERE), TABLE, PLAIN) == ""
    with_keys = replace(JOB, destination=replace(DESTINATION, credentials=KEYS))
    assert needs_java(with_keys, TABLE, PLAIN) == ""


@pytest.mark.parametrize(
    ("spec", "table", "reason"),
    [
        (JOB, replace(TABLE, mode="UPSERT"), "rows are merged"),
        (
            JOB,
            replace(TABLE, max_deleted=RejectLimit(rows=3)),
            "the keys of the source are compared with those of the table",
        ),
        (replace(JOB, on_bad_value="QUARANTINE"), TABLE, ""),
        (JOB, replace(TABLE, input=RejectedInput("job-0", FilesInput("CSV", ("/a.csv",), {}))), ""),
        (
            replace(JOB, destination=replace(DESTINATION, iceberg=VENDS)),
            TABLE,
            "the catalog vends credentials for the files",
        ),
        (
            replace(JOB, runtime=ELSEWHERE, destination=replace(DESTINATION, credentials=KEYS)),
            TABLE,
            "tasks on other machines lack the secrets of the destination",
        ),
    ],
)
def test_settings_that_need_java(spec: JobSpec, table: TableSpec, reason: str) -> None:
    assert needs_java(spec, table) == reason


def test_properties_of_new_tables_that_need_java() -> None:
    orc = {"write.format.default": "orc"}
    ours = {"write.parquet.compression-codec": "gzip", "write.distribution-mode": "none"}
    every = replace(DESTINATION, iceberg=IcebergSpec(table_properties=orc))
    reason = "the table has `write.format.default`"
    assert needs_java(replace(JOB, destination=every), TABLE) == reason
    assert needs_java(JOB, replace(TABLE, table_properties=orc)) == reason
    assert needs_java(JOB, replace(TABLE, table_properties=orc), PLAIN) == ""
    blooms = {"write.parquet.bloom-filter-enabled.column.id": "true"}
    assert needs_java(JOB, replace(TABLE, table_properties={**ours, **blooms})) == ""
    parted = replace(TABLE, partition_by=(PartitionField("day", "at"),), table_properties=ours)
    assert needs_java(JOB, parted) == "the table has `write.distribution-mode` none"


def test_tables_that_need_java() -> None:
    assert needs_java(JOB, TABLE, replace(PLAIN, sorted=True)) == "the table has a sort order"
    assert needs_java(JOB, TABLE, of("uuid")) == "column `more` is a uuid"
    # Which columns the load has is not known yet.
    assert needs_java(JOB, TABLE, of("long", required=True)) == ""
