"""The files of an incremental source, chosen from a real log and a real listing, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.formats.parquet.log.bookmark import bookmark_of
from lakeload_jobs.formats.parquet.log.records import encode
from lakeload_jobs.sources.files import selection as new_files
from lakeload_jobs.sources.files.content import content_hashes
from lakeload_jobs.sources.files.selection import Selection, choose_files
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.objects import SourceObjects
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.ministack import Lake

LANDING = "data-lake/test/landing"


@dataclass
class Loads:
    """Jobs of one pipeline, one after the other, of what lies in the landing folder."""

    lake: Lake
    objects: Objects
    destination: DestinationSpec
    jobs: int = 0
    hashes: bool = False
    listing: SourceObjects = field(init=False)

    def __post_init__(self) -> None:
        self.listing = SourceObjects(AwsSession(self.destination))

    def put(self, key: str, content: str) -> None:
        body = content.encode()
        self.lake.server.s3.put_object(
            Bucket=self.lake.seeded.bucket, Key=f"{LANDING}/{key}", Body=body
        )

    def remove(self, key: str) -> None:
        self.lake.server.s3.delete_object(Bucket=self.lake.seeded.bucket, Key=f"{LANDING}/{key}")

    def writer(self) -> Writer:
        self.jobs += 1
        return Writer(self.objects, job_id=f"job-{self.jobs}", files=0)

    def choose(self, writer: Writer) -> Selection:
        opened = writer.open()
        listed = tuple(self.listing.find([f"s3://{self.lake.seeded.bucket}/{LANDING}/"]))
        bookmark = bookmark_of(
            self.objects, writer.location, pipeline="shop", source="orders", opened=opened
        )
        contents = self.contents if self.hashes else None
        return choose_files(bookmark, "", listed, contents=contents)

    def contents(self, files: Sequence[FileState]) -> tuple[str, ...]:
        source = FilesInput("CSV", (f"s3://{self.lake.seeded.bucket}/{LANDING}/",), {})
        readers = SourceReaders(self.destination, AwsSession(self.destination))
        return content_hashes(files, source, readers)

    def put_in_parts(self, key: str, content: str) -> None:
        """Write an object whose ETag is not the MD5 of its bytes."""
        place = {"Bucket": self.lake.seeded.bucket, "Key": f"{LANDING}/{key}"}
        s3: Any = self.lake.server.s3
        upload = s3.create_multipart_upload(**place)["UploadId"]
        part = s3.upload_part(**place, UploadId=upload, PartNumber=1, Body=content.encode())
        parts = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
        s3.complete_multipart_upload(**place, UploadId=upload, MultipartUpload=parts)

    def load(self) -> list[str]:
        """Commit a job with what is new, and return the names."""
        writer = self.writer()
        selection = self.choose(writer)
        if not selection.idle:
            state = selection.state
            hashes = self.contents(selection.files) if self.hashes else ()
            evidence = selection.noted((), hashes)
            record = replace(writer.stage(), state=state, inputs=evidence.inputs)
            writer.log.commit(replace(record, known=evidence.known))
        return [file.path.rpartition("/")[2] for file in selection.files]


@pytest.fixture
def loads(base_identity: Lake, objects: Objects, destination: DestinationSpec) -> Loads:
    """The landing folder of this test's lake."""
    return Loads(base_identity, objects, destination)


def test_loaded_objects_are_identified_by_content(loads: Loads) -> None:
    loads.put("a", "1")
    loads.put("b", "2")
    assert loads.load() == ["a", "b"]
    loads.put("a", "1")
    assert loads.load() == []
    loads.put("b", "3")
    assert loads.load() == ["b"]
    assert loads.load() == []


def test_object_written_again_in_parts_with_kept_hash_is_known(loads: Loads) -> None:
    loads.put("a", "1")
    loads.put("b", "2")
    loads.hashes = True
    assert loads.load() == ["a", "b"]
    loads.put_in_parts("a", "1")
    loads.put("b", "3")
    assert loads.load() == ["b"]
    assert loads.load() == []
    loads.hashes = False
    loads.put("a", "2")
    assert loads.load() == ["a"]


def test_object_deleted_and_uploaded_again_is_known(loads: Loads) -> None:
    loads.put("a", "1")
    loads.put("b", "2")
    loads.load()
    loads.remove("a")
    loads.put("c", "3")
    assert loads.load() == ["c"]
    loads.put("a", "1")
    loads.put("d", "4")
    assert loads.load() == ["d"]


def test_files_of_a_void_job_are_new(loads: Loads) -> None:
    loads.put("a", "1")
    loads.load()
    loads.put("b", "2")
    writer = Writer(loads.objects, job_id="lost", files=1)
    selection = loads.choose(writer)
    record = replace(writer.stage(), state=selection.state, inputs=selection.evidence.inputs)
    assert loads.objects.put_if_absent(writer.location.record_key(2), encode(record))
    [file] = record.files
    loads.objects.abort_upload(file.key, file.upload_id)
    # The upload of the committed job is gone: whoever comes next declares the job void.
    assert loads.load() == ["b"]
    assert loads.load() == []


def test_bookmark_after_many_records_merges_the_known_files(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_files, "_MANY_RECORDS", 2)
    for number in range(3):
        loads.put(f"{number}", str(number))
        loads.load()
    loads.remove("0")
    loads.put("3", "3")
    assert loads.load() == ["3"]
    writer = loads.writer()
    record = json.loads(loads.objects.get(writer.location.record_key(4)) or b"")
    assert [name for folder in record["known"] for name in folder["names"]] == ["0", "1", "2"]
    assert record["state"]["after"]["since"] == 4
    loads.put("0", "0")
    loads.put("4", "4")
    assert loads.load() == ["4"]


def test_bookmark_of_files_is_separate_per_pipeline(loads: Loads) -> None:
    loads.put("a", "1")
    loads.load()
    writer = Writer(loads.objects, job_id="theirs", pipeline="other", source="orders", files=0)
    opened = writer.open()
    listed = tuple(loads.listing.find([f"s3://{loads.lake.seeded.bucket}/{LANDING}/"]))
    bookmark = bookmark_of(
        loads.objects, writer.location, pipeline="other", source="orders", opened=opened
    )
    theirs = choose_files(bookmark, "", listed)
    assert [file.path.rpartition("/")[2] for file in theirs.files] == ["a"]
