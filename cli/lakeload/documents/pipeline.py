"""pipeline.yml: which tables go where, and how."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from lakeload.config.document import Ambiguous, Location, quoted
from lakeload.config.model import Called, Finding, Model, refusal, refusals, setting
from lakeload.config.scalars import PipelineName, RecordLimit, Text
from lakeload.config.secret_names import shown
from lakeload.documents.columns import Columns, repeated
from lakeload.documents.conditions import condition_problem
from lakeload.documents.destination import Destination
from lakeload.documents.durations import Duration, duration_setting, parse_interval
from lakeload.documents.iceberg import TableProperties
from lakeload.documents.lineage import Lineage
from lakeload.documents.notify import Notify
from lakeload.documents.rounds import CommitAt, RoundLimit
from lakeload.documents.spark import Spark
from lakeload.sources.base import SourceSettings, SourceType, TableSettings
from lakeload.sources.registry import source_type_of
from lakeload_jobs.contract.spec import (
    TRACKING_COLUMNS,
    Deletes,
    Mode,
    Nested,
    OnAppendAgain,
    OnBadValue,
    OnSameKey,
    OnTypeConflict,
    SchemaChanges,
    TableHandling,
)
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field


def _partition_field(given: str) -> str:
    try:
        parse_partition_field(given)
    except ValueError as error:
        raise refusal(shown(str(error), 200)) from None
    return given


def _null_is_a_word(given: Any) -> Any:
    """`on_bad_value: NULL` needs no quotes, although YAML takes NULL for no value. No value at all
    may be meant as that word."""
    if given is None:
        raise refusal(
            "`on_bad_value` has no value", "write `NULL`, in capitals, or remove the line"
        )
    return "NULL" if isinstance(given, Ambiguous) and given.text == "NULL" else given


def _tracking(given: Any) -> Any:
    if given in ("ALL", "NONE") and isinstance(given, str):
        return TRACKING_COLUMNS if given == "ALL" else ()
    if not isinstance(given, tuple):
        raise refusal("this is neither ALL, NONE nor a list of tracking columns", _ALL_TRACKING)
    if findings := [
        Finding(
            f"`{shown(str(name))}` is not a tracking column",
            did_you_mean(str(name), TRACKING_COLUMNS) or _ALL_TRACKING,
            (i,),
        )
        for i, name in enumerate(given)
        if name not in TRACKING_COLUMNS
    ]:
        raise refusals(findings)
    return tuple(name for name in TRACKING_COLUMNS if name in given)


_ALL_TRACKING = f"there are {quoted(TRACKING_COLUMNS)}"

PartitionText = Annotated[Text, Called("partition field"), AfterValidator(_partition_field)]
Tracking = Annotated[
    tuple[str, ...],
    Called("`ALL`, `NONE` or list"),
    BeforeValidator(_tracking),
    WithJsonSchema(
        {
            "oneOf": [
                {"enum": ["ALL", "NONE"]},
                {"type": "array", "items": {"enum": list(TRACKING_COLUMNS)}},
            ]
        }
    ),
]


Interval = Annotated[
    timedelta,
    BeforeValidator(partial(duration_setting, parse=parse_interval)),
    Called("duration"),
    WithJsonSchema({"type": "string"}),
]


class Table(TableSettings):
    """One table: its source and its target."""

    name: Text | None = None
    """The target table. Default: `table`, normalised."""
    namespace: str | None = None
    """The target schema; wins over the pipeline's."""
    mode: Mode = "APPEND"
    """`APPEND`; `OVERWRITE` replaces the table, `UPSERT` rows by their key: ICEBERG only."""
    primary_key: tuple[Text, ...] = ()
    """The source columns that identify a row, for `_supa_id` and UPSERT. Default: all columns."""
    cursor: Text | None = None
    """UPSERT: of several versions of a row, loaded or in the table, its greatest value wins."""
    deletes: Deletes = "MARK"
    """UPSERT: deleted rows stay, marked (`MARK`), or go (`DELETE`; late rows return)."""
    partition_by: tuple[PartitionText, ...] = ()
    """ICEBERG: partitions, as `day(created_at)`, `bucket(16, id)`; not given: the table's own."""
    table_properties: TableProperties = Field(default_factory=dict)
    """ICEBERG: properties of the new table; they win over `iceberg.table_properties`."""
    bloom_filters: tuple[Text, ...] = ()
    """Source columns with bloom filters in new data files, for queries with `column = value`."""
    schema_changes: SchemaChanges | None = setting(None, "the pipeline's")
    """Policy for changed columns of this table; overrides the pipeline's."""
    on_type_conflict: OnTypeConflict | None = setting(None, "the pipeline's")
    """Policy for values of another type in this table; overrides the pipeline's."""
    on_bad_value: Annotated[OnBadValue | None, BeforeValidator(_null_is_a_word)] = setting(
        None, "the pipeline's"
    )
    """Policy for bad values and broken records of this table; overrides the pipeline's."""
    max_rejected: RecordLimit | None = setting(None, "the pipeline's")
    """QUARANTINE: how many records of this table may be set aside; overrides the pipeline's."""
    on_same_key: OnSameKey | None = setting(None, "`WARN`; `FAIL` for a database's table")
    """UPSERT: rows of one load with the same key fail the table, or the last one is loaded, with a
    warning or a note (`ALLOW`)."""
    on_append_again: OnAppendAgain | None = setting(None, "the pipeline's")
    """Policy for rows of this table that are appended again; overrides the pipeline's."""
    round_limit: RoundLimit | None = setting(None, "the pipeline's")
    """How much one job loads of this table; overrides the pipeline's."""
    commit_at: CommitAt | None = setting(None, "the pipeline's")
    """How long new data of this table waits with an interval; overrides the pipeline's."""
    freshness: Duration | None = setting(None, "the pipeline's")
    """When `lakeload status` calls this table stale; overrides the pipeline's."""
    columns: Columns = Columns()
    where: Text | None = None
    """A Spark SQL condition over source columns; only rows that meet it are loaded."""
    deleted_when: Text | None = None
    """A Spark SQL condition over source columns that fills `_supa_deleted`."""

    @model_validator(mode="after")
    def _columns_are_listed_once(self) -> Table:
        found = [
            *repeated(self.primary_key, "primary_key"),
            *repeated(self.bloom_filters, "bloom_filters"),
            *_bloom_filter_findings(self.bloom_filters, self.columns),
            *_condition_findings("where", self.where),
            *_condition_findings("deleted_when", self.deleted_when),
        ]
        if found:
            raise refusals(found)
        return self


