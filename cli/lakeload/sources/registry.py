"""The types of sources there are: `source.type` of a pipeline names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeload.sources.base import InputFacts, InputType, SourceType
from lakeload.sources.databases.source_type import JDBC
from lakeload.sources.files.rejected import REJECTED
from lakeload.sources.files.source_type import FILES
from lakeload.sources.spark.source_type import SPARK
from lakeload_jobs.contract.spec import ReaderChoice, RejectedInput, TableInput
from lakeload_jobs.core.names import nearest

SOURCES: dict[str, SourceType[Any, Any, Any]] = {
    source.name: source for source in (FILES, SPARK, JDBC)
}


def source_of(read: TableInput) -> InputType[Any]:
    """Return the type that a table's input is of."""
    return REJECTED if read.type == RejectedInput.type else SOURCES[read.type]


def facts_of(read: TableInput, reader: ReaderChoice = "AUTO") -> InputFacts:
    """Return what is known of a table's input without a look at it. `reader`: who is to read."""
    return source_of(read).facts(read, reader)


def source_type_of(data: Mapping[str, Any]) -> SourceType[Any, Any, Any]:
    """Return the type that a pipeline's document names, whatever else is wrong with it.

    Where there is none of that name it is the nearest, else the first: the other settings are then
    checked as those of the type that is most likely meant.
    """
    source = data.get("source")
    given = source.get("type") if isinstance(source, dict) else None
    first = next(iter(SOURCES))
    if not isinstance(given, str):
        return SOURCES[first]
    return SOURCES.get(given) or SOURCES[nearest(given.upper(), SOURCES) or first]
