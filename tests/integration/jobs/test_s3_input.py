"""Input from S3: what the paths name is read with the identity that may, and nothing else is."""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    CredentialsSpec,
    EndpointsSpec,
    FileFormatName,
    TableSpec,
)
from lakeload_jobs.formats.data_files.stage import stage_parts
from lakeload_jobs.formats.parquet.load import write
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.spark import source as files_source
from lakeload_jobs.sources.files.spark import text
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.file_state import FileState
from tests.inputs import files_of
from tests.integration.jobs.conftest import Job
from tests.integration.jobs.test_typed_formats import avro_bytes
from tests.servers.fault_proxy import MakeProxy
from tests.servers.ministack import Lake, MakeLake


@dataclass
class Bucket:
    """A bucket that is not the lake's, with a role of its own that alone may read it."""

    lake: Lake
    folder: Path

    def put(self, key: str, content: str | bytes) -> str:
        """Store an object and return its path."""
        body = content.encode() if isinstance(content, str) else content
        self.lake.server.s3.put_object(Bucket=self.lake.seeded.bucket, Key=key, Body=body)
        return self.path(key)

    def path(self, key: str) -> str:
        """Return the `s3://` path of a key or glob."""
        return f"s3://{self.lake.seeded.bucket}/{key}"

    def credentials(self, external_id: str | None = None) -> CredentialsSpec:
        """Return the source's credentials; secrets are files, which Spark's JVM can read."""
        seeded = self.lake.seeded
        return CredentialsSpec(
            role_arn=seeded.role_arn,
            external_id=self._secret("external-id", external_id or seeded.external_id),
            access_key_id=self._secret("key", seeded.base_key.access_key_id),
            secret_access_key=self._secret("secret", seeded.base_key.secret_access_key),
        )

    def table(self, job: Job, *paths: str, **changes: Any) -> TableSpec:
        """Return a table that reads `paths` with the source's own credentials."""
        table = job.table(*paths, **changes)
        return replace(table, input=replace(files_of(table), credentials=self.credentials()))

    def _secret(self, name: str, value: str) -> SecretReference:
        path = self.folder / f"source {name} # 1.secret"
        path.write_text(value)
        return SecretReference("file", str(path))


@pytest.fixture
def source(make_lake: MakeLake, tmp_path: Path) -> Bucket:
    """The source's bucket; its role may read below `exports/` alone."""
    return Bucket(make_lake(prefix="exports"), tmp_path)


def test_objects_are_read_with_the_role_of_the_source(job: Job, source: Bucket) -> None:
    paths = [
        source.put("exports/a.csv", "id,name\n1,a\n2,b\n"),
        source.put("exports/c.csv.gz", gzip.compress(b"id,name\n3,c\n")),
    ]

    result = job.load_one(source.table(job, *paths))

    assert (result.status, result.error) == ("LOADED", None)
    assert sorted(row["id"] for row in job.values(result)) == [1, 2, 3]
    assert job.rows(result)["_supa_index"].to_pylist() == [1, 2, 3]


