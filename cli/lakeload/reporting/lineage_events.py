"""OpenLineage events with the official client, and the client itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from openlineage.client.client import OpenLineageClient
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    set_producer,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    sql_job,
    storage_dataset,
    symlinks_dataset,
    tags_run,
)
from openlineage.client.transport import Transport
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpConfig,
    HttpTransport,
    TokenProvider,
)
from openlineage.client.uuid import generate_static_uuid

from lakeload.config.secret_names import masked
from lakeload.policy.iam import catalog_owner, uses_glue
from lakeload.policy.model import place
from lakeload.reporting.delivery import (
    REQUEST_SECONDS,
    Send,
    describe_error,
    not_sent,
    status_of,
)
from lakeload.reporting.job import Parent, ReportedJob
from lakeload.sources.datasets import Alias, Dataset, dataset_of_url
from lakeload.sources.registry import facts_of
from lakeload_jobs import __version__
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import catalog_of, format_of
from lakeload_jobs.core.layout import TableLocation

if TYPE_CHECKING:
    from lakeload.reporting.lineage import Moment, Receiver

PRODUCER = f"urn:lakeload:{__version__}"
_INTEGRATION = "LAKELOAD"
_INPUTS_OF_A_COLUMN = 20
"""A column of a table that reads more datasets has the lineage of so many."""


def connect(
    job: ReportedJob, receiver: Receiver, parents: tuple[Parent, Parent] | None
) -> Send[Moment]:
    """Return what sends an event. Raises what the client raises for its configuration."""
    # Its warnings would be on the terminal, and its debug lines have whole events.
    logging.getLogger("openlineage").setLevel(logging.CRITICAL)
    set_producer(PRODUCER)
    client = OpenLineageClient(transport=_transport(receiver))
    events = Events(job, receiver.namespace, parents)

    def send(moment: Moment) -> None:
        event = events.event(moment)
        try:
            client.emit(event)
        except Exception as error:  # noqa: BLE001 - of whatever transport
            raise not_sent(status_of(error), describe_error(error)) from None

    return send


def _transport(receiver: Receiver) -> Transport | None:
    """Return how events are sent; None where the client's own configuration says it."""
    if receiver.file is not None:
        return FileTransport(FileConfig(receiver.file, append=True))
    if receiver.url is None:
        return None
    token = receiver.token
    auth = ApiKeyTokenProvider({"apiKey": token.reveal()}) if token else TokenProvider({})
    headers = {name: value.reveal() for name, value in (receiver.headers or {}).items()}
    config = HttpConfig(
        url=f"{receiver.url}/",
        endpoint=receiver.endpoint,
        timeout=REQUEST_SECONDS,
        auth=auth,
        custom_headers=headers,
        # Attempts that fail are repeated while the job runs (`Delivery`).
        retry={"total": 0},
    )
    return HttpTransport(config)


class Events:
    """The events of one job: that of the pipeline is the parent of those of its tables."""

    def __init__(
        self, job: ReportedJob, namespace: str, parents: tuple[Parent, Parent] | None
    ) -> None:
        self._job = job
        self._namespace = namespace
        own = Parent(namespace, job.pipeline, self._run_id(job.pipeline))
        self._parents = parents
        self._parents_of_tables = (own, parents[1] if parents else own)

    def event(self, moment: Moment) -> RunEvent:
        """Return one event."""
        table = moment.table
        name = self._job.pipeline if table is None else f"{self._job.pipeline}.{table.target}"
        parents = self._parents if table is None else self._parents_of_tables
        run_facets = self._run_facets(parents, moment.error)
        inputs, outputs = self._datasets(table, moment.result or {}) if table else ([], [])
        return RunEvent(
            eventType=RunState(moment.state),
            eventTime=moment.at.astimezone(UTC).isoformat(),
            run=Run(self._run_id(name), run_facets),
            job=Job(self._namespace, name, _job_facets(table)),
            inputs=inputs,
            outputs=outputs,
            producer=PRODUCER,
        )

    def _run_id(self, name: str) -> str:
        """Return the id of a run: that of a job of this name in this attempt."""
        known = f"{self._namespace}/{name}/{self._job.attempt_id}"
        return str(generate_static_uuid(self._job.started, known.encode()))

    def _run_facets(
        self, parents: tuple[Parent, Parent] | None, error: str | None
    ) -> dict[str, RunFacet]:
        found: dict[str, RunFacet] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=version("pyspark"), name="spark", openlineageAdapterVersion=__version__
            ),
            "tags": tags_run.TagsRunFacet(
                tags=[
                    tags_run.TagsRunFacetFields(name, value, _INTEGRATION)
                    for name, value in (
                        ("job_id", self._job.job_id),
                        ("attempt_id", self._job.attempt_id),
                    )
                ]
            ),
        }
        if parents is not None:
            parent, root = parents
            found["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(parent.run_id, None),
                job=parent_run.Job(parent.namespace, parent.name, None),
                root=parent_run.Root(
                    run=parent_run.RootRun(root.run_id, None),
                    job=parent_run.RootJob(root.namespace, root.name, None),
                ),
            )
        if error is not None:
            found["errorMessage"] = error_message_run.ErrorMessageRunFacet(masked(error), "PYTHON")
        return found

    def _datasets(
        self, table: TableSpec, result: Mapping[str, Any]
    ) -> tuple[list[InputDataset], list[OutputDataset]]:
        sources = self._job.inputs.get(table.source, ())
        columns: Sequence[Mapping[str, Any]] = result.get("columns") or ()
        names = [column["source"] for column in columns if column["source"] is not None]
        read: dict[str, DatasetFacet] = {}
        if names:
            read["schema"] = schema_dataset.SchemaDatasetFacet(
                [schema_dataset.SchemaDatasetFacetFields(name) for name in names]
            )
        inputs = [InputDataset(one.namespace, one.name, facets={**read}) for one in sources]
        target = lake_dataset(self._job.destination, table, result.get("location"))
        if target is None:
            return inputs, []
        facets = _table_facets(target, result)
        if columns:
            facets["schema"] = _schema(columns)
        if names and sources:
            facets["columnLineage"] = _column_lineage(table, columns, sources)
        statistics = {"outputStatistics": _statistics(result)} if result else {}
        output = OutputDataset(
            target.namespace, target.name, facets=facets, outputFacets={**statistics}
        )
        return inputs, [output]


