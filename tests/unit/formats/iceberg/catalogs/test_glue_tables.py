"""What a commit writes into Glue beside the place of the metadata."""

from __future__ import annotations

from typing import Any

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.core.comments import MAX_COLUMN, MAX_TABLE
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import _outcome, _table_input
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import Json

PLACE = "s3://lake/shop/orders/metadata/00002-b.metadata.json"


def metadata(*fields: Json, **properties: str) -> Json:
    return {
        "location": "s3://lake/shop/orders",
        "current-schema-id": 0,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": list(fields)}],
        "properties": properties,
    }


def column(kind: Any, **more: str) -> Json:
    return {"id": 1, "name": "c", "required": False, "type": kind, **more}


def shown(field: Json) -> Any:
    (found,) = _table_input("orders", metadata(field), PLACE, None)["StorageDescriptor"]["Columns"]
    return found


def test_comments_that_glue_refuses_are_cut_and_absent_ones_are_left_out() -> None:
    long = shown(column("long", doc="two\nlines " + "x" * 400))["Comment"]
    assert long.startswith("two lines x")
    assert len(long) == MAX_COLUMN
    assert "Comment" not in shown(column("long"))
    made = _table_input("orders", metadata(comment="y" * 3000), PLACE, None)
    assert len(made["Description"]) == MAX_TABLE


def test_types_have_the_names_of_hive() -> None:
    fields = [column("timestamptz"), {**column("decimal(9, 2)"), "name": "d"}]
    struct = {"type": "struct", "fields": fields}
    items = {"type": "list", "element-id": 2, "element": struct}
    assert shown(column(items))["Type"] == "array<struct<c:timestamp,d:decimal(9,2)>>"
    pairs = {"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": "uuid"}
    assert shown(column(pairs))["Type"] == "map<string,string>"
    assert shown(column("fixed[4]"))["Type"] == "binary"


def test_what_others_keep_in_glue_stays() -> None:
    held = {
        "Owner": "team",
        "Description": "theirs",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": "old", "theirs": "1"},
    }
    before = ReadTable("shop", "orders", metadata(), "old", held)
    made = _table_input("orders", metadata(column("long")), PLACE, before)
    assert (made["Owner"], made["Description"]) == ("team", "theirs")
    assert made["Parameters"] == {
        "table_type": "ICEBERG",
        "theirs": "1",
        "metadata_location": PLACE,
        "previous_metadata_location": "old",
    }


@pytest.mark.parametrize(
    ("code", "status", "overtaken"),
    [
        # The client may have sent the request twice, and the first of them is in.
        ("ConcurrentModificationException", 400, True),
        ("OperationTimeoutException", 400, False),
        ("InternalServiceException", 500, False),
        ("ReadTimeoutError", None, False),
    ],
)
def test_commit_that_may_be_in_is_unknown(code: str, status: int | None, overtaken: bool) -> None:
    with pytest.raises(CommitUnknown) as raised, _outcome():
        raise AwsError("changing `orders`", code=code, status=status)
    assert raised.value.overtaken is overtaken


def test_commit_that_glue_has_not_looked_at_may_be_sent_again_and_a_refused_one_may_not() -> None:
    with pytest.raises(CommitRejected) as raised, _outcome():
        raise AwsError("changing `orders`", code="ThrottlingException", status=400)
    assert raised.value.busy
    with pytest.raises(AwsError), _outcome():
        raise AwsError("changing `orders`", code="AccessDeniedException", status=400)
