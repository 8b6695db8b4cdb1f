"""What each call of S3 and Glue is answered with: the same at two independent emulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.glue_calls import GlueCalls
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.formats.parquet.glue.tables import WantedTable, partition_input, table_input
from lakeload_jobs.storage.objects import Objects
from tests.integration.permissions.emulators import Emulator, Place
from tests.integration.permissions.test_two_emulators import DIFFERENCES
from tests.servers.ministack import AwsServer
from tests.servers.moto import MotoServer

BODY = b"x" * 100


def _objects(objects: Objects) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield calls of S3 in an order that makes sense, each with its name."""
    yield "get of nothing", lambda: objects.get("a")
    yield "first conditional put", lambda: objects.put_if_absent("a", BODY)
    yield "second conditional put", lambda: objects.put_if_absent("a", b"y")
    yield "what is there", lambda: objects.get("a") == BODY
    yield "find", lambda: _size(objects, "a")
    yield "find of a longer key", lambda: _size(objects, "a/b")
    yield "list", lambda: [entry.key for entry in objects.list("")]
    yield "list after", lambda: [entry.key for entry in objects.list("", start_after="a")]
    yield "folders", lambda: list(objects.list_folders(""))
    yield "delete of another version", lambda: objects.delete("a", '"0123"')
    yield "abort of nothing", lambda: objects.abort_upload("b", "no-such-upload")
    upload = objects.create_upload("b/c", {"lakeload": "test"})
    part = objects.upload_part("b/c", upload, 1, BODY)
    yield "open uploads", lambda: [one.key for one in objects.list_uploads("b/")]
    yield "uploads elsewhere", lambda: [one.key for one in objects.list_uploads("c/")]
    yield "invisible until completed", lambda: objects.find("b/c")
    yield "completion", lambda: objects.complete_upload("b/c", upload, (part,))
    yield "completion again", lambda: objects.complete_upload("b/c", upload, (part,))
    yield "metadata", lambda: getattr(objects.head("b/c"), "metadata", None)
    other = objects.create_upload("a", {})
    late = objects.upload_part("a", other, 1, BODY)
    yield "completion over an object", lambda: objects.complete_upload("a", other, (late,))
    yield "abort", lambda: objects.abort_upload("a", other)
    yield "completion after the abort", lambda: objects.complete_upload("a", other, (late,))
    yield "no uploads", lambda: list(objects.list_uploads(""))
    yield "delete", lambda: objects.delete("a", _tag(objects, "a"))
    yield "delete of nothing", lambda: objects.delete("a", '"0123"')


def _size(objects: Objects, key: str) -> int | None:
    found = objects.find(key)
    return found.size if found else None


def _tag(objects: Objects, key: str) -> str:
    found = objects.find(key)
    return found.etag if found else ""


def _catalog(glue: GlueCalls) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield calls of Glue in an order that makes sense, each with its name."""
    wanted = WantedTable(
        database="supaflow_stores",
        name="orders",
        location="s3://lake/orders/",
        columns=(("id", "bigint"),),
        partition_key=PARTITION_KEY,
        strategy="DAY",
        created_by="test",
    )
    database, name, table = wanted.database, wanted.name, table_input(wanted)
    wider = table_input(replace(wanted, columns=(*wanted.columns, ("added", "string"))))
    first = partition_input(wanted.columns, "2026/11/21", "s3://lake/orders/2026/11/21/")
    second = partition_input(wanted.columns, "2026/11/22", "s3://lake/orders/2026/11/22/")
    yield "absent database", lambda: glue.get_database(database)
    yield "table of no database", lambda: glue.get_table(database, name)
    yield "create table in no database", lambda: glue.create_table(database, table)
    yield "create database", lambda: glue.create_database({"Name": database})
    yield "create database again", lambda: glue.create_database({"Name": database})
    yield "absent table", lambda: glue.get_table(database, name)
    yield "update of no table", lambda: glue.update_table(database, wider, None)
    yield "partition of no table", lambda: glue.get_partition(database, name, "2026/11/21")
    yield "create table", lambda: glue.create_table(database, table)
    yield "create table again", lambda: glue.create_table(database, table)
    yield "absent partition", lambda: glue.get_partition(database, name, "2026/11/21")
    yield "partitions", lambda: glue.create_partitions(database, name, [first])
    yield (
        "partitions again",
        lambda: _codes(glue.create_partitions(database, name, [first, second])),
    )
    yield "partition", lambda: _values(glue.get_partition(database, name, "2026/11/22"))
    version = _version(glue, database, name)
    yield "update", lambda: glue.update_table(database, wider, version)
    yield "update of an old version", lambda: glue.update_table(database, table, version)
    yield "columns", lambda: _columns(glue.get_table(database, name))
    yield "delete table", lambda: glue.delete_table(database, name)
    yield "delete table again", lambda: glue.delete_table(database, name)


def _codes(problems: Any) -> list[tuple[str, str]]:
    return [(problem.value, problem.code) for problem in problems]


def _values(partition: Any) -> Any:
    return partition and partition["Values"]


def _columns(table: Any) -> list[str]:
    return [column["Name"] for column in table["StorageDescriptor"]["Columns"]]


def _version(glue: GlueCalls, database: str, name: str) -> str | None:
    table = glue.get_table(database, name)
    return table.get("VersionId") if table else None


def _answers(calls: Iterator[tuple[str, Callable[[], object]]]) -> dict[str, str]:
    """Return what each call returned, or the code and status that it was refused with."""
    found: dict[str, str] = {}
    for name, call in calls:
        try:
            found[name] = str(call())
        except AwsError as error:
            found[name] = f"{error.code} {error.status}"
        except LakeloadError as error:
            found[name] = type(error).__name__
    return found


@pytest.mark.parametrize("service", ["s3", "glue"])
def test_both_stores_respond_alike_except_for_known_differences(
    service: str, exact_aws: AwsServer, moto: MotoServer, tmp_path: Path
) -> None:
    answers = []
    for emulator in (
        Emulator("ministack", exact_aws.endpoint),
        Emulator("moto", moto.endpoint, moto.enforcing),
    ):
        folder = tmp_path / emulator.name
        folder.mkdir()
        place = Place(emulator, folder)
        session = AwsSession(place.destination)
        glue = GlueCalls(session, "us-east-1", None)
        calls = _objects(Objects(session, place.destination)) if service == "s3" else _catalog(glue)
        answers.append(_answers(calls))
    first, second = answers
    assert first.keys() == second.keys()
    found = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
    known = {
        one["call"]: (one["ministack"], one["moto"])
        for one in DIFFERENCES["calls"]
        if one["service"] == service
    }
    assert found == known