def test_objects_are_inspected_with_the_role_of_the_source(
    job: Job, source: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the driver, and in tasks that have no client yet."""
    lines = source.put("exports/a.csv", 'id,name\n1,"a\nb\n')
    values = source.put("exports/b.json.gz", gzip.compress(b'[{"id": 1}]\n{"id": 2}\n'))
    empty = source.put("exports/0.csv", "")

    in_driver = job.load_one(source.table(job, empty, lines)).error
    monkeypatch.setattr(text, "_SMALL", 0)
    in_tasks = job.load_one(source.table(job, empty, lines)).error
    json_in_task = job.load_one(source.table(job, values, file_format="JSON")).error

    for error in (in_driver, in_tasks):
        assert error is not None
        assert f"`{lines}`: line 2: a quote is opened that is never closed" in error.message
    assert json_in_task is not None
    assert f"`{values}`: line 2: something follows" in json_in_task.message


def test_objects_are_read_in_parts_and_in_any_order(
    job: Job, source: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large CSV file in several tasks, and a zip file, whose directory is at its end."""
    monkeypatch.setattr(text, "_SMALL", 0)
    monkeypatch.setattr(text, "_parallelism", lambda _: Parallelism(4, 300, 64))
    rows = "".join(f'{n},"a\n{n}"\n' for n in range(100))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("b.csv", "id,name\n100,b\n")
    paths = [
        source.put("exports/a.csv", "id,name\n" + rows),
        source.put("exports/b.zip", archive.getvalue()),
    ]

    result = job.load_one(source.table(job, *paths))

    assert result.error is None
    assert [row["id"] for row in job.values(result)] == list(range(101))
    assert len(result.files) > 2


KEYS = [
    "with blank.csv",
    "a+b.csv",
    "50%25.csv",
    "a[1].csv",
    "Größe-日本🚀.csv",
    "a#b?.csv",
    "a*.csv",
]


def test_keys_may_hold_any_character_and_folders_are_read_whole(job: Job, source: Bucket) -> None:
    for number, key in enumerate(KEYS):
        source.put(f"exports/odd/{key}", f"id\n{number}\n")
    for key in ("_SUCCESS", ".hidden.csv", "_delta_log/0.json", "below/x.csv"):
        source.put(f"exports/odd/{key}", "nothing to read\n")
    exact = [source.path(f"exports/odd/{key}") for key in KEYS]
    tables = [
        source.table(job, *exact, name="exact"),
        source.table(job, source.path("exports/odd/"), name="folder"),
        source.table(job, source.path("exports/odd/*.csv"), name="glob"),
        source.table(job, source.path("exports/odd/a[[]*.csv"), name="bracket"),
    ]

    found = {
        result.table: (result.error, sorted(row["id"] for row in job.values(result)))
        for result in job.load(*tables).tables
    }

    everything = (None, list(range(len(KEYS))))
    assert found == {
        "exact": everything,
        "folder": everything,
        "glob": everything,
        "bracket": (None, [3]),
    }


def test_s3_partition_folders_are_columns_and_double_star_is_recursive(
    job: Job, source: Bucket
) -> None:
    for day, number in (("2026-01-01", 1), ("2026-01-02", 2)):
        rows = pa.table({"id": [number]})
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        source.put(f"exports/t/day={day}/p.parquet", sink.getvalue().to_pybytes())
    folder = source.table(job, source.path("exports/t"), file_format="PARQUET", name="folder")
    deep = source.table(job, source.path("exports/**"), file_format="PARQUET", name="deep")

    results = {result.table: result for result in job.load(folder, deep).tables}

    by_folder = sorted((row["id"], str(row["day"])) for row in job.values(results["folder"]))
    assert by_folder == [(1, "2026-01-01"), (2, "2026-01-02")]
    assert sorted(row["id"] for row in job.values(results["deep"])) == [1, 2]


def test_parquet_in_s3_is_read_by_arrow_in_few_requests(
    job: Job, source: Bucket, make_proxy: MakeProxy
) -> None:
    sink = pa.BufferOutputStream()
    rows = {
        "id": range(40_000),
        "hidden": [f"{number:09d}" * 9 for number in range(40_000)],
        "t": pa.array(range(40_000), pa.int64()).view(pa.time64("us")),
    }
    pq.write_table(pa.table(rows), sink, row_group_size=20_000, compression="none")
    content = sink.getvalue().to_pybytes()
    path = source.put("exports/a.parquet", content)
    proxy = make_proxy(job.lake.server.endpoint)
    endpoints = EndpointsSpec(s3=proxy.endpoint, sts=proxy.endpoint)
    columns = ColumnsSpec(exclude=("hidden",))
    table = source.table(job, path, file_format="PARQUET", columns=columns)

    result = job.load_one(table, destination={"endpoints": endpoints})

    assert (result.error, result.rows, result.reader) == (None, 40_000, "direct")
    found = job.values(result)
    assert found[39_999] == {"id": 39_999, "t": "00:00:00.039999"}
    assert [row["id"] for row in found] == list(range(40_000))
    # One byte before; the footer in the driver and in the task; and two columns of two row groups.
    assert proxy.count("GetObject", "exports/a.parquet") <= 1 + 2 * 2 + 4
    assert proxy.count("HeadObject", "exports/a.parquet") == 0

    damaged = source.put("exports/b.parquet", content[:4] + b"\xff" * 40 + content[44:])
    refused = job.load_one(source.table(job, damaged, file_format="PARQUET", name="damaged"))
    assert refused.error is not None
    assert f"reading `{damaged}`" in refused.error.message


BY_SPARK: dict[str, Any] = {"file_format": "PARQUET", "options": {"datetimeRebaseMode": "LEGACY"}}
"""Files that only Spark's reader reads."""


def parquet_bytes(number: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [number]}), sink)
    return sink.getvalue().to_pybytes()


