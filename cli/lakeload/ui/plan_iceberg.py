"""The part of a plan that Iceberg tables alone have, as lines of text."""

from __future__ import annotations

from lakeload.formats.plan_model import IcebergPlan
from lakeload.ui.amounts import counted


def iceberg_lines(found: IcebergPlan, mode: str) -> list[str]:
    """Return what a table is now and what would become of it, each a line."""
    lines = [_state(found), _place(found)]
    shape = []
    if found.partition_by:
        shape.append(f"partitioned by {', '.join(found.partition_by)}")
    if found.identifiers:
        shape.append(f"key {', '.join(found.identifiers)}")
    if shape:
        lines.append("; ".join(shape))
    for left in found.branches:
        if left.drops:
            lines.append(f"would drop branch {left.name}")
        else:
            lines += [f"leaves branch {left.name}", "  its attempt may be at work"]
    if mode == "OVERWRITE" and found.exists and found.already is None:
        lines.append("all of its rows would be replaced, in one snapshot")
    return lines


def _state(found: IcebergPlan) -> str:
    if found.exists is None:
        return "Iceberg; only Spark can ask Nessie's native interface what is there"
    if not found.exists:
        return f"Iceberg, would be created (format version {found.format_version})"
    if found.already is not None:
        return f"Iceberg, this job is in: snapshot {found.already}"
    if found.snapshot_id is None:
        return f"Iceberg, exists; branch {found.branch} is empty"
    at = f"branch {found.branch} at snapshot {found.snapshot_id}"
    return f"Iceberg, exists; {at}, {counted(found.rows, 'row')}"


def _place(found: IcebergPlan) -> str:
    return found.location or "its location is chosen by the catalog"
