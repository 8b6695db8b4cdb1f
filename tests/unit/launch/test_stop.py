"""Requests to stop, over several runs of one process."""

from __future__ import annotations

import os
import signal

import pytest

from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.errors import Interrupted


def test_stop_signal_applies_to_each_new_run() -> None:
    with StopRequests() as stop:
        stop.hold()
        stop.begin()

        with pytest.raises(Interrupted, match="stopped by SIGINT before Spark started"):
            os.kill(os.getpid(), signal.SIGINT)


def test_stop_signal_before_a_run_prevents_it() -> None:
    with StopRequests() as stop:
        stop.hold()
        os.kill(os.getpid(), signal.SIGTERM)

        for _ in range(2):
            with pytest.raises(Interrupted, match="stopped by SIGTERM"):
                stop.begin()
