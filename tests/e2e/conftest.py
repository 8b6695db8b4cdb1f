"""Lakes of each table format, for tests of what is the same for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.rest_lake import CLIENT_SECRET, gate_of
from tests.faults.rounds.lake import RoundsLake
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import Gate, iceberg_in


@dataclass(frozen=True)
class LakeOfFormat:
    """A lake of Parquet files, or of Iceberg tables in a REST catalog that vends no keys."""

    lake: Lake
    gate: Gate | None

    @property
    def destination(self) -> dict[str, Any]:
        """What the destination says of it."""
        return iceberg_in(self.gate) if self.gate else {}

    def write(self, folder: Path, **settings: Any) -> None:
        """Write documents whose tables are in the schema `shop`, as `Lake.write_pipeline` does."""
        settings["destination"] = {**settings.get("destination", {}), **self.destination}
        self.lake.write_pipeline(folder, destination_prefix=None, namespace="shop", **settings)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table, as pyiceberg reads them, or pyarrow each Parquet file."""
        proxy = FaultProxy(self.lake.server.endpoint)
        return RoundsLake(self.lake, proxy, self.gate).rows(table, *columns)


@pytest.fixture(params=["parquet", "iceberg"])
def of_format(
    request: pytest.FixtureRequest, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LakeOfFormat]:
    """A lake of each format."""
    if request.param == "parquet":
        yield LakeOfFormat(lake, None)
        return
    monkeypatch.setenv("CREDENTIAL", f"loader-id:{CLIENT_SECRET}")
    with gate_of(lake) as gate:
        yield LakeOfFormat(lake, gate)
