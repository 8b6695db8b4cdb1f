"""Records of CSV files that are set aside: each in its place, with its line and its text."""

from __future__ import annotations

import errno
import gzip
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec, RejectLimit
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.sources import batch_sizes
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.files.formats.csv import reader as csv_files
from lakeload_jobs.sources.files.formats.csv.records import Blocks
from lakeload_jobs.sources.part_sizes import ONE_TASK, Parallelism
from lakeload_jobs.sources.paths.file_state import is_damage
from tests.unit.sources.files.formats.csv.test_table import Folder, rows_of, types
from tests.unit.sources.files.formats.json.test_table import Folder as JsonFolder

ALL = RejectLimit(percent=100)
WHOLE = "a whole number from -9223372036854775808 to 9223372036854775807"
NUMBERS = ColumnsSpec(types={"n": "bigint"})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def quarantined(folder: Folder, **changes: Any) -> list[Any]:
    given = {"on_bad_value": "QUARANTINE", "max_rejected": ALL, **changes}
    return folder.rows(**given)


def rejects(rows: list[Any]) -> list[dict[str, Any]]:
    found = (row[REJECTED_HELPER] for row in rows)
    return [{k: v for k, v in one.items() if v is not None} for one in found if one]


def test_every_record_keeps_its_place(folder: Folder) -> None:
    path = folder.put("a.csv", 'id,n\n1\n2,3\n4,x\n5,6,7\n"8","9"y\n10,"1\n1"\n12,13\n')

    rows = quarantined(folder, columns=NUMBERS)

    assert [row["id"] for row in rows] == [None, 2, 4, None, None, 10, 12]
    assert [bool(row[REJECTED_HELPER]) for row in rows] == [1, 0, 1, 1, 1, 1, 0]
    here = {"source_file": path, "source_columns": '["id", "n"]'}
    assert rejects(rows) == [
        here
        | {"source_line": 2, "reason": "it has 1 value, and 2 are expected", "raw_record": "1"},
        here
        | {
            "source_line": 4,
            "column_name": "n",
            "column_value": "x",
            "reason": f"`x` is not {WHOLE}",
            "raw_record": "4,x",
        },
        here
        | {
            "source_line": 5,
            "reason": "it has 3 values, and 2 are expected",
            "raw_record": "5,6,7",
        },
        here
        | {
            "source_line": 6,
            "reason": "text follows a closing quote",
            "raw_record": '"8","9"y',
        },
        here
        | {
            "source_line": 7,
            "column_name": "n",
            "column_value": "1\n1",
            "reason": f"`1\\n1` is not {WHOLE}",
            "raw_record": '10,"1\n1"',
        },
    ]


def test_reject_keeps_undecodable_bytes(folder: Folder) -> None:
    folder.put("a.csv", b"id,n\n1,caf\xe9\n2,x\n")

    (one,) = rejects(quarantined(folder))

    assert one["raw_bytes"] == b"1,caf\xe9"
    assert one["raw_record"] == "1,caf\\xe9"


