"""Tables of text files, by the options of their format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakeload_jobs.sources.files.formats.csv.format import CSV
from lakeload_jobs.sources.files.formats.json.format import JSON, NDJSON
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.paths.file_state import FileState


def csv_table(
    files: Sequence[FileState], options: Mapping[str, str], *settings: Any, **changes: Any
) -> TextFiles:
    """Return CSV files that make one table."""
    return TextFiles(tuple(files), CSV.reading(options), *settings, **changes)


def json_table(
    files: Sequence[FileState],
    options: Mapping[str, str],
    *settings: Any,
    lines: bool = False,
    nested_as_text: bool = False,
    **changes: Any,
) -> TextFiles:
    """Return JSON files that make one table; `lines`: each line is a record."""
    reading = (NDJSON if lines else JSON).reading(options, nested_as_text=nested_as_text)
    return TextFiles(tuple(files), reading, *settings, **changes)