def test_many_objects_are_read_by_their_folder(
    job: Job, source: Bucket, make_proxy: MakeProxy
) -> None:
    for number in range(40):
        source.put(f"exports/many/{number:04d}.parquet", parquet_bytes(number))
    source.put("exports/many/other.txt", "nothing to read\n")
    table = source.table(job, source.path("exports/many/*.parquet"), **BY_SPARK)
    proxy = make_proxy(job.lake.server.endpoint)
    endpoints = EndpointsSpec(s3=proxy.endpoint, sts=proxy.endpoint)

    result = job.load_one(table, destination={"endpoints": endpoints})

    assert (result.rows, result.error) == (40, None)
    assert sorted(row["id"] for row in job.values(result)) == list(range(40))
    # Each file is opened for its types, for the count and for the load, footers and rows apart,
    # and once more to look for damage.
    assert proxy.count("GetObject", "exports/many/*") <= 9 * 40 + 3
    listings = [request.target for request in proxy.requests if "list-type=2" in request.target]
    # Spark names each once when it looks for headers; named by lakeload they would cost 120.
    assert len([target for target in listings if "exports" in target]) < 2 * 40


@pytest.mark.parametrize(
    ("file_format", "content"), [("CSV", "id\n{}\n"), ("NDJSON", '{{"id": {}}}\n')]
)
def test_each_text_object_is_opened_twice(
    job: Job, source: Bucket, make_proxy: MakeProxy, file_format: FileFormatName, content: str
) -> None:
    for number in range(40):
        source.put(f"exports/many/{number:04d}.csv", content.format(number))
    proxy = make_proxy(job.lake.server.endpoint)
    endpoints = EndpointsSpec(s3=proxy.endpoint, sts=proxy.endpoint)

    result = job.load_one(
        source.table(job, source.path("exports/many/*.csv"), file_format=file_format),
        destination={"endpoints": endpoints},
    )

    assert (result.rows, result.error, result.reader) == (40, None, "direct")
    assert [row["id"] for row in job.values(result)] == list(range(40))
    # To find the types and to load it, and one byte of the first before.
    assert proxy.count("GetObject", "exports/many/*") == 2 * 40 + 1
    listings = [request.target for request in proxy.requests if "list-type=2" in request.target]
    assert len([target for target in listings if "exports" in target]) < 10


def test_avro_and_orc_objects_are_read(job: Job, source: Bucket) -> None:
    sink = pa.BufferOutputStream()
    at = pa.array([datetime(1500, 1, 1)], pa.timestamp("us"))
    orc.write_table(pa.table({"id": [1], "v": ["x"], "at": at}), sink)
    orc_path = source.put("exports/a.orc", sink.getvalue().to_pybytes())
    avro_paths = [
        source.put(f"exports/{name}.avro", avro_bytes({"fields": fields}, [{"id": 1, name: 1}]))
        for name in ("a", "b")
        for fields in [[{"name": column, "type": "int"} for column in ("id", name)]]
    ]

    results = job.load(
        source.table(job, orc_path, file_format="ORC", name="orc"),
        source.table(job, *avro_paths, file_format="AVRO", name="avro"),
    ).tables

    assert [result.error for result in results] == [None, None]
    assert [result.reader for result in results] == ["direct", "direct"]
    assert job.values(results[0]) == [{"id": 1, "v": "x", "at": datetime(1500, 1, 1)}]
    assert sorted(map(str, job.values(results[1]))) == [
        "{'id': 1, 'a': 1, 'b': None}",
        "{'id': 1, 'a': None, 'b': 1}",
    ]


def failure(job: Job, table: TableSpec) -> ErrorInfo:
    """Load a table that must fail, and check that nothing is left of it."""
    result = job.load_one(table)
    assert (result.status, job.lake.data_keys(), job.lake.uploads()) == ("FAILED", [], [])
    assert result.error is not None
    return result.error


