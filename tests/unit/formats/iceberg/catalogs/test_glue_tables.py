"""What a commit writes into Glue beside the place of the metadata."""

from __future__ import annotations

from typing import Any

from lakeload_jobs.core.comments import MAX_COLUMN, MAX_TABLE
from lakeload_jobs.formats.iceberg.catalogs.glue_tables import _table_input
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
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
