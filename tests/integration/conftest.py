"""One destination per test: the role of the enforcing emulator, straight or through the proxy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.formats import read_rows
from lakeload_jobs.formats.data_files.parts import rows_in_arrow
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake

QUICK = Waits(answer=3, live_author=0, late_completion=0, shortest_pause=0.01, longest_pause=0.1)
"""No waiting: for tests that are alone in their table."""


def make_destination(lake: Lake, endpoint: str | None = None, **changes: object) -> DestinationSpec:
    """The lake as a destination that assumes its role; through `endpoint` when given."""
    place = endpoint or lake.server.endpoint
    credentials = CredentialsSpec(
        role_arn=lake.seeded.role_arn,
        external_id=SecretReference("env", EXTERNAL_ID_VARIABLE),
    )
    spec = DestinationSpec(
        bucket=lake.seeded.bucket,
        region=lake.seeded.region,
        prefix=lake.seeded.prefix,
        credentials=credentials,
        endpoints=EndpointsSpec(s3=place, sts=lake.server.endpoint),
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


@pytest.fixture
def destination(base_identity: Lake) -> DestinationSpec:
    """Straight to the emulator."""
    return make_destination(base_identity)


@pytest.fixture
def objects(destination: DestinationSpec) -> Objects:
    """The bucket as the role sees it."""
    return Objects(AwsSession(destination), destination, waits=QUICK)


@pytest.fixture
def admin_objects(base_identity: Lake, monkeypatch: pytest.MonkeyPatch) -> Objects:
    """The bucket as its administrator sees it: the role may not delete data."""
    monkeypatch.setenv("LAKE_ADMIN_KEY", "test")
    key = SecretReference("env", "LAKE_ADMIN_KEY")
    credentials = CredentialsSpec(access_key_id=key, secret_access_key=key)
    destination = make_destination(base_identity, credentials=credentials)
    return Objects(AwsSession(destination), destination, waits=QUICK)


@pytest.fixture
def proxied(base_identity: Lake, fault_proxy: FaultProxy) -> Objects:
    """The bucket through the fault proxy, impatient."""
    destination = make_destination(base_identity, fault_proxy.endpoint)
    session = AwsSession(destination, read_timeout=5, max_attempts=2)
    return Objects(session, destination, waits=QUICK)


@pytest.fixture
def through_spark(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the tables whose rows Spark's SQL has made of the source's."""
    found: set[str] = set()

    def noted(spec: JobSpec, table: TableSpec, *rows: Any) -> Any:
        parts = rows_in_arrow(spec, table, *rows)
        if parts is None:
            found.add(table.table)
        return parts

    monkeypatch.setattr(read_rows, "rows_in_arrow", noted)
    return found
