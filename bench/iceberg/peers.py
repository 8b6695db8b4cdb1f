"""pyiceberg and dlt: whole commands that upsert the same changes, each with a table of its own."""

from __future__ import annotations

import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from bench.commands import plain_environment
from bench.contestants import PEERS
from bench.environment import peer_python
from bench.iceberg.setting import SCHEMA, Run, Setting
from bench.lake import BUCKET, PREFIX
from bench.measure import Measurement


@dataclass(frozen=True)
class Peer:
    """One of them. What keeps it from running, or from finishing, never fails the benchmark."""

    setting: Setting
    name: str
    table: str

    @property
    def rounds(self) -> int:
        """The first few: a peer may take minutes."""
        return self.setting.peer_runs

    def prepare(self) -> str:
        """Append the data set, which makes the table. See `Merger.prepare`."""
        source = self.setting.data.folder / "parquet"
        try:
            _, why = self._start(f"made-{self.name}", "append", source)
        except subprocess.CalledProcessError as error:
            return f"could not be installed: `pip` ended with {error.returncode}"
        return why and f"{why} while it made its table"

    def merge(self, number: int) -> Run:
        """Upsert a round's changes, up to the limits."""
        source = self.setting.changed(number)
        cost, why = self._start(f"merge-{self.name}-{number}", "merge", source)
        return Run("merge", self.name, number, cost, why)

    def _start(self, name: str, what: str, source: Path) -> tuple[Measurement, str]:
        """Run the peer; return what it cost and why it did not finish, empty when it did."""
        lake = self.setting.lake
        warehouse = f"s3://{BUCKET}/{PREFIX}/{self.name}"
        command = [peer_python(), "-m", f"bench.peers.iceberg_{self.name}", what, str(source)]
        command += [self.table, str(uuid.uuid4()), lake.endpoint, lake.seeded.region]
        command += [lake.seeded.role_arn, warehouse]
        environment = plain_environment() | lake.environment()
        environment |= {
            "PYTHONPATH": str(PEERS.parent.parent),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        }
        cost, said = self.setting.try_to_run(command, environment, name, self.setting.limits)
        if cost.stopped:
            return cost, f"was stopped at {cost.stopped}"
        if cost.status != 0:
            last = said.splitlines()[-1] if said else f"status {cost.status}"
            print(said, flush=True)
            return cost, f"failed with `{last}`"
        return cost, ""


def peers(setting: Setting) -> list[Peer]:
    """pyiceberg and dlt; dlt keeps tables of its own beside the one it loads."""
    return [
        Peer(setting, "pyiceberg", f"{SCHEMA}.merged_pyiceberg"),
        Peer(setting, "dlt", f"{SCHEMA}_dlt.merged_dlt"),
    ]
