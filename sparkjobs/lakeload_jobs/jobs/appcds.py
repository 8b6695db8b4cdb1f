"""Training loads for an AppCDS archive, against an AWS of their own."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CONTRACT_VERSION,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    FileFormatName,
    FilesInput,
    JobSpec,
    PartitionField,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.formats.base import ExpectedColumns, Reporter
from lakeload_jobs.formats.data_files.parts import LoadedRows, of_frame
from lakeload_jobs.formats.iceberg.format import IcebergFormat
from lakeload_jobs.formats.load_table import TableLoad, load_table
from lakeload_jobs.formats.read_rows import prepare_rows
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.progress import Progress
from lakeload_jobs.session import build_session
from lakeload_jobs.sources.base import NO_COLUMNS
from lakeload_jobs.sources.registry import Sources

_XML = "application/xml"
_JSON = "application/x-amz-json-1.1"


class TrainingAws:
    """The stand-in, from `with` to its end; `endpoint` is its URL."""

    def __init__(self) -> None:
        """Take a free port of the loopback."""
        self.objects: dict[str, bytes] = {}
        self.databases: dict[str, dict[str, Any]] = {}
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Answer from now on."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def glue(self, action: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Answer one action of Glue; None for what is not there."""
        if action == "CreateDatabase":
            self.databases[request["DatabaseInput"]["Name"]] = request["DatabaseInput"]
            return {}
        if action == "GetDatabase":
            database = self.databases.get(request["Name"])
            return None if database is None else {"Database": database}
        schema = request["DatabaseName"]
        if action in ("CreateTable", "UpdateTable"):
            given = request["TableInput"]
            before = self.tables.get((schema, given["Name"]), {"VersionId": "-1"})
            version = str(int(before["VersionId"]) + 1)
            kept = {**given, "DatabaseName": schema, "VersionId": version}
            self.tables[schema, given["Name"]] = kept
            return {}
        table = self.tables.get((schema, request["Name"]))
        return None if table is None else {"Table": table}


def _handler(aws: TrainingAws) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            target = self.headers.get("X-Amz-Target", "")
            if not target:
                self._answer(200, _role(), _XML)
                return
            answer = aws.glue(target.rpartition(".")[2], json.loads(body))
            if answer is None:
                missing = {"__type": "EntityNotFoundException", "Message": "not found"}
                self._answer(400, json.dumps(missing).encode(), _JSON)
            else:
                self._answer(200, json.dumps(answer).encode(), _JSON)

        def do_PUT(self) -> None:
            body = self._body()
            if "aws-chunked" in self.headers.get("Content-Encoding", ""):
                body = _without_chunks(body)
            aws.objects[self._key()] = body
            self._answer(200, b"", _XML, ETag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')

        def do_GET(self) -> None:
            found = aws.objects.get(self._key())
            if found is None:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", _XML)
                return
            wanted = self.headers.get("Range", "")
            if not wanted:
                self._answer(200, found, "binary/octet-stream")
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, len(found) - int(last))
            end = min(int(last), len(found) - 1) if first and last else len(found) - 1
            place = f"bytes {begin}-{end}/{len(found)}"
            part = found[begin : end + 1]
            self._answer(206, part, "binary/octet-stream", **{"Content-Range": place})

        def do_HEAD(self) -> None:
            found = aws.objects.get(self._key())
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()

        def do_DELETE(self) -> None:
            aws.objects.pop(self._key(), None)
            self._answer(204, b"", _XML)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: spark.log is for Spark."""

        def _key(self) -> str:
            return unquote(urlsplit(self.path).path)

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))

        def _answer(self, status: int, body: bytes, kind: str, **headers: str) -> None:
            self.send_response(status)
            now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
            for name, value in {"Content-Type": kind, "Last-Modified": now, **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _without_chunks(body: bytes) -> bytes:
    """Return what an upload in signed chunks holds: https://docs.aws.amazon.com/AmazonS3/latest/API/
    sigv4-streaming-trailers.html."""
    found, rest = [], body
    while rest:
        head, _, rest = rest.partition(b"\r\n")
        size = int(head.partition(b";")[0] or b"0", 16)
        if size == 0:
            break
        found.append(rest[:size])
        rest = rest[size + 2 :]
    return b"".join(found)


def _role() -> bytes:
    expires = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    role = "arn:aws:sts::000000000000:assumed-role/training/training"
    return (
        '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>'
        "<Credentials><AccessKeyId>training</AccessKeyId>"
        "<SecretAccessKey>training</SecretAccessKey><SessionToken>training</SessionToken>"
        f"<Expiration>{expires}</Expiration></Credentials>"
        f"<AssumedRoleUser><Arn>{role}</Arn><AssumedRoleId>training:training</AssumedRoleId>"
        "</AssumedRoleUser></AssumeRoleResult></AssumeRoleResponse>"
    ).encode()


_ROLE = "arn:aws:iam::000000000000:role/training"
_JOBS = ("first", "second")


def is_for_iceberg(spark: SparkSession) -> bool:
    """Whether this Spark was started as it is for loads of Iceberg tables."""
    return "iceberg" in (spark.conf.get("spark.sql.extensions", "") or "")


def load_iceberg_tables(spark: SparkSession, spec: JobSpec, folder: Path) -> None:
    """Load the tables of `spec` into a lake that is gone afterwards. Raises what a load raises."""
    with TrainingAws() as aws:
        spec = replace(
            spec,
            # Branches are named after it.
            attempt_id=str(uuid.uuid4()),
            destination=_destination(aws.endpoint, folder),
            nested="JSON",
        )
        for job in _JOBS:
            tables = tuple(_table(table, merged=bool(n)) for n, table in enumerate(spec.tables))
            attempt = replace(spec, job_id=job, tables=tables)
            aws_session = AwsSession(attempt.destination, label=attempt.attempt_id)
            with closing(IcebergFormat().connect(spark, attempt, aws_session)) as session:
                sources = Sources(attempt, aws_session)
                for table in tables:
                    load_table(TableLoad(session, attempt, table, sources.of(table), Reporter()))


def _table(table: TableSpec, *, merged: bool) -> TableSpec:
    if merged:
        return replace(table, mode="UPSERT", cursor="happened", primary_key=("id",))
    # Classes are those of Spark's writer, which tasks do without.
    return replace(
        table,
        partition_by=(PartitionField("bucket", "id", 2),),
        table_properties={"write.parquet.page-row-limit": "20000"},
    )


def _destination(endpoint: str, folder: Path) -> DestinationSpec:
    key = folder / "key"
    key.write_text("training", encoding="utf-8")
    reference = SecretReference("file", str(key))
    return DestinationSpec(
        bucket="training",
        region="us-east-1",
        credentials=CredentialsSpec(
            role_arn=_ROLE, access_key_id=reference, secret_access_key=reference
        ),
        endpoints=EndpointsSpec(s3=endpoint, sts=endpoint, glue=endpoint),
        table_format="ICEBERG",
    )


_ROWS = 200
_SAMPLES: tuple[tuple[FileFormatName, str, dict[str, str]], ...] = (
    ("CSV", "sample.csv", {"header": "true", "inferSchema": "true"}),
    ("NDJSON", "sample.ndjson", {}),
    ("PARQUET", "sample.parquet", {}),
)


def main(spec_path: str) -> int:
    """Load small files that are made beside `spec_path`; returns the process's exit status."""
    folder = Path(spec_path).parent
    _write_samples(folder)
    spec = _spec(folder)
    spark = build_session(spec)
    with EventLog(spec.events_path) as events, Progress(spark.sparkContext, events):
        for table in spec.tables:
            _load(spark, spec, table)
        if is_for_iceberg(spark):
            load_iceberg_tables(spark, spec, folder)
    return 0


