"""The Parquet protocol seen from outside: nothing before the commit, everything once after it."""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    EndpointsSpec,
    FilesInput,
    ParquetSpec,
    RejectedInput,
    RejectLimit,
    RunOptions,
)
from lakeload_jobs.formats.data_files.parts import TableParts
from lakeload_jobs.formats.data_files.stage import Driver, count_parts
from lakeload_jobs.formats.parquet.load import write
from lakeload_jobs.formats.parquet.log.commit_log import History
from lakeload_jobs.formats.parquet.log.table_log import InspectedLog
from tests.integration.jobs.conftest import Job
from tests.integration.jobs.test_typed_formats import avro_bytes
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Action,
    FaultProxy,
    Rule,
    after,
    answer,
    before,
    drop_answer,
    drop_request,
)


def many_rows(count: int, start: int = 0) -> str:
    lines = (f"{i},name-{i * 7919 % 100003}-{i:09d}" for i in range(start, start + count))
    return "id,name\n" + "\n".join(lines) + "\n"


def test_the_index_is_dense_over_several_files_and_partitions(job: Job) -> None:
    paths = [job.file(f"{n}.csv", many_rows(3000 + n, n * 10_000)) for n in range(4)]

    result = job.load_one(job.table(*paths))

    assert (result.rows, result.index, result.reader) == (12_006, "dense", "direct")
    assert len(result.files) > 1
    rows = job.rows(result)
    assert rows["_supa_index"].to_pylist() == list(range(1, 12_007))
    assert len(set(rows["id"].to_pylist())) == 12_006
    assert sum(file.rows for file in result.files) == 12_006


@pytest.mark.parametrize(
    ("file_format", "make"),
    [
        ("NDJSON", lambda n: "".join(f'{{"id": {n * 1000 + i}}}\n' for i in range(400 + n))),
        ("CSV", lambda n: "id,t\n# no\n\n" + "".join(f'{i},"a,{i}"\n\n' for i in range(400 + n))),
    ],
)
def test_counting_sees_the_rows_the_load_sees(
    job: Job, file_format: str, make: Callable[[int], str]
) -> None:
    paths = [job.file(f"{n}.txt", make(n)) for n in range(5)]
    options = {"header": "true", "comment": "#"} if file_format == "CSV" else {}

    table = job.table(
        *paths, file_format="CSV" if file_format == "CSV" else "NDJSON", options=options
    )
    result = job.load_one(table)

    assert (result.error, result.rows) == (None, 2010)
    assert job.rows(result)["_supa_index"].to_pylist() == list(range(1, 2011))


def test_parquet_is_counted_and_filtered_alike(job: Job) -> None:
    paths = []
    for n in range(4):
        path = job.file(f"{n}.parquet", b"")
        pq.write_table(pa.table({"id": list(range(n, 4000, 4))}), path, row_group_size=100)
        paths.append(path)

    result = job.load_one(job.table(*paths, file_format="PARQUET", where="id % 3 = 0"))

    assert result.error is None
    rows = job.rows(result)
    assert sorted(row["id"] for row in rows.to_pylist()) == [i for i in range(4000) if i % 3 == 0]
    assert rows["_supa_index"].to_pylist() == list(range(1, result.rows + 1))


def test_a_small_target_size_makes_several_files_of_one_partition(job: Job) -> None:
    path = job.file("a.csv", many_rows(300_000))

    result = job.load_one(job.table(path), destination={"target_file_size": 200_000})

    assert (result.error, result.rows) == (None, 300_000)
    numbers = sorted(int(re.search(r"-(\d{5})\.gzip", f.key)[1]) for f in result.files)  # type: ignore[index]
    assert len(numbers) > 2
    assert len(set(numbers)) == len(numbers)
    assert job.rows(result)["_supa_index"].to_pylist() == list(range(1, 300_001))


def test_keys_follow_partition_strategy_and_pattern(job: Job) -> None:
    parquet = ParquetSpec(partition_strategy="DAY", file_name_pattern="{date}_{supa_job_id}_{seq}")
    spec = job.spec(job.table(job.file("a.csv", "id\n1\n")), destination={"parquet": parquet})

    (table,) = job.run(spec).tables

    assert [file.key for file in table.files] == [
        f"data-lake/test/shop/orders/2026/11/21/2026-11-21_{spec.job_id}_00000.gzip.parquet"
    ]
    assert job.lake.data_keys() == [table.files[0].key]


