"""What a job costs in S3 requests, counted on the wire, and that a long log costs no more."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from lakeload_jobs.contract.spec import AppendAgain, TableHandling
from lakeload_jobs.formats.parquet.log.commit_log import History
from lakeload_jobs.formats.parquet.log.records import GlueTarget, LoadRecord, encode
from lakeload_jobs.formats.parquet.log.table_log import CLEANING_EVERY, Committed
from lakeload_jobs.storage.objects import Objects
from tests.integration.formats.parquet.log.test_catalog_step import GLUE, Ledger
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

BAR = 8
"""Requests of one table beside two for each file and one for each part."""


def sent(proxy: FaultProxy, call: Callable[[], object]) -> Counter[str]:
    """Return the S3 operations that `call` sends, and how often."""
    proxy.requests.clear()
    call()
    return Counter(request.operation for request in proxy.requests)


def beside_files(operations: Counter[str], files: int) -> int:
    """Return how many requests are not the two of each file and its one part."""
    assert operations["CreateMultipartUpload"] == files
    assert operations["UploadPart"] == files
    assert operations["CompleteMultipartUpload"] == files
    return operations.total() - 3 * files


@pytest.mark.parametrize("files", [0, 1, 5])
def test_a_job_stays_within_its_requests_from_the_first_load_on(
    proxied: Objects, fault_proxy: FaultProxy, files: int
) -> None:
    catalog = Ledger()

    def first_load() -> None:
        Writer(
            proxied, "job-1", files=files, glue=GLUE, catalog=catalog, table_handling="FAIL"
        ).run()

    def load() -> None:
        Writer(proxied, "job-2", files=files, glue=GLUE, catalog=catalog).run()

    first = sent(fault_proxy, first_load)
    # Checkpoint, log, empty path, claim; claim, record, end, catalog marker.
    assert (first["GetObject"], first["ListObjectsV2"], first["PutObject"]) == (2, 2, 4)
    assert beside_files(first, files) == BAR
    second = sent(fault_proxy, load)
    # Checkpoint (none), log, the first record; record, end, catalog marker, checkpoint.
    assert (second["GetObject"], second["ListObjectsV2"], second["PutObject"]) == (2, 1, 4)
    assert beside_files(second, files) == BAR - 1
    assert sent(fault_proxy, load) == {"GetObject": 2, "ListObjectsV2": 1}
    third = sent(fault_proxy, Writer(proxied, "job-3", files=files, glue=GLUE, catalog=catalog).run)
    assert beside_files(third, files) == BAR - 2


@pytest.mark.parametrize("glue", [None, GLUE])
def test_sync_and_its_job_together_stay_within_the_same_requests(
    proxied: Objects, fault_proxy: FaultProxy, glue: GlueTarget | None
) -> None:
    """Of a table that is inspected before Spark starts, as `lakeload sync` does. Another request
    with Glue: the marker that a first load has without an inspection, too."""
    catalog = Ledger()

    def load(job: str, table_handling: TableHandling = "APPEND") -> Counter[str]:
        writer = Writer(proxied, job, files=1, glue=glue, catalog=catalog)
        writer = replace(writer, table_handling=table_handling)
        return sent(fault_proxy, lambda: writer.after_inspection().run())

    marker = int(glue is not None)
    first = load("job-1", "FAIL")
    # Checkpoint, log, path, claim; then the log; claim, record, end.
    assert (first["GetObject"], first["ListObjectsV2"], first["PutObject"]) == (2, 3, 3 + marker)
    assert beside_files(first, 1) == BAR + marker
    second = load("job-2")
    # Checkpoint (none), log, the first record; then the log; record, end, checkpoint.
    assert (second["GetObject"], second["ListObjectsV2"], second["PutObject"]) == (2, 2, 3 + marker)
    assert beside_files(second, 1) == BAR - 1 + marker
    assert beside_files(load("job-3"), 1) == BAR - 2 + marker
    # The record of the last load, which a warning of rows that are appended again names.
    again = Writer(proxied, "job-4", files=1, glue=glue, catalog=catalog)
    again = replace(again, append_again=AppendAgain("WARN", "set `cursor: xmin`"))
    repeated = sent(fault_proxy, lambda: again.after_inspection().run())
    assert beside_files(repeated, 1) == BAR - 1 + marker
    idle = sent(fault_proxy, Writer(proxied, "job-5", glue=glue, catalog=catalog).inspect)
    assert idle == {"GetObject": 1, "ListObjectsV2": 1}


def test_run_that_lists_stale_uploads_stays_within_its_requests(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    writer = Writer(proxied, "job-0", files=1)
    record = writer.stage()
    grow(proxied, record, CLEANING_EVERY - 1)
    job = sent(fault_proxy, Writer(proxied, "job-1", files=1).run)
    assert job["ListMultipartUploads"] == 2
    assert beside_files(job, 1) == 7


def grow(objects: Objects, record: LoadRecord, commits: int, *, behind: int = 0) -> None:
    """Write the end of a log of so many commits, and a checkpoint `behind` it.

    The commits below the checkpoint are in it only: nobody reads their records again.
    """
    location = Writer(objects, table=record.target.table).location
    history = History()
    for number in range(1, commits + 1):
        one = replace(record, job_id=str(uuid.uuid4()), attempt_id=str(uuid.uuid4()))
        if number > commits - behind:
            assert objects.put_if_absent(location.record_key(number), encode(one))
            assert objects.put_if_absent(location.end_key(number), b"")
        else:
            history.add(number, one, "done")
    objects.put(location.checkpoint_key, encode(history.checkpoint()))


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_a_log_of_ten_thousand_commits_opens_with_four_requests_at_most(
    proxied: Objects, objects: Objects, fault_proxy: FaultProxy, lake: Lake, behind: int
) -> None:
    record = replace(Writer(objects).stage(), files=())
    grow(objects, record, 10_000, behind=behind)
    assert len(lake.read(Writer(objects).location.checkpoint_key)) < 512 * 1024
    opened = sent(fault_proxy, Writer(proxied, "job-1").open)
    assert opened == {"GetObject": 1 + behind, "ListObjectsV2": 1}
    assert opened.total() <= 4
    result = Writer(proxied, "job-1", files=1).run()
    assert isinstance(result, Committed)
    assert result.number == 10_001
    # The job's checkpoint covers all of it again.
    assert sent(fault_proxy, Writer(proxied, "job-2").open).total() == 2


@pytest.mark.parametrize("state", ["missing", "damaged", "older"])
def test_without_its_checkpoint_a_log_is_read_whole_and_once(
    proxied: Objects, objects: Objects, fault_proxy: FaultProxy, lake: Lake, state: str
) -> None:
    location = Writer(objects).location
    for number in range(1, 11):
        Writer(objects, f"job-{number}", files=0, state={"at": number}).run()
        if number == 2:
            old = lake.read(location.checkpoint_key)
    if state == "missing":
        lake.server.s3.delete_object(Bucket=lake.seeded.bucket, Key=location.checkpoint_key)
    else:
        objects.put(location.checkpoint_key, old if state == "older" else b"not JSON")
    slow = sent(fault_proxy, Writer(proxied, "job-11").open)
    read = 8 if state == "older" else 10
    assert slow == {"GetObject": 1 + read, "ListObjectsV2": 1, "PutObject": 1}
    assert json.loads(lake.read(location.checkpoint_key))["number"] == 10
    assert sent(fault_proxy, Writer(proxied, "job-11").open).total() == 2
    assert Writer(objects, "job-11").open().state == {"at": 10}
    assert Writer(objects, "job-2", state={"at": 2}).open().already is not None
