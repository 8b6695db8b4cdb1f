"""What a case acts on: an emulator behind the fault proxy, a lake, tables of a few rows."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lakeload.demo.aws import loader_policy
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Action, FaultProxy, Rule
from tests.servers.ministack import Lake

FILES = 2
ROWS = 20
"""Rows of each source file."""

PIPELINE = "shop"


@dataclass
class World:
    """One lake behind one proxy. `seed` decides everything a case leaves open."""

    lake: Lake
    proxy: FaultProxy
    folder: Path
    seed: str
    glue: bool = False
    """Whether the tables of this world are in the Glue catalog too."""
    cache: Path | None = None
    """LAKELOAD_CACHE_DIR of its commands; None is a folder of this world."""
    warm_spark: Path | None = None
    """SPARK_HOME of untroubled syncs; None is that of all others."""
    killed_spark: Path | None = None
    """SPARK_HOME of syncs that are killed; None is that of all others. Of a warm Spark the driver
    is killed and the JVM is not: enough where the driver makes all requests itself."""
    runs: Path | None = None
    """LAKELOAD_RUN_DIR of its commands; None is one for each."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Begin to draw; let the role use Glue where the tables are there too."""
        self.random = random.Random(self.seed)  # noqa: S311
        if self.glue:
            seeded = self.lake.seeded
            loading = loader_policy(seeded.bucket, seeded.prefix)["Statement"]
            assert isinstance(loading, list)
            glue = {"Effect": "Allow", "Action": "glue:*", "Resource": "*"}
            policy = {"Version": "2012-10-17", "Statement": [*loading, glue]}
            self.lake.server.admin.put_role_policy(seeded.role, policy)

    @property
    def database(self) -> str:
        """The Glue database of this lake's tables."""
        return f"{self._glue_prefix}_{PIPELINE}"

    @property
    def _glue_prefix(self) -> str:
        return self.lake.seeded.bucket.replace("-", "_")

    def on(
        self,
        operation: str,
        action: Action,
        *,
        tables: Sequence[str],
        key: str = "*",
        skip: int = 0,
        times: int | None = None,
    ) -> TableRule:
        """Add a rule about requests of these tables, or of none: those of every table."""
        rule = TableRule(operation, action, key, skip, times, tables=tuple(tables))
        with self._lock:
            # One list for all cases: what was set up last is asked first.
            self.proxy.rules = [rule, *self.proxy.rules]
        return rule

    def off(self, *rules: Rule) -> None:
        """Remove rules: by identity, since equal ones may belong to other cases."""
        with self._lock:
            self.proxy.rules = [
                rule for rule in self.proxy.rules if not any(rule is gone for gone in rules)
            ]

    def write(self, name: str, tables: Iterable[str], **settings: Any) -> Path:
        """Write documents that load `tables` and return their folder. The rows of a table are made
        when it is first named. `settings` are those of the pipeline."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        listed = []
        for table in tables:
            self._make_rows(table)
            columns = {"types": {"id": "bigint", "name": "string"}}
            listed.append(
                {"table": table, "path": f"{self.source(table)}/*.csv", "columns": columns}
            )
        spark: dict[str, Any] = {
            "master": "local[2]",
            "driver_memory": "512m",
            # Each file becomes a partition, and so a task, whatever the cores.
            "conf": {"spark.sql.files.maxPartitionBytes": "1m"},
        }
        spark.update(settings.pop("spark", {}))
        self.lake.write_pipeline(
            folder,
            tables=listed,
            endpoint=self.proxy.endpoint,
            destination=self._destination(),
            spark=spark,
            concurrency=5,
            **settings,
        )
        return folder

    def source(self, table: str) -> Path:
        """The folder with a table's source files."""
        return self.folder / "sources" / table

    def rows(self, table: str) -> list[tuple[int, str]]:
        """What a table's source holds now."""
        found = []
        for file in sorted(self.source(table).glob("*.csv")):
            for line in file.read_text().splitlines()[1:]:
                number, _, name = line.partition(",")
                found.append((int(number), name))
        return found

    def _make_rows(self, table: str) -> None:
        folder = self.source(table)
        with self._lock:
            if folder.exists():
                return
            folder.mkdir(parents=True)
            for part in range(FILES):
                numbers = range(part * ROWS, (part + 1) * ROWS)
                lines = [f"{number},{table} {number}" for number in numbers]
                (folder / f"{part}.csv").write_text("\n".join(["id,name", *lines, ""]))

    def _destination(self) -> dict[str, Any]:
        # One completion after the other: the first and the last are then known.
        parquet: dict[str, Any] = {"upload_parallelism": 1}
        if not self.glue:
            return {"parquet": parquet}
        parquet["update_glue_catalog"] = True
        place = self.proxy.endpoint
        return {
            "glue_database_prefix": self._glue_prefix,
            "endpoints": {"s3": place, "sts": place, "glue": place},
            "parquet": parquet,
        }


@dataclass
class TableRule(Rule):
    """A rule about the requests of some tables alone."""

    tables: tuple[str, ...] = ()

    def takes(self, request: Request) -> bool:
        """Count a request of one of the tables and tell whether the action applies to it."""
        if self.tables and not any(is_about(request, table) for table in self.tables):
            return False
        return super().takes(request)


def is_about(request: Request, table: str) -> bool:
    """Whether a request concerns a table: its key, the prefix it lists, or its name for Glue."""
    if request.service == "s3":
        return f"/{table}/" in unquote(request.target)
    return f'"{table}"'.encode() in request.body
