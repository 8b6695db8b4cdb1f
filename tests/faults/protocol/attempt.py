"""What one writer process does: the product's own steps from open to published, on rows that the
oracle knows. Runs in a child of the fork server; `told` is what a user would have been told."""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pyarrow as pa

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, DestinationSpec
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.core.layout import TableLocation, partition_path
from lakeload_jobs.formats.data_files import stage
from lakeload_jobs.formats.data_files.encode import UploadPool
from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.load.files import ParquetFiles
from lakeload_jobs.formats.parquet.log import recovery
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt
from lakeload_jobs.formats.parquet.log.publish import RecordDamaged, UnexpectedObject
from lakeload_jobs.formats.parquet.log.records import (
    Column,
    GlueTarget,
    LoadRecord,
    Rejects,
    Target,
    tool_version,
)
from lakeload_jobs.formats.parquet.log.roll_forward import ParquetCatalog, Settler
from lakeload_jobs.formats.parquet.log.table_log import (
    Committed,
    NotYetPublished,
    OpenedLog,
    TableLog,
)
from lakeload_jobs.rows.rejects import (
    REJECT,
    REJECTED_HELPER,
    SIDE_COLUMNS,
    Reject,
    reject_column,
)
from lakeload_jobs.storage.objects import Objects, UnknownOutcome
from tests.faults.protocol.rows import Files, append_rows, columns, ranged_rows

Said = Literal["loaded", "no-op", "failed", "void", "unknown", "committed", "damaged", "crashed"]

SYNCED = datetime(2026, 11, 21, 10, 15, 30, 1, tzinfo=UTC)
SCHEMA = "shop"
TRACKING = (
    Column("_supa_synced", "timestamp"),
    Column("_supa_deleted", "boolean"),
    Column("_supa_index", "bigint"),
    Column("_supa_id", "string"),
    Column("_supa_job_id", "string"),
)


@dataclass(frozen=True)
class Place:
    """One table and this process's way to it."""

    objects: Objects
    destination: DestinationSpec
    table: str
    handling: Literal["FAIL", "APPEND"]
    catalog: ParquetCatalog | None

    @property
    def location(self) -> TableLocation:
        """Where the table lies."""
        return TableLocation(self.destination.prefix, SCHEMA, self.table)

    def log(self) -> TableLog:
        """The table's commit log, as a process begins with it."""
        return TableLog(self.objects, self.location, catalog=self.catalog)


def act(place: Place, action: dict[str, Any]) -> dict[str, Any]:
    """Do one thing: load, recover, void or accept; return what is told of it."""
    doers: dict[str, Callable[[Place, dict[str, Any]], dict[str, Any]]] = {
        "load": _load,
        "recover": _recover,
        "void": _decide,
        "accept": _decide,
    }
    try:
        return doers[action["do"]](place, action)
    except LakeloadError as error:
        return _told("failed", error)
    except Exception as error:  # noqa: BLE001 a bug of the product: the oracle must hear of it
        return {"said": "crashed", "message": f"{error!r}\n{traceback.format_exc()}"}


def warm_up(place: Place) -> None:
    """Load a few jobs, so that no process spends its time on what happens once: the first use of
    libraries, the interpreter's own learning."""
    pa.set_cpu_count(1)
    for number in range(12):
        action = {"job": f"job-{number}", "upto": None, "pipeline": "shop", "attempt": "none"}
        _load(place, action)
        act(place, {"do": "recover"})


def _load(place: Place, action: dict[str, Any]) -> dict[str, Any]:
    log = place.log()
    opened = log.open(
        LoadAttempt(
            action["pipeline"],
            action["job"],
            action["attempt"],
            "f" * 64,
            "orders",
            place.handling,
        )
    )
    if opened.already is not None:
        return {"said": "no-op", "rows": opened.already.rows}
    before = int(opened.state or 0)
    if action["upto"] is None:
        state, files = None, append_rows(action["job"])
    else:
        after = max(before, action["upto"])
        state, files = StateChange(opened.state, after), ranged_rows("shop", before, after)
    staged, aside = _stage(place, log, action, files)
    return _commit(log, _record(place, action, opened, state, staged, aside))


def _commit(log: TableLog, record: LoadRecord) -> dict[str, Any]:
    try:
        committed: Committed = log.commit(record)
    except UnknownOutcome as error:
        return _told("unknown", error)
    except NotYetPublished as error:
        return _told("committed", error)
    except (RecordDamaged, UnexpectedObject) as error:
        return _told("damaged", error)
    except LakeloadError as error:
        return {**_told("failed", error), "phase": "commit"}
    return {
        "said": "no-op" if committed.already else "loaded",
        "rows": committed.record.rows,
        "number": committed.number,
        "outcome": committed.outcome,
        "attempt": committed.record.attempt_id,
        "stale": str(committed.catalog_error or ""),
    }