def test_type_of_the_table_rejects_a_value(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1,2\n3,x\n")

    (one,) = rejects(quarantined(folder, recorded={"n": "bigint"}))

    assert (one["source_line"], one["column_name"], one["column_value"]) == (3, "n", "x")


def test_the_types_come_from_the_good_records(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1,2\nx,y,z\n3,4\n")

    table = folder.open(on_bad_value="QUARANTINE", max_rejected=ALL)

    assert {**types(table), REJECTED_HELPER: ""} == {
        "id": "int64",
        "n": "int64",
        REJECTED_HELPER: "",
    }


@pytest.mark.parametrize(("limit", "fails"), [(2, False), (1, True), (0, True)])
def test_more_broken_records_than_allowed_fail_before_anything_is_written(
    folder: Folder, limit: int, fails: bool
) -> None:
    folder.put("a.csv", "id,n\n1\n2,3\n4\n")

    if not fails:
        assert len(rejects(quarantined(folder, max_rejected=RejectLimit(rows=limit)))) == 2
        return
    failure = folder.failure(on_bad_value="QUARANTINE", max_rejected=RejectLimit(rows=limit))
    assert "2 of 3 records (66.7 %) cannot be read" in failure.message
    assert "line 2: it has 1 value, and 2 are expected: `1`; reading `" in failure.message
    assert "`max_rejected`" in (failure.hint or "")


def test_a_quote_that_is_never_closed_counts_as_the_lines_it_takes_in(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n" + "1,2\n" * 500 + '3,"4\n' + "5,6\n" * 499)

    failure = folder.failure(on_bad_value="QUARANTINE", max_rejected=RejectLimit(percent=10))
    rows = quarantined(folder)

    assert "500 of 1,000 records (50 %) cannot be read" in failure.message
    assert len(rows) == 501
    assert rejects(rows)[0]["raw_record"].count("5,6") == 499


def test_rejects_do_not_depend_on_the_parts_of_a_file(folder: Folder) -> None:
    seeded = random.Random(7)  # noqa: S311
    lines = [
        seeded.choice(["1,2", "1,2", "1,2", '3,"4\n5"', "6", "7,x", '"8" y,9', "\xe9,1"])
        for _ in range(400)
    ]
    folder.put("a.csv", "id,n\n" + "\n".join(lines) + "\n")
    given: dict[str, Any] = {"columns": NUMBERS, "on_bad_value": "QUARANTINE", "max_rejected": ALL}

    whole = rows_of(folder.open(**given))
    cut = rows_of(folder.open(None, Parallelism(7, 300, 64), **given))

    assert cut == whole
    assert len(whole) == len(lines)
    assert len(rejects(whole)) == sum(line in ("6", "7,x", '"8" y,9', '3,"4\n5"') for line in lines)


def test_null_still_refuses_a_broken_record(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1\n")

    with pytest.raises(LoadFailed, match="it has 1 value"):
        folder.rows(on_bad_value="NULL", max_rejected=ALL)


def test_records_of_json_keep_their_places(tmp_path: Path) -> None:
    folder = JsonFolder(tmp_path)
    path = folder.put("a.ndjson", '{"n": 1\n\n{"n": 2}\n {"n": "x", "s": {}}\n[]\n{"n": 3}\n')

    table = folder.open(on_bad_value="QUARANTINE", max_rejected=ALL, columns=NUMBERS)
    rows = rows_of(table)

    assert [row["n"] for row in rows] == [None, 2, None, None, 3]
    here = {"source_file": path, "source_columns": '["n", "s"]'}
    assert rejects(rows) == [
        here
        | {
            "source_line": 1,
            "reason": "it is not JSON: expecting ',' delimiter at character 8",
            "raw_record": '{"n": 1',
        },
        here
        | {
            "source_line": 4,
            "column_name": "n",
            "column_value": '"x"',
            "reason": f"`x` is not {WHOLE}",
            "raw_record": '{"n": "x", "s": {}}',
        },
        here
        | {
            "source_line": 5,
            "reason": "it is a list, and an object is expected",
            "raw_record": "[]",
        },
    ]
    with pytest.raises(LoadFailed):
        folder.open(on_bad_value="QUARANTINE", max_rejected=RejectLimit(rows=1))


DAMAGED = gzip.compress(b"id,n\n" + b"7,8\n" * 5_000, mtime=0)[:-20]
POISON: dict[str, bytes] = {
    "damaged.csv.gz": DAMAGED,
    "header.csv": b"i\xe9d,n\n1,2\n",
    "quoted_header.csv": b'"id,n\n1,2\n',
    "excel.csv": b"sep=;\nid;n\n1;2\n",
    "wide.csv": "id,n\n1,2\n".encode("utf-16-le"),
    "packed.csv": b"\x04\x22\x4d\x18....",
}


@pytest.mark.parametrize("name", POISON)
def test_a_file_that_cannot_be_read_is_one_rejected_record(folder: Folder, name: str) -> None:
    folder.put("a.csv", "id,n\n1,2\n")
    path = folder.put(name, POISON[name])
    folder.put("z.csv", "id,n\n3,4\n")

    with pytest.raises(UnreadableFile) as failed:
        folder.rows()
    with pytest.raises(LoadFailed, match=r"1 of 3 records .* cannot be read"):
        folder.open(on_bad_value="QUARANTINE", max_rejected=RejectLimit(rows=0))
    table = folder.open(on_bad_value="QUARANTINE", max_rejected=RejectLimit(rows=1))
    rows = rows_of(table)

    why = failed.value.why
    assert failed.value.message == f"reading `{path}`: {why}"
    assert [(row["id"], row["n"]) for row in rows] == [(1, 2), (None, None), (3, 4)]
    assert rejects(rows) == [{"source_file": path, "reason": why}]
    assert table.splits.counts == (3,)
    assert table.warnings == (f"`{path}` was set aside as a whole: {why}",)


def test_a_file_that_is_damaged_behind_good_records_is_set_aside_whole(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 3_000)
    small = partial(Blocks, size=1_000, least=500)
    monkeypatch.setattr(csv_files, "Blocks", small)
    path = folder.put("a.csv", "id,n\n" + "1,2\n" * 2_000 + '3,"' + "x" * 200_000)
    folder.put("b.csv", "id,n\n3,4\n")

    for parallelism in (ONE_TASK, Parallelism(7, 300, 64)):
        rows = rows_of(folder.open(None, parallelism, on_bad_value="QUARANTINE", max_rejected=ALL))
        assert [row["id"] for row in rows] == [None, 3]
        assert [one["source_file"] for one in rejects(rows)] == [path]


def test_a_load_of_nothing_but_unreadable_files_has_no_columns(folder: Folder) -> None:
    folder.put("a.csv.gz", DAMAGED)

    table = folder.open(
        on_bad_value="QUARANTINE", max_rejected=ALL, recorded={"id": "bigint", "n": "string"}
    )

    assert table.names == ()
    assert table.schema.names == [REJECTED_HELPER]
    assert len(rejects(rows_of(table))) == 1


@pytest.mark.parametrize(
    "text",
    ['[{"n": 1}, {"n": 2}', '[{"n": 1}] [', "[1]}", '{"a": [{"n": 1}'],
)
def test_a_json_file_that_is_not_closed_is_set_aside(tmp_path: Path, text: str) -> None:
    folder = JsonFolder(tmp_path)
    path = folder.put("a.json", text)
    folder.put("b.json", '[{"n": 3}]')

    table = folder.open(lines=False, on_bad_value="QUARANTINE", max_rejected=ALL)

    rows = rows_of(table)
    assert [row["n"] for row in rows] == [None, 3]
    assert [one["source_file"] for one in rejects(rows)] == [path]


def test_a_file_that_may_not_be_opened_is_not_set_aside(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1,2\n")
    folder.put("b.csv", "id,n\n1,2\n")

    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", denied)
        with pytest.raises(LoadFailed, match="Permission denied") as failed:
            folder.open(on_bad_value="QUARANTINE", max_rejected=ALL)

    assert not isinstance(failed.value, UnreadableFile)


@pytest.mark.parametrize(
    ("error", "damage"),
    [
        (gzip.BadGzipFile("not a gzipped file"), True),
        (EOFError("ended"), True),
        (OSError("Invalid data stream"), True),
        (pa.ArrowInvalid("no footer"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (TimeoutError("timed out"), False),
        (ConnectionResetError(errno.ECONNRESET, "reset"), False),
        (pa.ArrowMemoryError("malloc"), False),
    ],
)
def test_errors_of_the_system_are_no_damage(error: Exception, damage: bool) -> None:
    assert is_damage(error) is damage


def test_rejects_of_a_dump_are_records_as_they_are_written(folder: Folder) -> None:
    folder.put("a.txt", "1|x\n2|a\\|b|c\r\n3\\\n|y\r\nz|1\n")
    options = {"header": "false", "backslash_escapes": "true", "separator": "|"}
    types = ColumnsSpec(types={"_c0": "bigint"})

    table = folder.open(
        options,
        columns=types,
        on_bad_value="QUARANTINE",
        max_rejected=RejectLimit(percent=100),
    )

    rejects = [row[REJECTED_HELPER] for row in rows_of(table)]
    assert [reject and (reject["source_line"], reject["raw_record"]) for reject in rejects] == [
        None,
        (2, "2|a\\|b|c\r"),
        (3, "3\\\n|y\r"),
        (5, "z|1"),
    ]
