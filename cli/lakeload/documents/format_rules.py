"""Rules between settings of each table format: one module per format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from lakeload.config.model import Finding
from lakeload.documents import iceberg_rules, parquet_rules
from lakeload.documents.destination import Destination, region_findings, region_notes, role_notes
from lakeload.documents.pipeline import Numbered
from lakeload_jobs.contract.spec import DestinationSpec, TableFormat, TableSpec


class FormatRules(Protocol):
    """The rules of one format. `data` is a document as it was read, valid or not."""

    BLOCK: str
    """The block of the destination that holds its settings; '' for a format without any."""

    def destination_findings(self, data: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield what is wrong between the settings of a destination."""

    def destination_notes(self, model: Destination) -> Iterator[Finding]:
        """Yield what is no mistake in a destination, and yet may surprise."""

    def pipeline_findings(self, tables: Numbered, data: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield what is wrong between the tables' modes and their settings."""

    def pipeline_notes(self, data: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield what is no mistake in a pipeline, and yet may surprise (docs/design-notes.md)."""

    def with_settings(
        self, spec: DestinationSpec, model: Destination, folder: Path
    ) -> DestinationSpec:
        """Return the contract's form with the settings of the format's own block.

        Paths of secret files are relative to `folder`.
        """

    def destination_identity(self, spec: DestinationSpec) -> Mapping[str, Any]:
        """Return the settings of a destination that tell one load from another, for fingerprints.

        Those that are in fingerprints already stay; a later one takes part only where it is given.
        """

    def table_identity(self, table: TableSpec) -> Mapping[str, Any]:
        """Return the same of a table: what takes part beside what does whatever the format is."""

    def uses_glue(self, model: Destination) -> bool:
        """Tell whether tables are registered in AWS Glue."""


FORMAT_RULES: Mapping[TableFormat, FormatRules] = {
    "PARQUET": parquet_rules,
    "ICEBERG": iceberg_rules,
}


def destination_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong between the settings of a destination; of the format's block nothing
    while the format is wrong, and nothing of another format's: that is noted, and no more."""
    yield from region_findings(data)
    name = data.get("table_format", Destination.model_fields["table_format"].default)
    rules = FORMAT_RULES.get(name) if isinstance(name, str) else None  # type: ignore[call-overload]
    if rules is not None:
        yield from rules.destination_findings(data)


def destination_notes(model: Destination) -> Iterator[Finding]:
    """Yield what is no mistake, and yet may surprise; of blocks, those not in use."""
    yield from region_notes(model)
    yield from role_notes(model)
    own = FORMAT_RULES[model.table_format]
    for rules in FORMAT_RULES.values():
        if rules is not own and rules.BLOCK in model.model_fields_set:
            message = f"`{rules.BLOCK}` is ignored, because `table_format` is {model.table_format}"
            yield Finding(message, None, (rules.BLOCK,), "ignored")
    yield from own.destination_notes(model)
