"""An AWS that checks what AWS checks: the emulator with tests/servers/exact_server.py.

It is always a process of this host: the emulator that LAKELOAD_TEST_AWS_ENDPOINT may name has not
these checks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakeload.demo.aws import EmbeddedAws
from tests.servers.ministack import AwsServer

SCRIPT = Path(__file__).with_name("exact_server.py")


class ExactAws(EmbeddedAws):
    """The embedded AWS, started through the script."""

    program = (sys.executable, "-P", str(SCRIPT))


@pytest.fixture(scope="session")
def exact_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsServer]:
    """One of them for the whole run."""
    with ExactAws(tmp_path_factory.mktemp("exact-aws")) as exact:
        yield AwsServer(exact.endpoint)
