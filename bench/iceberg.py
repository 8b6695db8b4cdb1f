"""`python -m bench.iceberg`: Iceberg tables by lakeload and by Spark alone, interleaved.

An append of `--rows` rows into a new table, and a MERGE of `--changes` changes (four fifths of them
updates all over the table) into one of `--rows`, each as a whole command against AWS Glue of the
embedded AWS, through the same role, jars and memory, with the same 18 columns. Bars: 1.15 × the CPU
of `df.writeTo(t).append()` and 1.25 × that of a bare MERGE with the same dedupe, medians of the
runs. What is in the tables is counted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from bench.contestants import PEERS, plain_environment
from bench.data import KEY, SPARK_TYPES, DataSet, bench_dir, data_set
from bench.lake import BUCKET, PREFIX, Lake
from bench.measure import Measurement, measure
from lakeload.demo.aws import EmbeddedAws
from lakeload.machine.fetch import fetch
from lakeload.machine.jars import pinned

BARS = {"append": 1.15, "merge": 1.25}
SCHEMA = "bench"
SPREAD = 16
"""Every so manieth key is updated by one round, another one by each."""


class BenchFailed(RuntimeError):
    """A contestant failed, or a table does not hold what it must."""


@dataclass(frozen=True)
class Setting:
    """What all runs share."""

    lake: Lake
    data: DataSet
    scratch: Path
    jars: tuple[Path, ...]
    heap: str
    cores: int
    changes: int

    def run(self, command: Sequence[str], environment: dict[str, str], name: str) -> Measurement:
        """Run a command to its end, measured. Raises `BenchFailed`."""
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        log = folder / "output.log"
        cost = measure(list(command), environment=environment, folder=folder, log=log)
        if cost.status != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
            raise BenchFailed(f"{name} ended with {cost.status}:\n{tail}")
        print(f"{name:24}{cost.cpu:8.1f} s CPU {cost.wall:8.1f} s wall", flush=True)
        return cost


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run, the medians and their ratios; 0 when both bars are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.iceberg", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args(arguments)
    if given.changes * 4 // 5 > given.rows // SPREAD or given.runs >= SPREAD:
        parser.error(f"each of up to {SPREAD - 1} runs updates other rows: fewer changes or runs")
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="iceberg-", dir=bench_dir()))
    jars = fetch(pinned("iceberg"), bench_dir() / "lakeload-cache" / "jars", os.environ)
    try:
        with EmbeddedAws(scratch / "aws") as aws:
            seeded = aws.seed(bucket=BUCKET, prefix=PREFIX)
            everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
            policy = {"Version": "2012-10-17", "Statement": [everything]}
            aws.admin().put_role_policy(seeded.role, policy)
            lake = Lake(aws.endpoint, seeded)
            data = data_set(given.rows)
            setting = Setting(lake, data, scratch, jars, given.heap, given.cores, given.changes)
            costs = {
                "append": _compare("append", given.runs, _appends(setting)),
                "merge": _compare("merge", given.runs, _merges(setting, given.runs)),
            }
            _verify(setting, given.runs)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    met = [_tell(what, pairs) for what, pairs in costs.items()]
    return 0 if all(met) else 1


Contestant = Callable[[int], Measurement]
Pair = tuple[Measurement, Measurement]


def _compare(what: str, runs: int, contestants: tuple[Contestant, Contestant]) -> list[Pair]:
    """Run both by turns, another one first each time; lakeload is the first of a pair."""
    ours, bare = contestants
    pairs = []
    for number in range(runs):
        if number % 2:
            second = bare(number)
            pairs.append((ours(number), second))
        else:
            pairs.append((ours(number), bare(number)))
    return pairs


def _tell(what: str, pairs: Sequence[Pair]) -> bool:
    """Print medians and the ratio of CPU; return whether the bar is met."""
    cpu = [statistics.median(pair[side].cpu for pair in pairs) for side in (0, 1)]
    wall = [statistics.median(pair[side].wall for pair in pairs) for side in (0, 1)]
    ratios = [ours.cpu / bare.cpu for ours, bare in pairs]
    met = cpu[0] / cpu[1] <= BARS[what]
    print(
        f"{what}: median CPU lakeload {cpu[0]:.1f} s, Spark alone {cpu[1]:.1f} s: "
        f"{cpu[0] / cpu[1]:.2f} × (pairs {min(ratios):.2f}–{max(ratios):.2f}), bar {BARS[what]} ×: "
        f"{'met' if met else 'MISSED'}; wall {wall[0]:.1f} and {wall[1]:.1f} s"
    )
    return met


def _appends(setting: Setting) -> tuple[Contestant, Contestant]:
    source = setting.data.folder / "parquet"

    def ours(number: int) -> Measurement:
        table: dict[str, Any] = {"table": f"ours_{number}", "path": f"{source}/*.parquet"}
        return _sync(setting, f"append-lakeload-{number}", table)

    def bare(number: int) -> Measurement:
        return _bare(setting, f"append-spark-{number}", "append", source, f"bare_{number}")

    return ours, bare


def _merges(setting: Setting, runs: int) -> tuple[Contestant, Contestant]:
    """Both tables are made by Spark, and lakeload makes itself at home in its one first."""
    for number in range(runs + 1):
        _write_changes(setting, number)
    for table in ("merged_ours", "merged_bare"):
        _bare(setting, f"made-{table}", "append", setting.data.folder / "parquet", table)

    def ours(number: int) -> Measurement:
        path = f"{_changes(setting, number)}/*.parquet"
        table: dict[str, Any] = {"table": "merged_ours", "path": path, "mode": "UPSERT"}
        return _sync(setting, f"merge-lakeload-{number}", table)

    def bare(number: int) -> Measurement:
        source = _changes(setting, number)
        return _bare(setting, f"merge-spark-{number}", "merge", source, "merged_bare")

    ours(runs)
    bare(runs)
    return ours, bare


def _sync(setting: Setting, name: str, table: dict[str, Any]) -> Measurement:
    folder = setting.scratch / name
    folder.mkdir()
    lake = setting.lake
    destination = lake.destination("iceberg")
    destination["endpoints"]["glue"] = lake.endpoint
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
        "spark": {"master": f"local[{setting.cores}]", "driver_memory": setting.heap},
    }
    (folder / "pipeline.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    own = {
        "LAKELOAD_CACHE_DIR": str(bench_dir() / "lakeload-cache"),
        "LAKELOAD_RUN_DIR": str(folder / "runs"),
    }
    command = [str(Path(sys.executable).with_name("lakeload")), "sync", "pipeline.yml"]
    environment = plain_environment() | lake.environment() | own
    return setting.run([*command, "--output", "json"], environment, name)


def _bare(setting: Setting, name: str, what: str, source: Path, table: str) -> Measurement:
    lake = setting.lake
    properties = setting.scratch / "spark.conf"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{k}={v}\n" for k, v in _properties(setting).items()))
    command = [str(Path(sys.executable).with_name("spark-submit"))]
    command += ["--master", f"local[{setting.cores}]", "--driver-memory", setting.heap]
    command += ["--properties-file", str(properties), str(PEERS / "iceberg_bare.py")]
    schema = ", ".join(f"{column} {kind}" for column, kind in SPARK_TYPES.items())
    command += [what, str(source), f"{SCHEMA}.{table}", str(uuid.uuid4()), schema]
    environment = plain_environment() | lake.environment()
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment |= {f"AWS_ENDPOINT_URL_{service}": lake.endpoint for service in ("GLUE", "STS")}
    return setting.run(command, environment, name)


def _properties(setting: Setting) -> dict[str, str]:
    """Spark's own catalog on the same Glue, through the same role."""
    lake = setting.lake
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
    return {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.driver.extraClassPath": ":".join(map(str, setting.jars)),
        **{f"spark.sql.catalog.lake{name}": value for name, value in catalog.items()},
    }


