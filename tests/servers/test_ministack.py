"""The emulator enforces what the product's promises rest on, and ends with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lakeload.demo import aws as embedded
from lakeload_jobs.contract.errors import MachineNotReady
from tests.servers.ministack import AwsServer

_STARTER = """
import sys, time
from pathlib import Path
from lakeload.demo.aws import EmbeddedAws
aws = EmbeddedAws(Path(sys.argv[1]))
aws.start()
sys.stdout.write(aws.endpoint + "\\n")
sys.stdout.flush()
time.sleep(60)
"""


def test_the_embedded_aws_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdout.readline().startswith(b"http://127.0.0.1:")
    (child,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 10
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, "the emulator outlived its parent"
        time.sleep(0.05)


def test_a_missing_emulator_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MachineNotReady) as caught:
        embedded.EmbeddedAws(tmp_path).start()
    assert "lakeload[demo]" in str(caught.value.hint)


def test_an_emulator_that_cannot_start_names_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded.EmbeddedAws, "program", ("/bin/false",))
    aws = embedded.EmbeddedAws(tmp_path)
    with pytest.raises(MachineNotReady) as caught:
        aws.start()
    assert str(aws.log) in str(caught.value.hint)


def test_ministack_denial_has_its_reason(aws: AwsServer) -> None:
    aws.admin.create_bucket("twice-created", region="eu-central-1")
    head = aws.s3.head_bucket(Bucket="twice-created")
    assert head["BucketRegion"] == "eu-central-1"
    with pytest.raises(Exception, match="returned 409"):
        aws.admin.create_bucket("twice-created", region="eu-central-1")