def test_objects_have_metadata_of_their_writer(job: Job) -> None:
    spec = job.spec(job.table(job.file("a.csv", "id\n1\n")))

    (table,) = job.run(spec).tables

    head = job.lake.server.s3.head_object(Bucket=job.lake.seeded.bucket, Key=table.files[0].key)
    assert head["Metadata"] == {"job": spec.job_id, "attempt": spec.attempt_id, "seq": "0"}
    assert head["ContentLength"] == table.files[0].bytes


def test_the_same_job_again_changes_nothing(job: Job) -> None:
    spec = job.spec(job.table(job.file("a.csv", "id\n1\n2\n")))
    first = job.run(spec).tables[0]
    keys = job.lake.keys()

    again = job.run(replace(spec, attempt_id=str(uuid.uuid4()))).tables[0]

    assert (again.status, again.rows, again.files) == ("NO_OP", 2, first.files)
    assert job.lake.keys() == keys
    assert job.lake.uploads_left() == []


def test_a_second_job_appends(job: Job) -> None:
    table = job.table(job.file("a.csv", "id\n1\n"))

    first, second = job.load_one(table), job.load_one(table)

    assert first.files != second.files
    assert len(job.lake.data_keys()) == 2


def test_limit_loads_that_number_of_rows(job: Job) -> None:
    paths = [job.file(f"{n}.csv", many_rows(500)) for n in range(3)]

    result = job.load_one(job.table(*paths), options=RunOptions(limit=7))

    assert (result.rows, result.index) == (7, "dense")
    assert job.rows(result)["_supa_index"].to_pylist() == list(range(1, 8))


@pytest.fixture
def behind_proxy(fault_proxy: FaultProxy, job: Job) -> tuple[Job, FaultProxy, EndpointsSpec]:
    """A job whose requests pass a proxy."""
    return job, fault_proxy, EndpointsSpec(s3=fault_proxy.endpoint, sts=fault_proxy.endpoint)


def test_nothing_is_visible_until_the_record_is_written(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec],
) -> None:
    job, proxy, endpoints = behind_proxy
    seen: list[list[str]] = []
    proxy.on("UploadPart", after(lambda _: seen.append(job.lake.data_keys())))
    proxy.on("PutObject", after(lambda _: seen.append(job.lake.data_keys())), key="*/log/*.json")

    result = job.load_one(
        job.table(job.file("a.csv", "id\n1\n")), destination={"endpoints": endpoints}
    )

    assert result.status == "LOADED"
    assert seen
    assert all(keys == [] for keys in seen[:2])
    assert proxy.count("PutObject", "*.parquet") == 0
    assert len(job.lake.data_keys()) == 1


def test_denied_part_upload_has_a_clear_error_and_leaves_nothing(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec],
) -> None:
    job, proxy, endpoints = behind_proxy
    paths = [job.file(f"{n}.csv", many_rows(300)) for n in range(4)]
    denied: Rule = proxy.on("UploadPart", answer(403, "AccessDenied"), skip=1)

    result = job.load_one(job.table(*paths), destination={"endpoints": endpoints})

    assert denied.hits > 1
    assert result.status == "FAILED"
    assert result.error is not None
    assert (result.error.type, result.error.stage) == ("AwsError", "stage")
    assert "access denied" in result.error.message
    assert "s3:PutObject" in (result.error.hint or "")
    assert result.error.exit_code == 3
    assert job.lake.keys() == []
    assert job.lake.uploads_left() == []


def test_rejected_commit_aborts_every_upload(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec],
) -> None:
    job, proxy, endpoints = behind_proxy
    proxy.on("PutObject", answer(403, "AccessDenied"), key="*/log/*")

    result = job.load_one(
        job.table(job.file("a.csv", "id\n1\n")), destination={"endpoints": endpoints}
    )

    assert result.status == "FAILED"
    assert result.error is not None
    assert "access denied" in result.error.message
    left = job.lake.keys()
    assert [key for key in left if "/pipeline-sources/" not in key] == []
    assert job.lake.uploads_left() == []


@pytest.mark.parametrize("change", ["grow", "remove"])
def test_a_file_that_changes_while_it_is_read_is_not_loaded(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec], change: str
) -> None:
    job, proxy, endpoints = behind_proxy
    path = Path(job.file("a.csv", "id\n1\n"))

    def act(_: Request) -> None:
        if change == "remove":
            path.unlink()
        else:
            path.write_text("id\n1\n2\n")

    proxy.on("UploadPart", before(act), times=1)

    result = job.load_one(job.table(str(path)), destination={"endpoints": endpoints})

    assert result.error is not None
    assert "the source changed while it was read" in result.error.message
    assert f"`{path}`" in result.error.message
    assert result.error.retryable
    assert job.lake.keys() == []
    assert job.lake.uploads_left() == []


