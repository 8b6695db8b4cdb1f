"""`python -m bench.cluster`: the throughput of two workers of a standalone Spark against one.

Each worker has one core and an identity of its own. One `lakeload sync` of the benchmark's CSV
files with one worker and one with two, in pairs; wall time, because the work runs outside the
command's tree. Driver, master and the AWS emulator run on the workers' cores: with one worker
everything runs on one core.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import boto3
import yaml

from bench.contestants import LakeloadSync
from bench.data import bench_dir, data_set
from bench.lake import Lake, running_lake
from bench.machine import on_cores
from bench.verify import verify
from lakeload.demo.aws import AwsAdmin, allow_assume_role
from tests.servers.standalone_spark import StandaloneSpark

WORKERS_BAR = 1.7
"""Wall time with one worker over that with two."""
BARS_FROM_ROWS = 3_000_000
SECRET = "lakeload/bench"  # noqa: S105 - a name


class SyncFailed(RuntimeError):
    """A sync on the cluster failed; the message ends with what it printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every run, the medians and the bar; 0 when it is reached."""
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--runs", type=int, default=1, help="pairs; medians are shown")
    given = parser.parse_args(arguments)
    bench_dir().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="cluster-", dir=bench_dir()))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    try:
        with running_lake(scratch / "aws") as lake:
            for number in range(given.runs):
                for workers in (1, 2) if number % 2 == 0 else (2, 1):
                    folder = scratch / f"{number}-{workers}"
                    folder.mkdir()
                    took = _run(lake, folder, given.rows, workers)
                    seconds[workers].append(took)
                    print(f"{workers} workers: {took:.1f} s", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    one, two = (statistics.median(seconds[workers]) for workers in (1, 2))
    for workers, took in seconds.items():
        spread = f"{min(took):.1f}–{max(took):.1f}"
        print(f"{workers} workers: {statistics.median(took):.1f} s ({spread})")
    verdict = "reached" if one / two >= WORKERS_BAR else "MISSED"
    if given.rows < BARS_FROM_ROWS:
        verdict = "not judged, the start of Java weighs"
    text = f"two workers are {one / two:.2f} × as fast as one at {given.rows:,} rows"
    print(f"{text}, bar ≥ {WORKERS_BAR}: {verdict}")
    return 1 if verdict == "MISSED" else 0


def _run(lake: Lake, folder: Path, rows: int, workers: int) -> float:
    """Load the table on a new cluster and verify its files; return the seconds of the sync."""
    data = data_set(rows)
    command, environment = _command(lake, folder, rows)
    cluster = StandaloneSpark(folder)
    try:
        cluster.start()
        for number in range(workers):
            cluster.add_worker(f"worker{number}", _identity(lake), cores=1, memory="2g")
        with on_cores(workers):
            started = time.monotonic()
            done = subprocess.run(
                [*command, "--master", cluster.master],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            seconds = time.monotonic() - started
    finally:
        cluster.stop()
    if done.returncode != 0:
        raise SyncFailed(f"status {done.returncode}:\n{done.stdout.decode(errors='replace')}")
    contestant = LakeloadSync(lake, "1g", 1)
    files = lake.download(folder.name, folder / "out")
    lake.clear()
    verify(files, data, encode=contestant.encode, dense_index=contestant.dense_index)
    return seconds


def _command(lake: Lake, folder: Path, rows: int) -> tuple[list[str], dict[str, str]]:
    """Return the contestant's command and environment, with the ExternalId kept in AWS, where
    executors find it too."""
    prepared = LakeloadSync(lake, "1g", 1).prepare("CSV", data_set(rows), folder)
    path = folder / "pipeline.yml"
    document = yaml.safe_load(path.read_text())
    document["destination"]["credentials"]["external_id"] = {"aws_secret": _external_id(lake)}
    # An executor has two processes: Java, and Python for its one task.
    document["spark"]["conf"] = {"spark.executor.memory": "1g"}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    secrets = {"AWS_ENDPOINT_URL_SECRETS_MANAGER": lake.endpoint}
    return prepared.command, prepared.environment | secrets


def _identity(lake: Lake) -> dict[str, str]:
    """Return a worker's environment: the base identity, and where its secret is."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED")
    own = {name: lake.environment()[name] for name in names}
    return own | {"AWS_ENDPOINT_URL_SECRETS_MANAGER": lake.endpoint}


def _external_id(lake: Lake) -> str:
    """Keep the ExternalId in the emulator's Secrets Manager; return the secret's name."""
    secrets = boto3.client(
        "secretsmanager",
        endpoint_url=lake.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106
    )
    if not secrets.list_secrets()["SecretList"]:
        arn = secrets.create_secret(Name=SECRET, SecretString=lake.seeded.external_id)["ARN"]
        assume = allow_assume_role(lake.seeded.role_arn)["Statement"]
        assert isinstance(assume, list)  # noqa: S101 - a policy of one's own
        read = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": arn}
        AwsAdmin(lake.endpoint, region=lake.seeded.region).put_user_policy(
            lake.seeded.user, {"Version": "2012-10-17", "Statement": [*assume, read]}
        )
    return SECRET


if __name__ == "__main__":
    sys.exit(main())
