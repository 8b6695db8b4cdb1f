"""What a cluster's tasks cannot have: secrets and, for now, files in S3."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from lakeload.config.model import Finding
from lakeload.config.problems import MAX_PROBLEMS
from lakeload.config.secret_names import shown
from lakeload.documents.destination import Destination
from lakeload.documents.modes import valid_tables
from lakeload.documents.spark import master_finding
from lakeload.runtimes import runtime_of
from lakeload.sources.registry import source_type_of
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.traits import FORMATS


def remote_findings(data: dict[str, Any], destination: Destination) -> list[Finding]:
    """Refuse secrets of this machine with a master whose tasks run on others (section 8).

    The source's own credentials count as the destination's do: tasks read with them. So do the
    secrets of an Iceberg catalog: tasks ask it where and how to write.
    `data` is a pipeline's, or for the flag `{"spark": {"master": …}, "source": …, "tables": …}`:
    a master that is none, or not supported, is found too, and input from S3 (decision 0050).
    """
    spark = data.get("spark")
    master = spark.get("master") if isinstance(spark, dict) else None
    if not isinstance(master, str):
        return []
    if finding := master_finding(master):
        return [finding]
    if runtime_of(master).traits.tasks_share_driver:
        return []
    source = source_type_of(data)
    here = {
        name: reference
        for name, reference in chain(
            destination.credentials.references.items(),
            _catalog_references(destination).items(),
            source.references(data.get("source")).items(),
        )
        if reference.kind in ("env", "file")
    }
    found = list(islice(source.remote_findings(valid_tables(data), master), MAX_PROBLEMS))
    if not here:
        return found
    which = ", ".join(f"`{name}: {reference}`" for name, reference in here.items())
    return [
        Finding(
            f"tasks of `{shown(master)}` run on other machines, which cannot read {which}",
            "refer to AWS instead, with `{aws_secret: NAME}` or `{aws_parameter: NAME}`",
            ("spark", "master"),
            "remote-secret",
        ),
        *found,
    ]


def _catalog_references(destination: Destination) -> dict[str, SecretReference]:
    if not FORMATS[destination.table_format].has_catalog:
        return {}
    references = destination.iceberg.catalog.references
    return {f"iceberg.catalog.{name}": reference for name, reference in references.items()}
