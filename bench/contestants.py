"""The contestants: how each one is started and where its files end up."""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from bench.commands import LAKELOAD, cache, make_archive, plain_environment
from bench.data import DataSet
from bench.lake import Lake
from bench.verify import KeyEncoding, canonical_key, plain_text

PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Prepared:
    """One run, ready to be measured: the command, and a folder for what it writes."""

    command: list[str]
    environment: dict[str, str]
    folder: Path


class Contestant(Protocol):
    """One way to turn a data set into gzip Parquet."""

    @property
    def name(self) -> str:
        """What tables and `--only` call it."""
        ...

    @property
    def cores(self) -> int:
        """How many cores it may use."""
        ...

    @property
    def encode(self) -> KeyEncoding:
        """How it turns the key into the bytes it hashes."""
        ...

    @property
    def dense_index(self) -> bool:
        """Whether its `_supa_index` runs from 1 to N without gaps."""
        ...

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """Make everything the run needs; nothing here is measured."""
        ...

    def files(self, prepared: Prepared) -> list[Path]:
        """The Parquet files the run wrote, on local disk."""
        ...


_NOT_INFERRED = ("int", "decimal(12,2)", "timestamp_ntz")
"""Types that lakeload does not infer from text."""


@dataclass(frozen=True)
class SparkNative:
    """Spark's own writer through pip's spark-submit, UI off, INT64 micros like everybody else."""

    heap: str
    cores: int
    name: str = "spark"
    encode: KeyEncoding = plain_text
    dense_index: bool = False

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """spark-submit of `peers/spark_native.py` to a folder on local disk."""
        schema = ", ".join(f"{name} {kind}" for name, kind in data.shape.spark_types.items())
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        }
        command = [str(Path(sys.executable).with_name("spark-submit"))]
        command += ["--master", f"local[{self.cores}]", "--driver-memory", self.heap]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        arguments = [form, str(data.folder / form.lower()), str(folder / "out"), str(uuid.uuid4())]
        command += [str(PEERS / "spark_native.py"), *arguments, schema]
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        return Prepared(command, plain_environment() | python, folder)

    def files(self, prepared: Prepared) -> list[Path]:
        """Spark's part files."""
        return sorted((prepared.folder / "out").glob("part-*.parquet"))


@dataclass(frozen=True)
class LibraryCopy:
    """A library that writes gzip Parquet: `peers/{name}_copy.py`, run by `python`, the peers' own.

    `large_text`: it writes text as Arrow's large_string.
    """

    name: str
    cores: int
    python: str
    encode: KeyEncoding = plain_text
    dense_index: bool = True
    large_text: bool = False

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """The script, which writes one file on local disk."""
        arguments = [form, str(data.folder / form.lower()), str(folder / "out"), str(uuid.uuid4())]
        arguments += [str(self.cores), json.dumps(data.shape.spark_types)]
        command = [self.python, str(PEERS / f"{self.name}_copy.py"), *arguments]
        # polars takes them from its environment alone.
        threads = {"POLARS_MAX_THREADS": str(self.cores)}
        return Prepared(command, plain_environment() | threads, folder)

    def files(self, prepared: Prepared) -> list[Path]:
        """The only file."""
        return sorted((prepared.folder / "out").glob("*.parquet"))


@dataclass(frozen=True)
class LakeloadSync:
    """The whole command against the lake: role assumed, commit protocol, completed uploads.

    `reader` is `spark.reader` for Parquet files. `archive`: Java starts with an AppCDS archive.
    """

    lake: Lake
    heap: str
    cores: int
    name: str = "lakeload"
    encode: KeyEncoding = canonical_key
    dense_index: bool = True
    reader: str = "AUTO"
    archive: bool = False

    def prepare(self, form: str, data: DataSet, folder: Path) -> Prepared:
        """`lakeload sync` of one table under a prefix of its own."""
        pipeline = folder / "pipeline.yml"
        document = self._pipeline(form, data, folder)
        pipeline.write_text(yaml.safe_dump(document, sort_keys=False))
        if self.archive:
            make_archive(pipeline)
        command = [LAKELOAD, "sync", str(pipeline), "--output", "json"]
        own = {
            "LAKELOAD_CACHE_DIR": str(cache(archive=self.archive)),
            "LAKELOAD_RUN_DIR": str(folder / "runs"),
        }
        return Prepared(command, plain_environment() | self.lake.environment() | own, folder)

    def files(self, prepared: Prepared) -> list[Path]:
        """The visible objects of the run, downloaded; the lake is emptied afterwards."""
        files = self.lake.download(prepared.folder.name, prepared.folder / "out")
        self.lake.clear()
        return files

    def _pipeline(self, form: str, data: DataSet, folder: Path) -> dict[str, Any]:
        suffix = form.lower()
        table: dict[str, Any] = {
            "table": "orders",
            "path": str(data.folder / suffix / f"*.{suffix}"),
            "primary_key": ["order_id"],
        }
        source: dict[str, Any] = {"type": "FILES", "format": form}
        if form == "CSV":
            source["options"] = {"header": True, "escape": '"'}
            # All other types are inferred, while the peers are given theirs.
            types = data.shape.spark_types.items()
            given = {name: kind for name, kind in types if kind in _NOT_INFERRED}
            table["columns"] = {"types": given} if given else {}
        return {
            "version": 1,
            "name": "bench",
            "destination": self.lake.destination(folder.name),
            "namespace": "bench",
            "source": source,
            "tables": [table],
            "spark": {
                "master": f"local[{self.cores}]",
                "driver_memory": self.heap,
                "reader": self.reader if form == "PARQUET" else "AUTO",
            },
        }
