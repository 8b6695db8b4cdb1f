"""The base identity in the JVM: given once in a run, its keys at once, renewed by one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.credentials import Keys
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.formats.iceberg.load import publish as publish_module
from lakeload_jobs.formats.iceberg.load import write as write_module
from lakeload_jobs.formats.iceberg.load.jvm_credentials import JvmCredentials
from tests.integration.formats.iceberg.conftest import Loads

NAMES = ("aws.accessKeyId", "aws.secretAccessKey", "aws.sessionToken")


class Identity:
    """An identity whose keys are others each time somebody asks."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def base_keys(self) -> Keys:
        number = next(self._numbers)
        return Keys(f"key-{number}", Secret(f"secret-{number}"), Secret(f"token-{number}"), None)


@pytest.fixture
def properties(spark: SparkSession) -> Iterator[Any]:
    """Java's system properties; the keys are put back."""
    system = cast("Any", spark)._jvm.java.lang.System
    before = {name: system.getProperty(name) for name in NAMES}
    yield system
    for name, value in before.items():
        if value is None:
            system.clearProperty(name)
        else:
            system.setProperty(name, value)


def test_jvm_credentials_never_mix_two_identities(loads: Loads, properties: Any) -> None:
    aws = cast("AwsSession", Identity())
    ended = threading.Event()

    def renew() -> None:
        for _ in range(200):
            JvmCredentials(loads.spark, loads.destination, aws)
        ended.set()

    JvmCredentials(loads.spark, loads.destination, aws)
    writer = threading.Thread(target=renew)
    writer.start()
    mixed = set()
    while not ended.is_set():
        now = properties.getProperties().clone()
        numbers = {str(now.getProperty(name)).rpartition("-")[2] for name in NAMES}
        if len(numbers) > 1:
            mixed.add(tuple(sorted(numbers)))
    writer.join()
    assert mixed == set()


def test_tables_that_are_merged_share_the_credentials_of_their_run(
    loads: Loads, properties: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Keys] = []
    renewing: list[int] = []
    original, publish = AwsSession.base_keys, publish_module.publish

    def expiring(self: AwsSession) -> Keys:
        asked.append(replace(original(self), expires=datetime.now(UTC) + timedelta(hours=1)))
        return asked[-1]

    def counted(given: Any) -> Any:
        renewing.append(len(_renewals()))
        return publish(given)

    monkeypatch.setattr(AwsSession, "base_keys", expiring)
    monkeypatch.setattr(write_module, "publish", counted)
    before = len(_renewals())
    path = loads.file([{"id": 1}])
    names = ("orders", "lines", "customers")
    tables = [loads.table(path, name=n, mode="UPSERT", primary_key=("id",)) for n in names]

    result = loads.run(loads.spec(*tables))

    assert [table.status for table in result.tables] == ["LOADED"] * 3
    assert len(asked) == 1
    assert set(renewing) == {before + 1}
    assert len(_renewals()) == before


def _renewals() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "renew" in thread.name]