def _job_facets(table: TableSpec | None) -> dict[str, JobFacet]:
    kind = "PIPELINE" if table is None else "TABLE"
    found: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet("BATCH", _INTEGRATION, kind)
    }
    read = facts_of(table.input).database if table else None
    if read is not None and read.query is not None:
        found["sql"] = sql_job.SQLJobFacet(masked(read.query))
    return found


def _table_facets(target: Dataset, result: Mapping[str, Any]) -> dict[str, DatasetFacet]:
    found: dict[str, DatasetFacet] = {}
    if target.aliases:
        found["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(
            [
                symlinks_dataset.Identifier(one.namespace, one.name, "TABLE")
                for one in target.aliases
            ]
        )
    if target.storage is not None:
        found["storage"] = storage_dataset.StorageDatasetFacet(target.storage, "parquet")
    if result.get("snapshot_id") is not None:
        snapshot = str(result["snapshot_id"])
        found["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(snapshot)
    return found


def _schema(columns: Sequence[Mapping[str, Any]]) -> schema_dataset.SchemaDatasetFacet:
    return schema_dataset.SchemaDatasetFacet(
        [
            schema_dataset.SchemaDatasetFacetFields(column["name"], column["type"])
            for column in columns
        ]
    )


def _column_lineage(
    table: TableSpec, columns: Sequence[Mapping[str, Any]], sources: Sequence[Dataset]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """Return which column of the source each column has its values of."""
    cast = table.columns.types or {}
    fields = {}
    for column in columns:
        source = column["source"]
        if source is None:
            continue
        change = column_lineage_dataset.Transformation("DIRECT", "IDENTITY")
        if source in cast:
            told = f"cast to {column['type']}"
            change = column_lineage_dataset.Transformation("DIRECT", "TRANSFORMATION", told)
        fields[column["name"]] = column_lineage_dataset.Fields(
            [
                column_lineage_dataset.InputField(one.namespace, one.name, source, [change])
                for one in sources[:_INPUTS_OF_A_COLUMN]
            ]
        )
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields)


def _statistics(
    result: Mapping[str, Any],
) -> output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet:
    """Return what this run has written: of a job that was loaded already, nothing."""
    none = result["already"]
    return output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=0 if none else result["rows"],
        size=0 if none else result["bytes"],
        fileCount=0 if none else max(result["file_count"], len(result["files"])),
    )


def lake_dataset(
    destination: DestinationSpec, table: TableSpec, location: str | None
) -> Dataset | None:
    """Return the table as a dataset: its folder, and its name in the catalog as an alias.

    `location` is where a table lies whose catalog decides that; None: not known, so that the
    table has no name yet.
    """
    catalog = catalog_of(destination)
    if catalog is None:
        location = TableLocation(destination.prefix, table.schema, table.table).url(
            destination.bucket
        )
    if location is None:
        return None
    storage = None if catalog is None else format_of(destination).name.lower()
    return dataset_of_url(location, _aliases(destination, table), storage)


def _aliases(destination: DestinationSpec, table: TableSpec) -> tuple[Alias, ...]:
    """Return the names of the table in catalogs. A table of Glue has the account in its name, and
    none where no setting says whose catalog it is."""
    catalog = catalog_of(destination)
    found = []
    owner = place(destination, catalog_owner(destination))
    if uses_glue(destination) and owner.account != "*":
        namespace = f"arn:{owner.partition}:glue:{owner.region}:{owner.account}"
        found.append(Alias(namespace, f"table/{table.schema}/{table.table}"))
    if catalog is not None and catalog.uri is not None:
        found.append(Alias(catalog.uri, table.target))
    return tuple(found)