def test_missing_objects_error_lists_existing_neighbours(job: Job, source: Bucket) -> None:
    source.put("exports/orders.csv", "id\n1\n")
    source.put("exports/old/x.csv", "id\n1\n")

    gone = failure(job, source.table(job, source.path("exports/order.csv")))
    unmatched = failure(job, source.table(job, source.path("exports/2026/*.csv")))

    assert f"there is no object or folder `{source.path('exports/order.csv')}`" in gone.message
    assert "holds `old/`, `orders.csv`" in (gone.hint or "")
    assert f"no object matches `{source.path('exports/2026/*.csv')}`" in unmatched.message


def test_denied_s3_read_names_the_action_and_the_resource(job: Job, source: Bucket) -> None:
    outside = source.put("private/a.csv", "id\n1\n")
    bucket = source.lake.seeded.bucket

    listing = failure(job, source.table(job, outside))

    assert listing.exit_code == 3
    assert "access denied" in listing.message
    assert "`s3:ListBucket`" in (listing.hint or "")
    assert f"`arn:aws:s3:::{bucket}`" in (listing.hint or "")
    assert "`private/a.csv" in (listing.hint or "")


def test_the_destinations_own_role_does_not_reach_the_sources_bucket(
    job: Job, source: Bucket
) -> None:
    path = source.put("exports/a.csv", "id\n1\n")

    error = failure(job, job.table(path))

    assert "access denied" in error.message


def test_a_wrong_external_id_stops_before_spark_reads(job: Job, source: Bucket) -> None:
    path = source.put("exports/a.csv", "id\n1\n")
    table = source.table(job, path)
    wrong = replace(files_of(table), credentials=source.credentials("CANARY-wrong"))

    error = failure(job, replace(table, input=wrong))

    assert error.exit_code == 3
    assert "assuming the role" in error.message
    assert "CANARY" not in f"{error.message} {error.hint}"


def test_an_object_that_changes_while_it_is_read_fails_the_table(
    job: Job, source: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source.put("exports/a.parquet", parquet_bytes(1))
    table = source.table(job, path, **BY_SPARK)
    real = stage_parts

    def change_first(*given: Any, **named: Any) -> Any:
        source.put("exports/a.parquet", parquet_bytes(2))
        return real(*given, **named)

    monkeypatch.setattr(write, "stage_parts", change_first)
    error = failure(job, table)

    assert f"the source changed while it was read: `{path}` was written to" in error.message
    assert error.retryable


@pytest.mark.parametrize("removed", [False, True])
def test_object_changed_after_the_listing_is_named(
    job: Job, source: Bucket, monkeypatch: pytest.MonkeyPatch, *, removed: bool
) -> None:
    path = source.put("exports/a.csv", "id\n1\n")

    def and_then(*given: Any, **named: Any) -> tuple[FileState, ...]:
        found = list_files(*given, **named)
        if removed:
            bucket = source.lake.seeded.bucket
            source.lake.server.s3.delete_object(Bucket=bucket, Key="exports/a.csv")
        else:
            source.put("exports/a.csv", "id\nx\n")
        return found

    monkeypatch.setattr(files_source, "list_files", and_then)
    error = failure(job, source.table(job, path))

    what = "was removed" if removed else "was written to"
    assert error.message == f"the source changed while it was read: `{path}` {what}"
    assert error.retryable


def test_spark_properties_hold_a_credential_command_and_no_secret(job: Job, source: Bucket) -> None:
    path = source.put("exports/a.parquet", parquet_bytes(1))
    spec = job.spec(source.table(job, path, **BY_SPARK))
    secrets = [
        source.lake.seeded.external_id,
        source.lake.seeded.base_key.secret_access_key,
        source.lake.seeded.base_key.access_key_id,
    ]

    result = job.run(spec).tables[0]

    assert result.error is None
    folder = Path(spec.result_path).parent
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"0.json", "0.profile"} <= {file.name for file in files}
    for file in files:
        assert not any(secret in file.read_text() for secret in secrets), file
    conf = job.spark.sparkContext._jsc.hadoopConfiguration()
    settings = {
        entry.getKey(): entry.getValue()
        for entry in conf.iterator()
        if source.lake.seeded.bucket in entry.getKey()
    }
    assert settings[f"fs.s3a.bucket.{source.lake.seeded.bucket}.auth.profile.name"] == "lakeload"
    assert not any(secret in str(settings) for secret in secrets)
