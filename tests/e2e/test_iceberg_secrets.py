"""A load of an Iceberg table from a database, with a driver of the user, shows no secret.

Not in files, the event log, argv or Spark's pages: it starts a Spark of its own.
"""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakeload.demo.aws import destination_policy
from lakeload.documents.load import load_destination
from lakeload.documents.spec import destination_spec
from tests.e2e.canaries import SETTINGS, Canaries, canaries_of, password_canary
from tests.e2e.command import Ended, lakeload
from tests.e2e.h2_database import h2_source
from tests.e2e.rest_lake import CLIENT_SECRET, gate_of, rows
from tests.e2e.watching import ArgvWatcher
from tests.servers.fault_proxy import FaultProxy, edit_body
from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import CATALOG, Gate
from tests.servers.standalone_spark import QUICK_DRIVER

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

HEADER = "canary-tenant-header-42"


@contextmanager
def spark_pages(port: int) -> Iterator[list[bytes]]:
    """Collect what Spark's web interface says of its environment while a sync runs."""
    seen: list[bytes] = []
    over = threading.Event()

    def look() -> None:
        place = f"http://127.0.0.1:{port}"
        while not over.wait(0.3):
            try:
                applications = json.loads(_page(f"{place}/api/v1/applications"))
                (found,) = applications
                rest = f"{place}/api/v1/applications/{found['id']}"
                pages = [f"{rest}/environment", f"{rest}/sql?details=true", f"{place}/environment/"]
                seen.extend([_page(page) for page in pages])
            except (OSError, ValueError):
                continue  # it has not begun, or has ended

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _page(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310
        content: bytes = answer.read()
        return content


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(
    lake: Lake, folder: Path, canaries: Canaries, cache: Path, port: int
) -> tuple[Ended, set[bytes], list[bytes]]:
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "event-log").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
    }
    flags = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    flags += QUICK_DRIVER
    with ArgvWatcher() as watcher, spark_pages(port) as pages:
        ended = _sync(lake, folder, canaries, cache, *flags, log="load.log")
    return ended, watcher.seen, pages


def _sync(
    lake: Lake, folder: Path, canaries: Canaries, cache: Path, *flags: str, log: str
) -> Ended:
    arguments = ("sync", "pipeline.yml", "--job-id", "canary", "-vv", "--log-file", log)
    changes: dict[str, str | None] = {
        "AWS_ACCESS_KEY_ID": None,
        "AWS_SECRET_ACCESS_KEY": None,
        "LAKELOAD_EXTERNAL_ID": None,
        "LAKELOAD_CACHE_DIR": str(cache),
        "TMPDIR": str(folder / "tmp"),
        **canaries.environment,
        "CREDENTIAL": f"loader-id:{CLIENT_SECRET}",
        "TOKEN": canaries.values.get("fixed token"),
        "TENANT": HEADER,
        "SHOP_PASSWORD": canaries.values["password"],
    }
    return lakeload(lake, folder, *arguments, "--output", "json", *flags, **changes)


def _write(
    lake: Lake, folder: Path, source: dict[str, Any], catalog: dict[str, Any], endpoint: str
) -> None:
    """Write documents whose every secret is a reference."""
    references = {name: {"env": f"CANARY_{name.upper()}"} for name in SETTINGS}
    table = {"table": "PUBLIC.ORDERS", "name": "orders", "mode": "UPSERT", "primary_key": ["id"]}
    lake.write_pipeline(
        folder,
        tables=[table],
        source=source,
        endpoint=endpoint,
        destination={
            "credentials": {"role_arn": lake.seeded.role_arn, **references},
            "table_format": "ICEBERG",
            "iceberg": {"catalog": catalog},
        },
        destination_prefix=None,
        namespace="shop",
    )


def _issued(gate: Gate) -> str:
    """Return a token that somebody else has asked for."""
    client = {"client_id": "loader-id", "client_secret": CLIENT_SECRET}
    _, answer = gate.token_for({**client, "scope": "PRINCIPAL_ROLE:ALL"})
    return str(answer["access_token"])


def test_a_load_from_a_database_through_a_rest_catalog_shows_no_secret_anywhere(
    lake: Lake,
    fault_proxy: FaultProxy,
    jars_cache: Path,
    jdbc_jars: tuple[Path, ...],
    tmp_path: Path,
) -> None:
    canaries = canaries_of(lake)
    canaries.values |= password_canary().values
    fault_proxy.on("AssumeRole", edit_body(canaries.remember_issued))
    folder = tmp_path / "user"
    for name in ("tmp", "event-log"):
        (folder / name).mkdir(parents=True)
    source = h2_source(jdbc_jars[0], tmp_path, canaries.values["password"])
    with gate_of(lake) as gate:
        catalog = {
            "type": "REST",
            "uri": gate.uri,
            "warehouse": CATALOG,
            "access_delegation": "NONE",
            "headers": {"X-Tenant": {"env": "TENANT"}},
        }
        client = {"credential": {"env": "CREDENTIAL"}, "scope": "PRINCIPAL_ROLE:ALL"}
        _write(lake, folder, source, catalog | client, fault_proxy.endpoint)
        spec = destination_spec(load_destination(folder / "destination.yml", {}))
        lake.server.admin.put_role_policy(lake.seeded.role, destination_policy(spec))
        ended, argvs, pages = _run(lake, folder, canaries, jars_cache, _free_port())
        assert ended.code == 0, ended.stdout + ended.stderr
        assert rows(lake, gate, "orders") == [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]
        canaries.values["fixed token"] = _issued(gate)
        _write(lake, folder, source, catalog | {"token": {"env": "TOKEN"}}, fault_proxy.endpoint)
        again = _sync(lake, folder, canaries, jars_cache, log="again.log")
        assert (again.code, again.tables["PUBLIC.ORDERS"]["status"]) == (0, "NO_OP"), again.stderr
        assert again.document["log"] is None, "no Spark was started"

    canaries.values |= {"client secret": CLIENT_SECRET, "header": HEADER}
    canaries.values |= {f"token {n}": token for n, token in enumerate(gate._tokens)}
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    # The looking itself: each place holds what it should, so a secret would have been seen.
    events = b"".join(content for path, content in files.items() if "event-log" in path.parts)
    assert b"spark.sql.catalog.lake" in events
    assert any(b"spark.sql.extensions" in page for page in pages)
    assert any(name.startswith("issued SessionToken") for name in canaries.values)
    assert any(name.startswith("token ") for name in canaries.values)
    asked = [r for r in gate.requests if r.headers.get("X-Tenant") == HEADER]
    assert asked, "the header was sent"

    objects = lake.keys()
    assert objects
    for path, content in files.items():
        assert canaries.found_in(content) == [], f"in the file {path}"
    for argv in argvs:
        assert canaries.found_in(argv) == [], "in the argv of a process"
    for page in pages:
        assert canaries.found_in(page) == [], "on a page of Spark's web interface"
    for key in objects:
        assert canaries.found_in(lake.read(key)) == [], f"in the object {key}"
    for one in (ended, again):
        assert canaries.found_in((one.stdout + one.stderr).encode()) == []
