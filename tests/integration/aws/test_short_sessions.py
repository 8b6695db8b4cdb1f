"""Role sessions that end in the middle of the work are renewed before anybody notices."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from lakeload_jobs.aws import AwsSession, RefreshWindow
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec
from lakeload_jobs.storage.objects import Objects
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake
from tests.servers.short_tokens import ShortTokens

LIFE = 3.0
WORK = 7.0
WINDOW = RefreshWindow(early=20, late=10)


def test_session_shared_by_threads_renews_its_credentials(
    base_identity: Lake, fault_proxy: FaultProxy
) -> None:
    seeded = base_identity.seeded
    destination = DestinationSpec(
        seeded.bucket,
        seeded.region,
        seeded.prefix,
        CredentialsSpec(
            role_arn=seeded.role_arn, external_id=SecretReference("env", EXTERNAL_ID_VARIABLE)
        ),
        EndpointsSpec(s3=fault_proxy.endpoint, sts=fault_proxy.endpoint),
    )
    # The client renews 20 s before the expiry it was told, so it believes in a session for 1 s.
    tokens = ShortTokens(fault_proxy, seconds=LIFE, told=WINDOW.early + 1)
    objects = Objects(AwsSession(destination, refresh=WINDOW), destination)
    end = time.monotonic() + WORK

    def work(number: int) -> int:
        count = 0
        while time.monotonic() < end:
            assert objects.put_if_absent(f"{seeded.prefix}/{number}-{count}", b"1")
            count += 1
            time.sleep(0.05)
        return count

    with ThreadPoolExecutor(4) as pool:
        written = sum(pool.map(work, range(4)))
    assert len(base_identity.keys()) == written
    assert tokens.refused == 0
    # One for each second or so, not one for each request or thread.
    assert WORK / LIFE <= tokens.issued <= WORK * 2
