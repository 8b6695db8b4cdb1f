"""What a Python worker keeps from one task to the next."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.data_files import stage


def test_a_worker_keeps_the_clients_of_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_connections", {})
    lake = DestinationSpec("lake", "us-east-1")

    first, pool = stage._connection(lake, "attempt-1", on_executor=True)
    assert stage._connection(lake, "attempt-1", on_executor=True) == (first, pool)

    second, _ = stage._connection(lake, "attempt-2", on_executor=True)
    assert second is not first
    assert len(stage._connections) == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.send(first, "key", "upload", 1, b"")