def _stage(
    place: Place, log: TableLog, action: dict[str, Any], files: Files
) -> tuple[tuple[StagedFile, ...], tuple[StagedFile, ...]]:
    """Stage each file as one partition, as tasks would; abort all when one fails.

    Of some jobs each partition ends with a record that is rejected: its file is among the second.
    """
    rejected = int(zlib.crc32(action["job"].encode()) % 2 == 0)
    pool = UploadPool(2)
    # Tasks make a client of their own; here it exists already, which saves its start.
    stage._connection = lambda *_, **__: (place.objects, pool)
    writer = stage.PartitionWriter(
        destination=place.destination,
        files=ParquetFiles(place.destination, place.location, action["job"], _synced(action)),
        tracking=Tracking(
            action["job"],
            action["attempt"],
            _synced(action),
            TRACKING_COLUMNS,
            (),
            tuple(len(rows) + rejected for rows in files),
        ),
        partitions=len(files),
        registry=None,
        on_executor=False,
    )
    staged: list[StagedFile] = []
    aside: list[StagedFile] = []
    try:
        for number, rows in enumerate(files):
            types = columns(action["job"])
            data = {name: _values(kind, rows, rejected) for name, kind in types.items()}
            batch = pa.RecordBatch.from_pydict(data, pa.schema(types))
            if rejected:
                reject = Reject("orders.csv", "it is bad", b"x", source_line=len(rows) + 1)
                marked = reject_column(len(rows) + 1, {len(rows): reject})
                batch = batch.append_column(pa.field(REJECTED_HELPER, REJECT), marked)
            report = writer.stage(number, iter([batch]))
            staged.extend(report.files)
            aside.extend(report.rejects)
    except BaseException:
        log.abandon((*staged, *aside))
        raise
    finally:
        pool.close()
    return tuple(staged), tuple(aside)


def _record(
    place: Place,
    action: dict[str, Any],
    opened: OpenedLog,
    state: StateChange | None,
    files: tuple[StagedFile, ...],
    aside: tuple[StagedFile, ...],
) -> LoadRecord:
    strategy = place.destination.parquet.partition_strategy
    now = datetime.now(UTC)
    names = columns(action["job"])
    own = (*(Column(name, _type(kind)) for name, kind in names.items()), *TRACKING)
    return LoadRecord(
        tool=tool_version(),
        pipeline=action["pipeline"],
        source="orders",
        job_id=action["job"],
        attempt_id=action["attempt"],
        started_at=now,
        created_at=now,
        synced=_synced(action),
        mode="APPEND",
        table_handling=place.handling,
        fingerprint="f" * 64,
        target=Target(place.destination.prefix, SCHEMA, place.table),
        partition_strategy=strategy,
        file_name_pattern=place.destination.parquet.file_name_pattern,
        partition=partition_path(strategy, _synced(action), action["job"]),
        columns=own if files else (),
        column_map=opened.column_map | {name: name for name in names},
        index="dense",
        rows=sum(file.rows for file in files),
        files=files,
        glue=None if place.catalog is None else _glue(place, strategy),
        state=state,
        rejected=Rejects(
            place.location.side_table.table,
            tuple(Column(name, kind) for name, kind in SIDE_COLUMNS.items()),
            sum(file.rows for file in aside),
            aside,
        )
        if aside
        else None,
    )


def _glue(place: Place, strategy: str) -> GlueTarget:
    key = None if strategy == "NONE" else "lakeload_partition"
    return GlueTarget(f"{SCHEMA}_{place.table}", place.table, key)


def _values(kind: pa.DataType, rows: tuple[str, ...], rejected: int) -> list[Any]:
    """Return the values of a column. Records that are rejected have none."""
    values = [{kind[0].name: row} for row in rows] if pa.types.is_struct(kind) else rows
    return [*values, *[None] * rejected]


def _type(kind: pa.DataType) -> str:
    """Return the type as records have it."""
    return f"struct<{kind[0].name}:string>" if pa.types.is_struct(kind) else "string"


def _synced(action: dict[str, Any]) -> datetime:
    """Attempts of one job may fall into different hours."""
    return SYNCED + timedelta(hours=zlib.crc32(action["attempt"].encode()) % 3)


def _recover(place: Place, action: dict[str, Any]) -> dict[str, Any]:
    found = recovery.recover_table(
        place.objects,
        place.location,
        catalog=place.catalog,
        parallelism=2,
        notify=lambda _: None,
        abort_older_than=timedelta(0),
        dry_run=False,
    )
    for error in (found.error, found.catalog_error, found.uploads_error):
        if error is not None:
            return _told("failed", error)
    damaged = [item.job_id for item in found.damaged]
    return {"said": "recovered", "damaged": damaged, "aborted": len(found.stale_uploads)}


def _decide(place: Place, action: dict[str, Any]) -> dict[str, Any]:
    settler = Settler(place.objects, place.location, catalog=place.catalog, parallelism=2)
    resolution = recovery.ManualResolution(settler, action["job"])
    outcome = resolution.accept() if action["do"] == "accept" else resolution.void()
    return {"said": "decided", "outcome": outcome}


def _told(said: Said, error: LakeloadError) -> dict[str, Any]:
    spent = isinstance(error, InvalidInput)
    return {"said": said, "error": type(error).__name__, "message": str(error), "spent": spent}