def _load(spark: SparkSession, spec: JobSpec, table: TableSpec) -> None:
    bookmark = Bookmark(None, first_run=True, next_number=1, evidence=lambda since: ())
    sources = Sources(spec, AwsSession(spec.destination))
    rows = sources.of(table).slice(bookmark).open(spark, NO_COLUMNS)
    prepared = prepare_rows(spec, table, rows, ExpectedColumns())
    of_frame(prepared.frame).results(spark, _count)
    rows.check_unchanged()


def _count(part: int, rows: LoadedRows) -> int:
    return rows.count()


def _write_samples(folder: Path) -> None:
    rows = [
        {
            "id": number,
            "name": f"name {number}",
            "amount": number / 4,
            "happened": f"2026-01-01T00:00:{number % 60:02}Z",
            "day": "2026-01-01",
            "is_new": number % 2 == 0,
        }
        for number in range(_ROWS)
    ]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "sample.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    documents = "".join(json.dumps({**row, "tags": [{"k": "v"}]}) + "\n" for row in rows)
    (folder / "sample.ndjson").write_text(documents, encoding="utf-8")
    table = pa.Table.from_pylist(
        [{**row, "happened": datetime(2026, 1, 1, tzinfo=UTC)} for row in rows]
    )
    pq.write_table(table, folder / "sample.parquet")


def _spec(folder: Path) -> JobSpec:
    return JobSpec(
        contract=CONTRACT_VERSION,
        pipeline="training",
        job_id="training",
        attempt_id="training",
        synced=datetime.now(UTC),
        destination=DestinationSpec(bucket="nowhere", region="us-east-1"),
        tables=tuple(
            TableSpec(
                source=name,
                schema="training",
                table=name.replace(".", "_"),
                input=FilesInput(kind, (str(folder / name),), options),
                fingerprint="",
                primary_key=("id",),
            )
            for kind, name, options in _SAMPLES
        ),
        events_path=str(folder / "events.jsonl"),
        result_path=str(folder / "result.json"),
        reader="JVM",  # What Arrow reads needs no class of Java.
    )
