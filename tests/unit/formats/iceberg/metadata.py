"""Iceberg tables as documents, for tests that need no catalog."""

from __future__ import annotations

from typing import Any

from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable

LOCATION = "s3://lake/shop/orders"


def snapshot(number: int, parent: int | None = None, **summary: str) -> dict[str, Any]:
    """Return a snapshot of a minute of its own; `operation` is `append` unless it is given."""
    return {
        "snapshot-id": number,
        "parent-snapshot-id": parent,
        "sequence-number": number,
        "timestamp-ms": 1_795_255_200_000 + number * 60_000,
        "manifest-list": f"{LOCATION}/metadata/snap-{number}.avro",
        "schema-id": 0,
        "summary": {"operation": "append", **{k.replace("__", "."): v for k, v in summary.items()}},
    }


def open_table(
    *snapshots: dict[str, Any],
    properties: dict[str, str] | None = None,
    refs: dict[str, int] | None = None,
) -> ReadTable:
    """Return a table of two columns, a key among them, partitioned by bucket and value."""
    metadata = metadata_of(*snapshots, properties=properties, refs=refs)
    return ReadTable("shop", "orders", metadata, f"{LOCATION}/metadata/3.metadata.json")


def metadata_of(
    *snapshots: dict[str, Any],
    properties: dict[str, str] | None = None,
    refs: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Return the metadata of that table, as its file has it."""
    named = {
        name: {"snapshot-id": number, "type": "branch"} for name, number in (refs or {}).items()
    }
    return {
        "format-version": 2,
        "table-uuid": "3f1e0c5a-7c1e-4f1b-9d55-1f0e6e3b2a10",
        "location": f"{LOCATION}/",
        "last-sequence-number": 9,
        "last-updated-ms": 1_795_255_200_000,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "identifier-field-ids": [1],
                "fields": [
                    {"id": 1, "name": "id", "required": True, "type": "long"},
                    {"id": 2, "name": "price", "required": False, "type": "decimal(12, 2)"},
                ],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [
                    {
                        "source-id": 1,
                        "field-id": 1000,
                        "name": "id_bucket",
                        "transform": "bucket[16]",
                    },
                    {"source-id": 2, "field-id": 1001, "name": "gone", "transform": "void"},
                    {"source-id": 2, "field-id": 1002, "name": "price", "transform": "identity"},
                ],
            }
        ],
        "last-partition-id": 1002,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": properties or {},
        "current-snapshot-id": (refs or {}).get("main", -1),
        "snapshots": list(snapshots),
        "refs": named,
        "snapshot-log": [],
        "metadata-log": [],
    }
