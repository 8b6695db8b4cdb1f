"""`lakeload sync` before it loads: the job id, and what is asked of the source."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.unit.commands.command import lakeload

SOURCE = {"type": "JDBC", "user": "loader", "password": {"env": "DB_PASSWORD"}}
DESTINATION = {"version": 1, "bucket": "my-data-lake", "region": "eu-west-1"}


def documents(folder: Path, table: dict[str, str]) -> None:
    """Write a pipeline that reads a database which nobody serves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    source = {**SOURCE, "url": f"postgresql://127.0.0.1:{port}/shop"}
    pipeline = {"version": 1, "name": "shop", "destination": "destination.yml", "source": source}
    for name, document in (
        ("destination.yml", DESTINATION),
        ("pipeline.yml", {**pipeline, "tables": [table]}),
    ):
        (folder / name).write_text(json.dumps(document))


@pytest.mark.parametrize("table", [{"table": "public.*"}, {"table": "public.orders"}])
def test_sync_shows_the_job_id_before_it_asks_the_source(
    tmp_path: Path, table: dict[str, str]
) -> None:
    documents(tmp_path, table)

    ended = lakeload(
        "sync", "pipeline.yml", "--job-id", "monday", folder=tmp_path, DB_PASSWORD="secret"
    )

    assert ended.returncode == 3
    first, *others = ended.stderr.splitlines()
    assert first == "job monday"
    assert "127.0.0.1" in "".join(others)


def test_sync_rejects_options_before_it_asks_the_source(tmp_path: Path) -> None:
    documents(tmp_path, {"table": "public.orders"})

    ended = lakeload(
        "sync", "pipeline.yml", "--table", "lines", folder=tmp_path, DB_PASSWORD="secret"
    )

    assert ended.returncode == 2
    assert ended.stderr.startswith("error: `--table lines` matches no table of the pipeline")
