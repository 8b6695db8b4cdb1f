"""Objects are listed before a load reads them and once more behind it, with the same meaning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.sources.files.listing import check_unchanged, list_files
from lakeload_jobs.sources.readers import SourceReaders
from tests.servers.ministack import Lake

LANDING = "data-lake/test/landing"


def put(lake: Lake, key: str, content: str) -> str:
    """Store an object and return its path."""
    bucket = lake.seeded.bucket
    lake.server.s3.put_object(Bucket=bucket, Key=f"{LANDING}/{key}", Body=content.encode())
    return f"s3://{bucket}/{LANDING}/{key}"


def test_path_without_files_does_not_mark_files_of_another_path_removed(
    base_identity: Lake, destination: DestinationSpec
) -> None:
    file = put(base_identity, "new/1.csv", "1")
    folder = file.removesuffix("new/1.csv")
    given = FilesInput("CSV", (f"{folder}old/*.csv", f"{folder}new/*.csv"), {}, incremental=True)
    readers = SourceReaders(destination, AwsSession(destination, label="attempt"))
    listed = list_files(given, readers, may_be_empty=True)
    assert [one.path for one in listed] == [file]
    check_unchanged(listed, given, readers)

    put(base_identity, "new/1.csv", "2")
    with pytest.raises(LoadFailed, match=r"`.*/new/1\.csv` was written to"):
        check_unchanged(listed, given, readers)
    base_identity.server.s3.delete_object(
        Bucket=base_identity.seeded.bucket, Key=f"{LANDING}/new/1.csv"
    )
    with pytest.raises(LoadFailed, match=r"`.*/new/1\.csv` was removed"):
        check_unchanged(listed, given, readers)


def test_tables_of_one_identity_share_its_clients(destination: DestinationSpec) -> None:
    readers = SourceReaders(destination, AwsSession(destination, label="attempt"))
    one, other = (FilesInput("CSV", (f"s3://bucket/{name}",), {}) for name in ("a", "b"))
    assert readers.objects(one) is readers.objects(other)
    another = replace(other, credentials=replace(destination.credentials, profile="reader"))
    assert readers.objects(one) is not readers.objects(another)
