"""lakeload and Spark alone: how each one loads and merges into an Iceberg table."""

from __future__ import annotations

import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from bench.commands import LAKELOAD, cache, make_archive, plain_environment
from bench.contestants import PEERS
from bench.data import KEY, SPARK_TYPES
from bench.iceberg.loads import LOADS, Load
from bench.iceberg.setting import SCHEMA, Run, Setting
from bench.lake import BUCKET, PREFIX
from bench.measure import Measurement

CODEC = "write.parquet.compression-codec"
APPEND = LOADS[0]


class Merger(Protocol):
    """Who merges changes into a table of its own."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    @property
    def rounds(self) -> int:
        """How many rounds it takes part in, from the first on."""
        ...

    def prepare(self) -> str:
        """Make the table, unmeasured; return why this contestant cannot run, empty if it can."""
        ...

    def merge(self, number: int) -> Run:
        """Merge the changes of a round, measured."""
        ...


@dataclass(frozen=True)
class Lakeload:
    """The whole command: role assumed, counting, staging branch, publication.

    `archive`: Java starts with an AppCDS archive.
    """

    setting: Setting
    name: str = "lakeload"
    archive: bool = False

    @property
    def rounds(self) -> int:
        """Every round."""
        return self.setting.runs

    def load(self, load: Load, number: int) -> Run:
        """Load the data set into a new table, or in place of one's rows."""
        table: dict[str, Any] = {
            "table": load.table(self.name, number),
            "path": f"{self.setting.data.folder / 'parquet'}/*.parquet",
            "mode": load.mode,
            "table_properties": {CODEC: load.codec},
        }
        if load.partition:
            table["partition_by"] = [load.partition]
        cost = self._sync(f"{load.what}-{self.name}-{number}", table, load.heap)
        return Run(load.what, self.name, number, cost)

    def prepare(self) -> str:
        """Spark makes the table; a first merge writes down what lakeload keeps of its own there."""
        Spark(self.setting).make(self._merged)
        self.merge(self.setting.runs)
        return ""

    def merge(self, number: int) -> Run:
        """Merge a round's changes."""
        path = f"{self.setting.changed(number)}/*.parquet"
        table: dict[str, Any] = {"table": self._merged, "path": path, "mode": "UPSERT"}
        return Run("merge", self.name, number, self._sync(f"merge-{self.name}-{number}", table))

    @property
    def _merged(self) -> str:
        return f"merged_{self.name.replace('-', '_')}"

    def _sync(self, name: str, table: dict[str, Any], heap: str = "") -> Measurement:
        setting, folder = self.setting, self.setting.scratch / name
        folder.mkdir()
        destination = setting.lake.destination("iceberg")
        destination["endpoints"]["glue"] = setting.lake.endpoint
        destination["table_format"] = "ICEBERG"
        destination["glue_database_prefix"] = ""
        document = {
            "version": 1,
            "name": "bench",
            "destination": destination,
            "namespace": SCHEMA,
            "table_handling": "APPEND",
            "source": {"type": "FILES", "format": "PARQUET"},
            "tables": [{"primary_key": [KEY], **table}],
            "spark": {
                "master": f"local[{setting.cores}]",
                "driver_memory": heap or setting.heap,
            },
        }
        pipeline = folder / "pipeline.yml"
        pipeline.write_text(yaml.safe_dump(document, sort_keys=False))
        if self.archive:
            make_archive(pipeline)
        own = {
            "LAKELOAD_CACHE_DIR": str(cache(archive=self.archive)),
            "LAKELOAD_RUN_DIR": str(folder / "runs"),
        }
        command = [LAKELOAD, "sync", "pipeline.yml"]
        environment = plain_environment() | setting.lake.environment() | own
        return setting.run([*command, "--output", "json"], environment, name)


@dataclass(frozen=True)
class Spark:
    """`df.writeTo(t).append()` and a bare MERGE with the same dedupe, given to spark-submit."""

    setting: Setting
    name: str = "spark"

    @property
    def rounds(self) -> int:
        """Every round."""
        return self.setting.runs

    def load(self, load: Load, number: int) -> Run:
        """Load the data set into a new table, or in place of one's rows."""
        cost = self._submit(
            f"{load.what}-spark-{number}",
            load.mode.lower(),
            self._data(),
            load.table(self.name, number),
            load,
        )
        return Run(load.what, self.name, number, cost)

    def make(self, table: str) -> None:
        """Make a table of the data set, for whoever merges into it."""
        self._submit(f"made-{table}", "append", self._data(), table)

    def prepare(self) -> str:
        """Make the table; merge once, as lakeload has."""
        self.make("merged_spark")
        self.merge(self.setting.runs)
        return ""

    def merge(self, number: int) -> Run:
        """Merge a round's changes."""
        source = self.setting.changed(number)
        cost = self._submit(f"merge-spark-{number}", "merge", source, "merged_spark")
        return Run("merge", self.name, number, cost)

    def _data(self) -> Path:
        return self.setting.data.folder / "parquet"

    def _submit(
        self, name: str, what: str, source: Path, table: str, load: Load = APPEND
    ) -> Measurement:
        setting, lake = self.setting, self.setting.lake
        properties = setting.scratch / "spark.conf"
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{k}={v}\n" for k, v in self._properties().items()))
        command = [str(Path(sys.executable).with_name("spark-submit"))]
        command += ["--master", f"local[{setting.cores}]", "--driver-memory"]
        command += [load.heap or setting.heap]
        command += ["--properties-file", str(properties), str(PEERS / "iceberg_bare.py")]
        schema = ", ".join(f"{column} {kind}" for column, kind in SPARK_TYPES.items())
        command += [what, str(source), f"{SCHEMA}.{table}", str(uuid.uuid4()), schema]
        command += [load.codec, load.partition]
        environment = plain_environment() | lake.environment()
        environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        environment |= {f"AWS_ENDPOINT_URL_{service}": lake.endpoint for service in ("GLUE", "STS")}
        return setting.run(command, environment, name)

    def _properties(self) -> dict[str, str]:
        """Spark's own catalog on the same Glue, through the same role."""
        lake = self.setting.lake
        catalog = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "glue",
            ".warehouse": f"s3://{BUCKET}/{PREFIX}/iceberg",
            ".s3.endpoint": lake.endpoint,
            ".s3.path-style-access": "true",
            ".client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory",
            ".client.assume-role.arn": lake.seeded.role_arn,
            ".client.assume-role.region": lake.seeded.region,
            ".client.assume-role.external-id": lake.seeded.external_id,
        }
        extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        return {
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.extensions": extensions,
            "spark.driver.extraClassPath": ":".join(map(str, self.setting.jars)),
            **{f"spark.sql.catalog.lake{name}": value for name, value in catalog.items()},
        }
