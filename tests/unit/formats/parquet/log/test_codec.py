"""The log's formats are final: what is in `tests/cases/records/` must read for ever."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeload_jobs.contract.errors import NewerFormat
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.log.commit_log import Checkpoint, PipelineHistory
from lakeload_jobs.formats.parquet.log.records import (
    CatMarker,
    CleanMarker,
    Column,
    EndMarker,
    FenceRecord,
    GlueTarget,
    LoadRecord,
    LogDamaged,
    LogObject,
    Rejects,
    Target,
    decode,
    decode_record,
    encode,
)
from lakeload_jobs.formats.parquet.log.target_claims import Binding
from lakeload_jobs.sources.files.known_files import by_folder
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.storage.objects import Part

CASES = Path(__file__).parents[4] / "cases" / "records"
AT = datetime(2026, 11, 21, 10, 15, 30, 1, tzinfo=UTC)

LOAD = LoadRecord(
    tool="lakeload 0.1.0",
    pipeline="shop",
    source="public.orders",
    job_id="2026-11-21",
    attempt_id="6f1c7d0e-5d0e-4f0a-9d6e-0c2f6f3a1b2c",
    started_at=AT,
    created_at=datetime(2026, 11, 21, 10, 17, tzinfo=UTC),
    synced=AT,
    mode="APPEND",
    table_handling="FAIL",
    fingerprint="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    target=Target("data-lake/production", "postgres_public", "orders"),
    partition_strategy="HOUR",
    file_name_pattern="part-{supa_job_id}-{seq}",
    partition="2026/11/21/10",
    columns=(Column("id", "bigint"), Column("prix", "decimal(12,2)")),
    column_map={"id": "id", "Prix €": "prix"},
    index="dense",
    rows=3,
    files=(
        StagedFile(
            "data-lake/production/postgres_public/orders/2026/11/21/10/"
            "part-2026-11-21-00000.gzip.parquet",
            "upload-1",
            (Part(1, '"etag-1"', "AAAAAA=="), Part(2, '"etag-2"', "AQAAAA==")),
            3,
            6_000_000,
        ),
    ),
)

GOLDEN: dict[str, LogObject] = {
    "load.json": LOAD,
    "load-with-glue-and-state.json": replace(
        LOAD,
        files=(),
        rows=0,
        index="sparse",
        glue=GlueTarget("supaflow_postgres_public", "orders", "lakeload_partition"),
        state=StateChange(None, {"cursor": "2026-11-21T10:00:00Z", "files": [1, None, True]}),
        inputs=(
            *by_folder(
                (
                    FileState("s3://landing/orders/a.csv", 12, 1_795_251_600_000_000_000, "e-1"),
                    FileState("s3://landing/orders/b.csv", 7, 1_795_253_400_000_000_000, "e-2"),
                )
            ),
        ),
        known=by_folder((FileState("data/orders/a.csv", 12, 1_795_251_600_000_000_001),)),
        author="etl@loader-1",
    ),
    "load-with-rejects.json": replace(
        LOAD,
        index="sparse",
        rejected=Rejects(
            "orders_rejected",
            (Column("source_file", "string"), Column("_supa_index", "bigint")),
            2,
            (
                StagedFile(
                    "data-lake/production/postgres_public/orders_rejected/2026/11/21/10/"
                    "part-2026-11-21-00000.gzip.parquet",
                    "upload-2",
                    (Part(1, '"etag-3"', "AgAAAA=="),),
                    2,
                    4_096,
                ),
            ),
        ),
    ),
    "load-that-retries.json": replace(LOAD, retried="2026-11-20"),
    "load-that-deletes.json": replace(LOAD, deleted_rows=2),
    "fence.json": FenceRecord(
        "lakeload 0.1.0", AT, ("attempt-1", "attempt-2"), "older than 24 h", ("upload-7",)
    ),
    "reset.json": FenceRecord("lakeload 0.1.0", AT, (), "by etl@loader-1", resets="shop"),
    "void.end": EndMarker("lakeload 0.1.0", AT, "void", "all its uploads were aborted", ("a/b",)),
    "partial.end": EndMarker("lakeload 0.1.0", AT, "partial", "accepted", ("a/b",)),
    "void.clean": CleanMarker("lakeload 0.1.0", AT, ("a/c",)),
    "done.cat": CatMarker("lakeload 0.1.0", AT),
    "checkpoint.json": Checkpoint(
        "lakeload 0.1.0",
        3,
        {
            "shop": PipelineHistory(
                "public.orders",
                3,
                {"id": "id"},
                {"job-1": 1, "job-3": 3},
                {"job-2": 2},
                {"c": 9},
                3,
                GlueTarget("supaflow_postgres_public", "orders"),
                "NONE",
            ),
            "none yet": PipelineHistory("public.orders"),
        },
        (Column("id", "bigint"),),
    ),
    "binding.json": Binding("lakeload 0.1.0", "shop", "public.orders", "postgres_public", "orders"),
}

WITHOUT_LATER_FIELDS: dict[str, LogObject] = {
    "load.first.json": LOAD,
    "load-with-glue-and-state.first.json": replace(
        GOLDEN["load-with-glue-and-state.json"],  # type: ignore[type-var]
        glue=GlueTarget("supaflow_postgres_public", "orders"),
        inputs=(),
        known=(),
        author="",
    ),
    "fence.first.json": FenceRecord(
        "lakeload 0.1.0", AT, ("attempt-1", "attempt-2"), "older than 24 h"
    ),
    "checkpoint.first.json": Checkpoint(
        "lakeload 0.1.0",
        3,
        {
            "shop": PipelineHistory(
                "public.orders",
                3,
                {"id": "id"},
                {"job-1": 1, "job-3": 3},
                {"job-2": 2},
                {"c": 9},
                3,
            ),
            "none yet": PipelineHistory("public.orders"),
        },
        (Column("id", "bigint"),),
    ),
}
"""The same objects as the first lakeload wrote them."""


def read(name: str, data: bytes) -> LogObject:
    kind = type({**GOLDEN, **WITHOUT_LATER_FIELDS}[name])
    if kind in (LoadRecord, FenceRecord):
        return decode_record(data, name)
    return decode(kind, data, name)


@pytest.mark.parametrize("name", GOLDEN)
def test_log_object_of_kept_cases_is_unchanged(name: str) -> None:
    text = (CASES / name).read_text(encoding="utf-8")
    assert read(name, text.encode()) == GOLDEN[name]
    assert json.loads(encode(GOLDEN[name])) == json.loads(text)
    assert list(json.loads(encode(GOLDEN[name])))[:2] == ["format", "kind"]


@pytest.mark.parametrize("name", WITHOUT_LATER_FIELDS)
def test_log_of_the_first_version_is_read(name: str) -> None:
    assert read(name, (CASES / name).read_bytes()) == WITHOUT_LATER_FIELDS[name]


def test_every_golden_file_is_read() -> None:
    assert {path.name for path in CASES.iterdir()} == {*GOLDEN, *WITHOUT_LATER_FIELDS}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_newer_format_is_refused_whatever_else_it_holds(name: str) -> None:
    with pytest.raises(NewerFormat, match="newer lakeload") as caught:
        read(name, b'{"format": 4, "kind": "SOMETHING", "more": 1}')
    assert "upgrade" in (caught.value.hint or "")


def test_hand_written_end_marker_is_read() -> None:
    manual = Path(__file__).parents[5] / "docs" / "protocol-parquet.md"
    (text,) = re.findall(r"echo '(.*)' > void.json", manual.read_text(encoding="utf-8"))
    marker = decode(EndMarker, text.encode(), "by hand")
    assert (marker.outcome, marker.reason) == ("void", "uploads lost")
    assert decode(EndMarker, text.replace("void", "partial").encode(), "k").outcome == "partial"


def damaged(change: dict[str, Any]) -> bytes:
    return json.dumps({**json.loads(encode(LOAD)), **change}).encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no `format`"),
        (b'{"kind": "LOAD"}', "no `format`"),
        (b'{"format": "1"}', "no `format`"),
        (b'{"format": 1}', "no `kind`"),
        (b'{"format": 1, "kind": "END"}', "its kind is 'END'"),
        (b'{"format": 1, "kind": "LOAD"}', "missing"),
        (damaged({"surprise": 1}), "unknown key 'surprise'"),
        (damaged({"rows": "3"}), "expected int"),
        (damaged({"synced": "yesterday"}), "yesterday"),
        (damaged({"files": [{"key": "a"}]}), "missing"),
    ],
)
def test_log_object_with_unknown_content_is_rejected(data: bytes, says: str) -> None:
    with pytest.raises(LogDamaged) as caught:
        decode_record(data, "s3://lake/log/1.json")
    assert says in caught.value.message
    assert "s3://lake/log/1.json" in caught.value.message


@given(
    names=st.lists(st.text(), max_size=5),
    state=st.none() | st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
)
def test_a_record_survives_any_name_and_any_state(names: list[str], state: Any) -> None:
    record = replace(
        LOAD,
        source="".join(names),
        column_map={name: name for name in names},
        columns=tuple(Column(name, "string") for name in names),
        state=StateChange(None, state),
    )
    assert decode_record(encode(record), "key") == record
