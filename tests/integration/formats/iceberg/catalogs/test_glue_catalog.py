"""Glue as a catalog opened from Python: with a role and its ExternalId, as a load will use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.table import Table

from lakeload.demo.aws import loader_policy
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    IcebergSpec,
)
from lakeload_jobs.formats.iceberg.catalogs.catalog import IcebergCatalog
from lakeload_jobs.formats.iceberg.catalogs.changes import drop_branches, settle_partition
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog, open_glue
from lakeload_jobs.formats.iceberg.commits.metadata import ref
from tests.servers.glue import glue_of
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake

DATABASE = "shop_of_catalog_tests"


def destination(lake: Lake) -> DestinationSpec:
    """Return an Iceberg destination whose role the base identity assumes."""
    seeded, place = lake.seeded, lake.server.endpoint
    return DestinationSpec(
        bucket=seeded.bucket,
        region=seeded.region,
        prefix=seeded.prefix,
        credentials=CredentialsSpec(
            role_arn=seeded.role_arn, external_id=SecretReference("env", EXTERNAL_ID_VARIABLE)
        ),
        endpoints=EndpointsSpec(s3=place, sts=place, glue=place),
        encryption=EncryptionSpec(type="SSE_S3"),
        table_format="ICEBERG",
    )


@pytest.fixture
def session(base_identity: Lake) -> AwsSession:
    """An identity with every right on Glue's catalog."""
    seeded = base_identity.seeded
    policy = loader_policy(seeded.bucket, seeded.prefix)
    statements = policy["Statement"]
    assert isinstance(statements, list)
    everything = {"Effect": "Allow", "Action": ["glue:*", "s3:DeleteObject"], "Resource": "*"}
    whole = {**policy, "Statement": [*statements, everything]}
    base_identity.server.admin.put_role_policy(seeded.role, whole)
    return AwsSession(destination(base_identity))


@pytest.fixture
def files(base_identity: Lake, session: AwsSession) -> LakeFiles:
    """The metadata files of the catalog."""
    return LakeFiles(session, destination(base_identity))


@pytest.fixture
def catalog(base_identity: Lake, session: AwsSession, files: LakeFiles) -> IcebergCatalog:
    """Glue's catalog."""
    return open_glue(destination(base_identity), session, files)


def place(lake: Lake) -> str:
    """Return where the table of these tests lies."""
    return f"s3://{lake.seeded.bucket}/{lake.seeded.prefix}/{DATABASE}/orders"


def read(lake: Lake, table: str) -> Table:
    """Return the table as a client of another product reads it, with the administrator's keys."""
    keys = {
        "access-key-id": "test",
        "secret-access-key": "test",
        "region": lake.seeded.region,
        "endpoint": lake.server.endpoint,
    }
    settings: dict[str, Any] = {
        f"{one}.{name}": value for one in ("glue", "s3") for name, value in keys.items()
    }
    return GlueCatalog("reader", **settings).load_table((DATABASE, table))


@pytest.fixture
def table(catalog: IcebergCatalog, base_identity: Lake) -> Iterator[str]:
    """A database and a table in it; return the table's name."""
    catalog.create_namespace(DATABASE)
    columns = {"id": "long", "name": "string"}
    catalog.create_table(DATABASE, "orders", columns=columns, location=place(base_identity))
    yield "orders"
    glue_of(base_identity).delete_database(Name=DATABASE)


def test_glue_catalog_table_is_created_read_and_changed(
    catalog: IcebergCatalog, table: str, base_identity: Lake
) -> None:
    made = catalog.load_table(DATABASE, table)
    assert made.location == place(base_identity)
    assert (ref(made.metadata, "main"), made.metadata["format-version"]) == (None, 2)
    catalog.set_property(DATABASE, table, "lakeload.state", "{}")
    changed = catalog.load_table(DATABASE, table)
    assert changed.properties["lakeload.state"] == "{}"
    assert changed.metadata_location != made.metadata_location
    assert DATABASE in catalog.namespaces()
    assert made.config is None


def test_glue_catalog_metadata_has_the_encryption_of_the_destination(
    catalog: IcebergCatalog, table: str, base_identity: Lake
) -> None:
    key = catalog.load_table(DATABASE, table).metadata_location.split("/", 3)[3]
    head = base_identity.server.s3.head_object(Bucket=base_identity.seeded.bucket, Key=key)
    assert head["ServerSideEncryption"] == "AES256"