def test_rows_that_differ_from_the_count_are_not_loaded(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec],
) -> None:
    job, _, endpoints = behind_proxy
    schema = {"fields": [{"name": "id", "type": "long"}]}
    records = [{"id": n} for n in range(100)]
    paths = [Path(job.file(f"{n}.avro", avro_bytes(schema, records))) for n in range(4)]
    # Spark reads, which has nothing but a pass over the rows to count them.
    options = {"datetimeRebaseMode": "CORRECTED"}
    table = job.table(*map(str, paths), file_format="AVRO", options=options)
    spec = job.spec(table, destination={"endpoints": endpoints})
    real = count_parts

    def count(driver: Driver, given: TableParts, *, all_columns: bool) -> tuple[int, ...]:
        rows = real(driver, given, all_columns=all_columns)
        for path in paths:
            # Another file of the same size and time: nothing but the number of rows tells.
            size, state = path.stat().st_size, path.stat()
            path.write_bytes(avro_bytes(schema, [{"id": 10_000}, *records[1:-1]]))
            assert path.stat().st_size == size
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "count_parts", count)
        (result,) = job.run(spec).tables

    assert result.error is not None
    assert "the source changed while it was read: partition" in result.error.message
    assert job.lake.keys() == []
    assert job.lake.uploads_left() == []


def test_a_load_sends_eight_requests_beside_those_of_its_files(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec],
) -> None:
    job, proxy, endpoints = behind_proxy
    paths = [job.file(f"{name}.csv", "id\n1\n2\n") for name in "abc"]
    for files, bar in ((3, 8), (1, 8), (0, 8)):
        proxy.requests.clear()
        table = job.table(*paths[:files] or [job.file("none.csv", "id\n")])
        result = job.load_one(table, destination={"endpoints": endpoints}, options=RunOptions())
        assert result.status == "LOADED"
        sent = Counter(request.operation for request in proxy.requests if request.service == "s3")
        of_files = 2 * len(result.files) + sent["UploadPart"]
        assert sent["CompleteMultipartUpload"] == len(result.files)
        assert sent.total() - of_files <= bar, sent


def test_load_after_an_inspection_reads_the_log_no_further_than_it_must(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec],
) -> None:
    job, proxy, endpoints = behind_proxy
    table = job.table(job.file("a.csv", "id\n1\n"))
    inspected = to_json(InspectedLog(History().checkpoint(), first_run=True))
    for given, listed, read in ((inspected, 1, 0), (None, 1, 2)):
        proxy.requests.clear()
        result = job.load_one(
            replace(table, inspected=given),
            job_id=f"job-{read}",
            destination={"endpoints": endpoints},
            options=RunOptions(),
        )
        assert result.status == "LOADED"
        assert proxy.count("ListObjectsV2") == listed
        assert proxy.count("GetObject") == read


@pytest.mark.parametrize("lose", [drop_answer, drop_request])
def test_retry_rejected_without_a_commit_response_reads_the_records_once(
    behind_proxy: tuple[Job, FaultProxy, EndpointsSpec], lose: Action
) -> None:
    job, proxy, endpoints = behind_proxy
    table = job.table(
        job.file("a.csv", "id,n\n1,10\n2,2.000\n"), columns=ColumnsSpec(types={"n": "bigint"})
    )
    settings: dict[str, Any] = {
        "on_bad_value": "QUARANTINE",
        "max_rejected": RejectLimit(percent=100),
        "destination": {"endpoints": endpoints},
    }
    first = job.load_one(table, job_id="first", **settings)
    assert isinstance(table.input, FilesInput)
    options = {**table.input.options, "thousands_mark": ".", "decimal_mark": ","}
    given = RejectedInput("first", replace(table.input, options=options))
    retry = replace(table, input=given, fingerprint="retry")
    lost: Rule = proxy.on("PutObject", lose, key="*/log/*.json", times=1)

    second = job.load_one(retry, job_id="second", **settings)
    third = job.load_one(retry, job_id="third", **settings)

    assert lost.hits > 0
    assert (first.rejected, second.status, second.rows, third.status) == (1, "LOADED", 1, "NO_OP")
    assert [row["id"] for row in job.values(first)] == [1]
    assert job.values(second) == [{"id": 2, "n": 2000}]
