"""Pipelines whose tables were found in their source: what globs stand for, and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from lakeload.config.document import quoted
from lakeload.documents.cross import glue_prefix, pipeline_findings, targets
from lakeload.documents.load import PipelineDocument
from lakeload.documents.pipeline import Table
from lakeload_jobs.contract.errors import InvalidInput

P = TypeVar("P", bound=PipelineDocument)


def with_tables(document: P, tables: tuple[Table, ...], *, keys: bool) -> P:
    """Return a pipeline with the tables that its source has for those that it lists; with `keys`
    they have those of the source, too. Raises `InvalidInput` for what cannot be loaded together."""
    model = document.model
    if tables == model.tables:
        return document
    listed = document.listed or model.tables
    found = replace(document, model=model.model_copy(update={"tables": tables}), listed=listed)
    if keys:
        _check_keys(tables)
    _check_targets(found, listed)
    return found


def _check_targets(document: PipelineDocument, listed: Sequence[Table]) -> None:
    """Raise `InvalidInput` where a table that was found has no target of its own. Its name would
    be numbered, and the number would depend on what other tables there are."""
    model, destination = document.model, document.destination.model
    written = {table.table for table in listed}
    places = targets(
        [table.model_copy(update={"name": table.name or table.source_table})
         for table in model.tables],
        namespace=model.namespace,
        destination_prefix=model.destination_prefix,
        glue_prefix=glue_prefix(destination),
    )  # fmt: skip
    first: dict[tuple[str, str], Table] = {}
    for table, place in zip(model.tables, places, strict=True):
        other = first.setdefault(place.folded, table)
        if other is not table and not {table.table, other.table} <= written:
            raise InvalidInput(
                f"`{other.table}` and `{table.table}` would both be loaded into "
                f"`{'.'.join(filter(None, (place.schema, place.table)))}`",
                hint="add an entry for one of the two, with a `name` or `namespace` of its own, "
                "or leave it out with `exclude`",
            )
    data = {name: getattr(model, name) for name in model.model_fields_set}
    data |= {"source": dict(model.source)}
    for finding in pipeline_findings(data, destination):
        number = finding.at[1] if finding.at[:1] == ("tables",) else None
        about = f"`{model.tables[number].table}`: " if isinstance(number, int) else ""
        raise InvalidInput(f"{about}{finding.message}", hint=finding.hint)


def _check_keys(tables: Sequence[Table]) -> None:
    """Raise `InvalidInput` for tables that need a key and have none."""
    without = [
        (table.table, reason)
        for table in tables
        if (reason := table.key_needed_by(table.mode)) is not None
        and table.finds_key
        # What is not there at all, its own load reports.
        and "primary_key" in table.model_fields_set
        and not table.primary_key
    ]
    if without:
        what = without[0][1]
        names = [name for name, reason in without if reason == what]
        raise InvalidInput(
            f"`{what}` needs a key, and the database has none for {quoted(names, 10)}",
            hint="set `primary_key` for each, in an entry of its own, or load it with another mode"
            if what.startswith("mode")
            else f"set `primary_key` for each, in an entry of its own, or remove `{what}`",
        )