def _condition_findings(setting: str, condition: str | None) -> Iterator[Finding]:
    if condition is not None and (problem := condition_problem(condition)):
        message = f"`{shown(condition)}` is no condition of Spark SQL: {problem}"
        yield Finding(message, "correct it, as in `cost > 0`", (setting,))


def _bloom_filter_findings(names: Iterable[str], columns: Columns) -> Iterator[Finding]:
    for i, name in enumerate(names):
        if not columns.loads(name):
            message = f"`{shown(name)}` gets a bloom filter, and `columns` leaves it out"
            yield Finding(message, "load it", ("bloom_filters", i))
        kind = columns.types.get(name, "").partition("<")[0].strip().lower()
        if kind in _WITHOUT_BLOOM_FILTER:
            message = f"`{shown(name)}` is {_WITHOUT_BLOOM_FILTER[kind]}, and has no bloom filter"
            yield Finding(message, "remove it from the list", ("bloom_filters", i))


_WITHOUT_BLOOM_FILTER = {
    "boolean": "a boolean",
    "array": "an array",
    "map": "a map",
    "struct": "a struct",
}


def _kind(value: Any) -> str:
    return "(mapping)" if isinstance(value, dict | Destination) else "(path)"


DestinationField = Annotated[
    Annotated[Text, Called("path"), Tag("(path)")] | Annotated[Destination, Tag("(mapping)")],
    Discriminator(_kind),
]