def test_glue_catalog_second_concurrent_commit_raises_conflict(
    catalog: IcebergCatalog,
    files: LakeFiles,
    table: str,
    base_identity: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = files.write

    def overtaken(location: str, data: bytes) -> None:
        monkeypatch.setattr(files, "write", write)
        wanted = destination(base_identity)
        open_catalog(wanted, AwsSession(wanted)).set_property(DATABASE, table, "who", "first")
        write(location, data)

    monkeypatch.setattr(files, "write", overtaken)
    with pytest.raises(CatalogError) as caught:
        catalog.set_property(DATABASE, table, "who", "second")
    assert (caught.value.code, caught.value.status) == ("CommitFailedException", 409)
    assert caught.value.retryable
    assert catalog.load_table(DATABASE, table).properties["who"] == "first"


def test_glue_catalog_commit_that_the_sdk_repeats_is_in_and_stays_readable(
    catalog: IcebergCatalog,
    session: AwsSession,
    files: LakeFiles,
    table: str,
    base_identity: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog.set_property(DATABASE, table, "commit.retry.num-retries", "0")
    catalog.set_property(DATABASE, table, "pending", "{}")
    made = read(base_identity, table)
    with made.update_spec() as update:
        update.add_identity("name")
    for name in ("stays", "goes"):
        made.append(pa.table({"id": [1], "name": [name]}))
    made.manage_snapshots().create_branch(made.metadata.snapshots[0].snapshot_id, "left").commit()
    glue = session.glue
    send = glue.update_table

    def repeated(**arguments: Any) -> object:
        # The first answer is lost: Glue tells the second request that the version has moved.
        send(**arguments)
        return send(**arguments)

    monkeypatch.setattr(glue, "update_table", repeated)
    store = catalog._tables

    def settle() -> bool:
        known = catalog.load_table(DATABASE, table)
        gone = ("name", "goes")
        return settle_partition(store, files, known, gone, summary={}, forget="pending")

    settled = settle()
    dropped = drop_branches(store, catalog.load_table(DATABASE, table), ["left", "nosuch"])
    catalog.set_property(DATABASE, table, "who", "we")

    now = read(base_identity, table)
    assert (settled, dropped, now.properties["who"]) == (True, ("left",), "we")
    assert [file.file.partition[0] for file in now.scan().plan_files()] == ["stays"]
    assert now.metadata.refs.keys() == {"main"}
    assert "pending" not in now.properties
    assert not settle()


def test_glue_catalog_missing_and_existing_tables_raise_the_common_errors(
    catalog: IcebergCatalog, table: str, base_identity: Lake
) -> None:
    def refused(call: object, *arguments: object, **options: object) -> tuple[str, int | None]:
        assert callable(call)
        with pytest.raises(CatalogError) as caught:
            call(*arguments, **options)
        return caught.value.code, caught.value.status

    columns, location = {"id": "long"}, place(base_identity)
    again = refused(catalog.create_table, DATABASE, table, columns=columns, location=location)
    assert again == ("AlreadyExistsException", 409)
    assert refused(catalog.create_namespace, DATABASE) == ("AlreadyExistsException", 409)
    assert refused(catalog.load_table, DATABASE, "nosuch") == ("NoSuchTableException", 404)
    assert refused(catalog.drop_table, DATABASE, "nosuch") == ("NoSuchTableException", 404)
    assert refused(catalog.drop_namespace, "nosuch") == ("NoSuchNamespaceException", 404)
    assert refused(catalog.drop_namespace, DATABASE) == ("NamespaceNotEmptyException", 409)


def test_glue_catalog_non_iceberg_table_is_rejected_with_a_hint(
    catalog: IcebergCatalog, table: str, base_identity: Lake
) -> None:
    glue_of(base_identity).create_table(
        DatabaseName=DATABASE, TableInput={"Name": "plain", "Parameters": {"classification": "csv"}}
    )
    with pytest.raises(CatalogError) as caught:
        catalog.load_table(DATABASE, "plain")
    assert caught.value.code == "NotAnIcebergTable"
    assert "drop that table" in (caught.value.hint or "")


def test_glue_catalog_access_denied_is_an_aws_error(
    catalog: IcebergCatalog, base_identity: Lake
) -> None:
    seeded = base_identity.seeded
    policy = loader_policy(seeded.bucket, seeded.prefix)
    base_identity.server.admin.put_role_policy(seeded.role, policy)
    with pytest.raises(AwsError) as caught:
        catalog.load_table(DATABASE, "orders")
    assert caught.value.denied


def test_catalog_client_nessie_native_interface_is_rejected(base_identity: Lake) -> None:
    native = CatalogSpec(type="NESSIE", uri="http://127.0.0.1:9", api="NATIVE")
    wanted = replace(destination(base_identity), iceberg=IcebergSpec(catalog=native))
    with pytest.raises(InvalidInput, match="works only through Spark"):
        open_catalog(wanted, AwsSession(wanted))
