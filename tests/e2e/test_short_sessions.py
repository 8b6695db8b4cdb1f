"""A load that takes longer than a role session lives still ends well."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.command import sync
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake
from tests.servers.short_tokens import ShortTokens

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

DURATION = 900
EARLY = DURATION // 3
"""So many seconds before the expiry a session of this duration is renewed."""
LIFE = 6.0
TABLES = 3


def test_load_longer_than_its_role_session_succeeds(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    tables = []
    for number in range(TABLES):
        (tmp_path / f"t{number}.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(100)))
        tables.append({"table": f"t{number}", "path": f"t{number}.csv"})
    credentials = {
        "role_arn": lake.seeded.role_arn,
        "external_id": {"env": EXTERNAL_ID_VARIABLE},
        "session_duration": DURATION,
    }
    lake.write_pipeline(
        tmp_path,
        tables=tables,
        endpoint=fault_proxy.endpoint,
        concurrency=1,
        destination={"credentials": credentials},
    )
    slow = {"CompleteMultipartUpload": LIFE / 2}
    tokens = ShortTokens(fault_proxy, seconds=LIFE, told=EARLY + 2, slow=slow)

    ended = sync(lake, tmp_path)
    assert ended.code == 0, ended.stdout + ended.stderr
    assert {table["status"] for table in ended.tables.values()} == {"LOADED"}
    assert tokens.refused == 0
    # Only the driver completes uploads, all with one session object: its credentials were renewed.
    used = {
        request.header("X-Amz-Security-Token")
        for request in fault_proxy.requests
        if request.operation == "CompleteMultipartUpload"
    }
    assert len(used) > 1
    rows = sum(pq.read_metadata(file).num_rows for file in lake.download(tmp_path / "lake"))
    assert rows == TABLES * 100
