"""The part of a plan that tells of columns, as lines of text."""

from __future__ import annotations

from lakeload.formats.plan_model import SchemaFound
from lakeload.ui.amounts import counted

SHOWN = 40
"""Columns of a new table that are listed; JSON has all."""


def schema_lines(found: SchemaFound) -> list[str]:
    """Return what a load would do to the columns of a table, each a line."""
    if found.error is not None:
        return ["the columns do not fit"] if found.columns else []
    if not found.columns:
        return ["the source has no columns yet"]
    if found.creates:
        listed = list(found.columns.items())
        lines = [f"{counted(len(listed), 'column')}"]
        lines += [f"  {name} {kind}" for name, kind in listed[:SHOWN]]
        more = len(listed) - SHOWN
        return [*lines, f"  and {more:,} more"] if more > 0 else lines
    if not found.changes:
        return ["columns stay as they are"]
    return ["the load", *(f"  {change}" for change in found.changes)]