class Pipeline(Model):
    """Source, tables and settings of a load."""

    version: Literal[1]
    """The version of this format."""
    name: PipelineName
    """Identifies the writer in commit records: keep it when you move or rename the file."""
    destination: DestinationField
    """The destination file, relative to this file, or its content."""
    destination_prefix: str = ""
    """The first part of the target schema."""
    namespace: str | None = None
    """The target schema; replaces `destination_prefix`."""
    nested: Nested | None = setting(None, "`NATIVE`; `JSON` with ICEBERG")
    """Structs, arrays and maps: as they are (`NATIVE`) or as JSON text (`JSON`)."""
    on_bad_value: Annotated[OnBadValue, BeforeValidator(_null_is_a_word)] = "FAIL"
    """A bad value fails the table (`FAIL`), becomes null (`NULL`), or its record is set aside."""
    max_rejected: RecordLimit | None = setting(None, "`0.1 %`")
    """QUARANTINE: how many records of a table may be set aside; with more, the table fails."""
    tracking_columns: Tracking = TRACKING_COLUMNS
    """`ALL`, `NONE` or a list of tracking columns."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """Tables that are loaded at once."""
    table_handling: TableHandling = "FAIL"
    """The first load into a folder that has files: `FAIL`, or `APPEND` to them."""
    schema_changes: SchemaChanges | None = setting(None, "`ADD_COLUMNS`; `EVOLVE` with ICEBERG")
    """New columns are added (`ADD_COLUMNS`), types widened too (`EVOLVE`), or both errors."""
    on_type_conflict: OnTypeConflict = "FAIL"
    """Values whose type a column cannot take: an error, or loaded into a `NEW_COLUMN`, of their
    type or as `TEXT`."""
    on_append_again: OnAppendAgain = "WARN"
    """APPEND that reads all rows each time: a load after the first one gets a warning, fails
    (`FAIL`), or is on purpose (`ALLOW`). So are files that two tables read: `ALLOW` silences the
    warning."""
    upload_interval: Interval | None = None
    """`lakeload sync` stays running and loads what is new this often: `PT1S` to `PT4H`, or as
    `5m`."""
    round_limit: RoundLimit | None = None
    """Tables that load what is new: load it in several jobs, oldest first. Default: in one."""
    commit_at: CommitAt | None = None
    """With an interval, new data waits until there is enough or it is old. Default: the next
    round loads it."""
    freshness: Duration | None = None
    """`lakeload status`: a table is stale when it was last up to date longer ago, as `PT2H`."""
    metrics_file: Text | None = None
    """After each job, metrics of the pipeline are written into this file, in the text format of
    OpenMetrics; relative to this file."""
    history: bool = True
    """Record each job in the job history beside the logs, for `runs` and `status`."""
    lineage: Lineage | None = None
    """OpenLineage events of each load: where they are sent. Default: nowhere."""
    notify: Notify | None = None
    """Messages to a webhook when loads fail and when they work again. Default: none."""
    opentelemetry: bool = False
    """Send a trace and metrics of each load over OTLP, as the variables `OTEL_…` say."""
    source: SourceSettings
    tables: Annotated[tuple[Table, ...], Field(min_length=1)]
    """The tables, each with its own settings."""
    spark: Spark = Spark()

    @model_validator(mode="after")
    def _messages_have_what_they_need(self) -> Pipeline:
        found = []
        if self.notify is not None and not self.history:
            message = "`notify` needs the job history: it has which message was sent"
            found.append(Finding(message, "remove the line", ("history",), "contradiction"))
        fresh = self.freshness is not None or any(table.freshness for table in self.tables)
        if self.notify is not None and "STALE" in self.notify.on and not fresh:
            message = "`STALE` needs `freshness`, which says when a table is stale"
            at = ("notify", "on")
            found.append(Finding(message, "add `freshness: PT2H`", at, "missing-key"))
        if found:
            raise refusals(found)
        return self


@functools.cache
def table_model(source: SourceType[Any, Any, Any]) -> type[Table]:
    """Return the model of tables that are read from a type of source."""
    # What the source adds stands between the name and what all tables have.
    bases: Any = (Table, source.table)
    hints = get_type_hints(source.table, include_extras=True)
    # What both have, the source says more exactly.
    both = Table.model_fields.keys() & source.table.__annotations__.keys()
    own: Any = {name: (hints[name], copy(source.table.model_fields[name])) for name in both}
    made: type[Table] = create_model("Table", __base__=bases, __doc__=Table.__doc__, **own)
    return made


@functools.cache
def pipeline_model(source: SourceType[Any, Any, Any]) -> type[Pipeline]:
    """Return the model of pipelines that read from a type of source."""
    fields = Pipeline.model_fields
    settings: Any = (source.settings, copy(fields["source"]))
    tables: Any = (tuple[table_model(source), ...], copy(fields["tables"]))  # type: ignore[misc]
    return create_model(
        "Pipeline", __base__=Pipeline, __doc__=Pipeline.__doc__, source=settings, tables=tables
    )


Numbered = list[tuple[int, Table]]
"""Each with its place in the document."""


def valid_tables(data: dict[str, Any]) -> Numbered:
    """Return the tables of a pipeline's document that are valid by themselves."""
    raw, model = data.get("tables"), table_model(source_type_of(data))
    found: Numbered = []
    for i, item in enumerate(raw if isinstance(raw, tuple) else ()):
        try:
            found.append((i, model.model_validate(item)))
        except ValidationError:
            continue
    return found


NOT_YET = "not-supported-yet"


def cursor_findings(
    table: Table, data: Mapping[str, Any], at: Location, instead: str
) -> Iterator[Finding]:
    """Yield why a table without `mode: UPSERT` cannot have its `cursor`; `instead` is what can be
    done about it for a source whose loads it does not make incremental."""
    if table.cursor is None:
        return
    if not source_type_of(data).cursor_reads:
        hint = f"{instead}; `incremental: true` of the source loads each file once"
        message = "incremental loading (`cursor`) is not supported yet"
    elif table.mode == "OVERWRITE":
        message = "`mode: OVERWRITE` would keep only the rows that `cursor` finds to be new"
        hint = "write `mode: UPSERT` with a `primary_key`, or remove the line"
    else:
        return
    yield Finding(message, hint, (*at, "cursor"), NOT_YET)
