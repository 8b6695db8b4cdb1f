"""Small CSV files, a table for each, and the pipeline that loads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

CSV = {"type": "FILES", "format": "CSV", "options": {"header": True}}


def write_csv_tables(
    folder: Path,
    tables: Mapping[str, int],
    destination: Mapping[str, Any],
    *,
    table: Mapping[str, Any],
    **settings: Any,
) -> Path:
    """Write a new folder of files with so many rows, and return the path of its pipeline. `table`
    is what the document says of each table, `settings` what it says besides."""
    folder.mkdir()
    for name, count in tables.items():
        lines = [f"{row},{name} {row},{row}.50,2026-01-01 00:00:00Z" for row in range(count)]
        text = "\n".join(["id,name,amount,updated_at", *lines, ""])
        (folder / f"{name}.csv").write_text(text)
    document = {
        "version": 1,
        "name": "small-tables",
        "destination": destination,
        "namespace": "bench",
        "source": CSV,
        "tables": [{"table": name, "path": f"{name}.csv", **table} for name in tables],
        "spark": {"master": "local[2]"},
        **settings,
    }
    path = folder / "pipeline.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
