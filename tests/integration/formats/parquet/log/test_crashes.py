"""A process that dies between any two requests of the protocol: the next run repairs it.

The kill is a proxy that from the chosen request on answers nothing more: the writer ends with an
error, as good as dead, and has sent nothing after it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects
from tests.integration.conftest import make_destination
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Drop, FaultProxy, Forward, Response
from tests.servers.ministack import Lake

DYING = Waits(answer=0, live_author=0, late_completion=0, shortest_pause=0.01)
"""A dying process has no patience left."""


@dataclass
class Death:
    """Counts requests; at number `at` the line goes dead, before or after the server acted."""

    at: int
    acted: bool
    seen: list[str] = field(default_factory=list)

    def __call__(self, request: Request, forward: Forward) -> Response:
        """Forward, or drop this request and all that follow."""
        self.seen.append(request.operation)
        if len(self.seen) < self.at:
            return forward(request)
        if len(self.seen) == self.at and self.acted:
            forward(request)
        raise Drop


@dataclass
class Mortal:
    """Makes writers that die; a table of its own for each."""

    lake: Lake
    proxy: FaultProxy
    objects: Objects

    def writer(self, death: Death, table: str) -> Writer:
        """Return a writer whose process dies as `death` says."""
        self.proxy.rules.clear()
        self.proxy.on("*", death)
        return Writer(self.objects, "job-1", table=table, source=table)

    def rows(self, table: str) -> list[str]:
        """What a reader of the table sees: job and number of each row, sorted."""
        keys = self.lake.keys(f"data-lake/test/shop/{table}/")
        texts = [self.lake.read(key).decode().split() for key in keys]
        return sorted(f"{job} {number}" for job, _, number in texts)


@pytest.fixture
def mortal(base_identity: Lake, fault_proxy: FaultProxy) -> Mortal:
    """Writers behind the proxy."""
    destination = make_destination(base_identity, fault_proxy.endpoint)
    session = AwsSession(destination, read_timeout=5, max_attempts=1)
    return Mortal(base_identity, fault_proxy, Objects(session, destination, waits=DYING))


STEPS = [
    "GetObject",  # 0: the checkpoint
    "ListObjectsV2",  # 0: the log
    "GetObject",  # 0: who loads this source elsewhere
    "CreateMultipartUpload",  # 2
    "UploadPart",
    "CreateMultipartUpload",
    "UploadPart",
    "PutObject",  # the source is claimed for this table
    "PutObject",  # 3: the record
    "CompleteMultipartUpload",  # 4
    "CompleteMultipartUpload",
    "PutObject",  # 5: the end
]
"""The requests of a first job of two files."""

LATER_STEPS = [step for number, step in enumerate(STEPS) if number not in (2, 7)] + ["PutObject"]
"""Those of every job after it: no claim, and the checkpoint at the end."""

EVERY_STEP = range(1, len(STEPS) + 1)
COMMIT = STEPS.index("PutObject") + 2


def test_load_sends_exactly_the_expected_requests(mortal: Mortal) -> None:
    alive = Death(at=10**9, acted=False)
    mortal.writer(alive, "orders").run()
    assert alive.seen == STEPS
    again = Death(at=10**9, acted=False)
    mortal.writer(again, "orders").run()
    assert again.seen == ["GetObject", "ListObjectsV2", "GetObject"]
    later = Death(at=10**9, acted=False)
    writer = mortal.writer(later, "orders")
    writer.job_id = "job-2"
    writer.run()
    # The first record is read once more: the checkpoint begins with the second.
    assert later.seen == ["GetObject", "ListObjectsV2", "GetObject", *LATER_STEPS[2:]]


@pytest.mark.parametrize("acted", [False, True], ids=["before", "after"])
def test_rerun_after_a_crash_completes_the_job(
    mortal: Mortal, objects: Objects, acted: bool
) -> None:
    for at in EVERY_STEP:
        table = f"orders_{at}"
        Writer(objects, "job-0", table=table, source=table).run()
        with suppress(LakeloadError):
            mortal.writer(Death(at, acted), table).run()
        Writer(objects, "job-1", table=table, source=table).run()
        Writer(objects, "job-2", table=table, source=table).run()
        expected = [f"job-{job} {number}" for job in range(3) for number in range(2)]
        assert mortal.rows(table) == expected, f"killed at {at}: {STEPS[at - 1]}"


@pytest.mark.parametrize("acted", [False, True], ids=["before", "after"])
def test_next_job_publishes_only_what_was_committed(
    mortal: Mortal, objects: Objects, acted: bool
) -> None:
    for at in EVERY_STEP:
        table = f"orders_{at}"
        with suppress(LakeloadError):
            mortal.writer(Death(at, acted), table).run()
        Writer(objects, "job-2", table=table, source=table).run()
        committed = at > COMMIT or (at == COMMIT and acted)
        expected = ["job-1 0", "job-1 1"] if committed else []
        killed = f"killed at {at}: {STEPS[at - 1]}"
        assert mortal.rows(table) == [*expected, "job-2 0", "job-2 1"], killed
        # Uploads of an attempt that never committed stay invisible until they are cleaned up.
        opened = sum(
            key.startswith(f"data-lake/test/shop/{table}/") for key in mortal.lake.uploads()
        )
        assert opened == 0 if committed else opened <= 2, killed
