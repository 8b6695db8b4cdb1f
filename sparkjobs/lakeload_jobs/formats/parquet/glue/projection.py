"""Athena partition projection: partitions that Athena computes, so that none are registered.

https://docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html; the layout
`yyyy/MM/dd/HH` with one key is AWS's own example for Firehose (reference C12).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.core.names import PARTITION_KEY

ENABLED = "projection.enabled"
TEMPLATE = "storage.location.template"
_KEY = f"projection.{PARTITION_KEY}."
_RANGE = f"{_KEY}range"
_FORMATS = {"DAY": ("yyyy/MM/dd", "DAYS"), "HOUR": ("yyyy/MM/dd/HH", "HOURS")}
_START = re.compile(r"\d{4}(?:/\d{2}){2,3}")


def projection_parameters(
    strategy: PartitionStrategy, location: str, first: str | None
) -> dict[str, str]:
    """Return the table parameters; `first` is the earliest partition, None when there is none yet.

    SYNC_ID is injected: job ids cannot be computed, so every query has to name them.
    """
    template = {ENABLED: "true", TEMPLATE: f"{location}${{{PARTITION_KEY}}}/"}
    if strategy not in _FORMATS:
        return {**template, f"{_KEY}type": "injected"}
    pattern, unit = _FORMATS[strategy]
    date = {
        f"{_KEY}type": "date",
        f"{_KEY}format": pattern,
        f"{_KEY}interval": "1",
        f"{_KEY}interval.unit": unit,
    }
    return {**template, **date, **({_RANGE: f"{first},NOW"} if first else {})}


def describe_projection(parameters: Mapping[str, str]) -> str:
    """Return in words how Athena finds the partitions of a table with these parameters."""
    if parameters.get(ENABLED, "false").lower() != "true":
        return "registered partitions"
    kind = parameters.get(f"{_KEY}type", "none")
    pattern = parameters.get(f"{_KEY}format")
    shown = f"{kind} `{pattern}`" if pattern else kind
    return f"projected partitions ({shown} at `{parameters.get(TEMPLATE, '')}`)"


def widened_range(there: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the range parameter that has to change so that our earliest partition is in it.

    A late load of an old partition moves the start back; nothing moves it forward, and a start
    that is no date (`NOW-3YEARS`) is a choice of its owner.
    """
    if _RANGE not in wanted:
        return {}
    if _RANGE not in there:
        return {_RANGE: wanted[_RANGE]}
    start, comma, end = there[_RANGE].partition(",")
    ours = wanted[_RANGE].partition(",")[0]
    if not _START.fullmatch(start.strip()) or start.strip() <= ours:
        return {}
    return {_RANGE: f"{ours}{comma}{end}"}
