"""What a case acts on: tables in Glue or in a REST catalog, behind fault proxies."""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pyiceberg.table import Table

from tests.faults.iceberg.rows import Mode, rejected_of, rows_of
from tests.faults.iceberg.steps import Step, step_of
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response
from tests.servers.ministack import Lake
from tests.servers.spark import UNVERIFIED

CatalogName = Literal["glue", "rest", "nessie"]
PIPELINE = "shop"

BY_DRIVER, BY_TASKS = "local[40]", "local[40,2]"
"""Masters with more tasks and tables at once than can be held. The driver itself writes few rows of
a plain table, unless tasks are tried again."""

Watcher = Callable[[Step, Request, Forward], Response | None]
"""Sees a request about a table, and may answer in place of the server."""


class Reader(Protocol):
    """What the oracle asks of a catalog."""

    def load_table(self, identifier: tuple[str, str]) -> Table:
        """Read a table. Raises `NoSuchTableError`."""


@dataclass
class World:
    """One catalog. `seed` decides everything a case leaves open."""

    catalog: CatalogName
    lake: Lake
    proxies: tuple[FaultProxy, ...]
    """All that a sync says passes one of them: AWS, and a catalog beside it."""
    destination: dict[str, Any]
    open_directly: Callable[[], Reader]
    """The oracle's own way to the catalog."""
    folder: Path
    seed: str
    cache: Path | None = None
    warm_spark: Path | None = None
    modes: dict[str, Mode] = field(default_factory=dict)
    """The mode of each table that was named."""
    rejecting: set[str] = field(default_factory=set)
    """Tables of whose source some records are rejected."""
    widening: set[str] = field(default_factory=set)
    """Tables that get a column with each job."""
    partition_by: tuple[str, ...] = ()
    """Partitions of tables that are appended to."""
    master: str = BY_DRIVER
    _watchers: list[Watcher] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Begin to draw, and to see what passes."""
        self.random = random.Random(self.seed)  # noqa: S311
        for proxy in self.proxies:
            proxy.on("*", self._each)

    @property
    def runs(self) -> Path:
        """One for all commands, as on a user's machine: a run learns there who is dead."""
        return self.folder / "runs"

    @property
    def schema(self) -> str:
        """The namespace of every table."""
        prefix = self.destination.get("glue_database_prefix")
        return f"{prefix}_{PIPELINE}" if prefix else PIPELINE

    @property
    def removes_files(self) -> bool:
        """Whether lakeload removes files that no snapshot names: those of Nessie are left to
        `nessie-gc`, since its other branches and tags may need them."""
        return self.catalog != "nessie"

    def written_by_lakeload(self, table: str) -> bool:
        """Whether lakeload itself, and not Spark, has to write the data files of a load."""
        return self.modes[table] != "UPSERT"

    def write(
        self,
        folder_name: str,
        tables: Mapping[str, Mode],
        job: str,
        *,
        options: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Path:
        """Write documents that load the file of a job into each table; return their folder.
        `options` are reader options."""
        folder = self.folder / folder_name
        folder.mkdir(parents=True)
        listed = []
        for table, mode in tables.items():
            self.modes[table] = mode
            entry: dict[str, Any] = {
                "table": table,
                "path": str(
                    self.source(job, rejects=table in self.rejecting, widens=table in self.widening)
                ),
                "mode": mode,
                "columns": {
                    "types": {"id": "bigint", "version": "bigint", "gone": "boolean"},
                },
            }
            if mode == "UPSERT":
                entry |= {
                    "primary_key": ["id"],
                    "cursor": "version",
                    "deletes": "DELETE",
                    "deleted_when": "gone",
                }
            elif self.partition_by:
                entry["partition_by"] = list(self.partition_by)
            if options:
                entry["options"] = dict(options)
            listed.append(entry)
        if self.rejecting & tables.keys():
            settings = {"on_bad_value": "QUARANTINE", "max_rejected": "50 %", **settings}
        spark = {
            "master": self.master,
            "driver_memory": "2g",
            "conf": {
                "spark.sql.files.minPartitionNum": "2",
                # A table that is held must not keep the others from arriving at their places.
                "spark.driver.extraJavaOptions": f"-Diceberg.worker.num-threads=64 {UNVERIFIED}",
            },
        }
        self.lake.write_pipeline(
            folder,
            tables=listed,
            endpoint=self.proxies[0].endpoint,
            destination=self.destination,
            spark=spark,
            concurrency=min(len(listed), 64),
            **settings,
        )
        return folder

    def source(self, job: str, *, rejects: bool = False, widens: bool = False) -> Path:
        """The file that a job loads, made when it is first asked for; with `rejects` it has records
        that are rejected, with `widens` a column of its own."""
        file = self.folder / "sources" / f"{job}{'-rejects' * rejects}{'-wide' * widens}.csv"
        with self._lock:
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                lines = [f"{i},{v},{str(gone).lower()}" for i, v, gone in rows_of(job)]
                lines[1:1] = rejected_of(job) if rejects else []
                lines = ["id,version,gone", *lines]
                if widens:
                    more = [f"of_{job.replace('-', '_')}", *("x" for _ in lines[1:])]
                    lines = [f"{line},{new}" for line, new in zip(lines, more, strict=True)]
                file.write_text("\n".join([*lines, ""]))
        return file

    @contextmanager
    def watching(self, act: Callable[[Step, Request, Forward], Response | None]) -> Iterator[None]:
        """Show every request about a table to `act`, which may answer in place of the server."""

        with self._lock:
            self._watchers.append(act)
        try:
            yield
        finally:
            with self._lock:
                self._watchers.remove(act)

    def _each(self, request: Request, forward: Forward) -> Response:
        """Several syncs may be watched at once, each by one that knows its tables."""
        step = step_of(request)
        for act in list(self._watchers) if step else ():
            if step and (answer := act(step, request, forward)) is not None:
                return answer
        return forward(request)


def table_name(*parts: object) -> str:
    """Return a name that Glue takes, and no other table has."""
    words = "_".join(str(part).lower().replace(" ", "_").replace("-", "_") for part in parts)
    return f"{words}_{secrets.token_hex(2)}"
