"""Samples of a text of OpenMetrics, read by Prometheus's own parser."""

from __future__ import annotations

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def samples(text: str) -> list[Any]:
    """Return the samples, each with its `name`, `labels` and `value`."""
    families: Any = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return [sample for family in families for sample in family.samples]