def _changes(setting: Setting, number: int) -> Path:
    return setting.scratch / "changes" / str(number)


def _write_changes(setting: Setting, number: int) -> None:
    """Every 16th row with another note, and new rows behind the last key."""
    updates = setting.changes * 4 // 5
    tables = [pq.read_table(file) for file in setting.data.files("parquet")]
    rows = pa.concat_tables(tables)
    keys = rows.column(KEY)
    remainder = pc.subtract(keys, pc.multiply(pc.divide(keys, SPREAD), SPREAD))
    found = rows.filter(pc.equal(remainder, number)).slice(0, updates)
    added = rows.slice(0, setting.changes - updates)
    first = setting.data.rows + number * added.num_rows + 1
    added = added.set_column(0, KEY, pa.array(range(first, first + added.num_rows), pa.int64()))
    changed = pa.concat_tables([found, added])
    note = changed.schema.get_field_index("note")
    notes = pa.array([f"round {number}"] * changed.num_rows)
    folder = _changes(setting, number)
    folder.mkdir(parents=True)
    pq.write_table(changed.set_column(note, "note", notes), folder / "changes.parquet")


def _verify(setting: Setting, runs: int) -> None:
    """Count with pyiceberg: all rows, and those of each round."""
    from pyiceberg.catalog import load_catalog

    lake = setting.lake
    properties = {
        "type": "glue",
        "glue.endpoint": lake.endpoint,
        "s3.endpoint": lake.endpoint,
        "client.region": lake.seeded.region,
        "client.access-key-id": "test",
        "client.secret-access-key": "test",
    }
    catalog = load_catalog("lake", **properties)
    expected: dict[str, int] = {f"{who}_{n}": 0 for who in ("ours", "bare") for n in range(runs)}
    expected |= dict.fromkeys(("merged_ours", "merged_bare"), runs + 1)
    for name, rounds in expected.items():
        rows = catalog.load_table((SCHEMA, name)).scan(selected_fields=("note",)).to_arrow()
        counts = pc.value_counts(rows.column("note")).to_pylist()
        found = {one["values"]: one["counts"] for one in counts}
        per_round = [found.get(f"round {number}", 0) for number in range(rounds)]
        inserted = setting.changes - setting.changes * 4 // 5
        if rows.num_rows != setting.data.rows + rounds * inserted or any(
            count != setting.changes for count in per_round
        ):
            raise BenchFailed(f"{name} holds {rows.num_rows} rows, rounds {json.dumps(per_round)}")
    print(f"{len(expected)} tables hold what they must")


if __name__ == "__main__":
    sys.exit(main())
