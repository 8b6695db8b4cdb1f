"""Glue that denies, throttles, loses answers or changes under our hands: the data stays in, and
the catalog follows."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import ParquetSpec
from lakeload_jobs.formats.parquet.log.records import Column
from tests.integration.formats.parquet.glue.loader import SCHEMA, TEN, Loader
from tests.servers.fault_proxy import FaultProxy, Rule, answer, before, drop_answer, edit_body
from tests.servers.glue import LOAD_ACTIONS, allow_glue, glue_of
from tests.servers.ministack import Lake

ID = {"id": "bigint"}
COLUMNS = (Column("id", "bigint"),)
TWO = {"id": "bigint", "b": "bigint"}


def sent(proxy: FaultProxy) -> Counter[str]:
    """Return how many requests of each operation Glue got, and forget them."""
    found = Counter(r.operation for r in proxy.requests if r.service == "glue")
    proxy.requests.clear()
    return found


def test_glue_requests_of_a_load_stay_within_the_limit(
    proxied: Loader, fault_proxy: FaultProxy
) -> None:
    proxied.load("job-1", {"id": [1]}, ID, table_handling="FAIL")
    # What lies at the path was looked at when the log was opened: no second LIST of it.
    listed = [r.target for r in fault_proxy.requests if r.operation == "ListObjectsV2"]
    assert sum("orders%2F" in target and "_lakeload" not in target for target in listed) == 1
    first = sent(fault_proxy)
    assert first.pop("BatchCreatePartition") == 1
    assert sum(first.values()) <= 5, first
    proxied.load("job-2", {"id": [2]}, ID)
    steady = sent(fault_proxy)
    assert sum(steady.values()) <= 3, steady
    proxied.load("job-3", {"id": [3]}, ID, synced=TEN + timedelta(hours=1))
    next_hour = sent(fault_proxy)
    assert next_hour.pop("BatchCreatePartition") == 1
    assert sum(next_hour.values()) <= 3, next_hour
    assert [row["id"] for row in proxied.query()] == [1, 2, 3]


def test_table_without_glue_sends_no_glue_request(proxied: Loader, fault_proxy: FaultProxy) -> None:
    loader = proxied.again(parquet=ParquetSpec())
    loader.log().inspect(loader.attempt("job-1"))
    log = loader.log()
    loader.open(log, "job-1")
    assert log.commit(loader.stage("job-1", {"id": [1]}, COLUMNS, TEN)).catalog_error is None
    assert not sent(fault_proxy)
    assert loader.cataloged() == []


def test_glue_repair_registers_hundreds_of_partitions_after_one_read(
    loader: Loader, proxied: Loader, fault_proxy: FaultProxy
) -> None:
    loader.load("job-1", {"id": [1]}, ID)
    example = loader.stage("job-2", {"id": [2]}, COLUMNS, TEN)
    many = [
        replace(example, partition=f"2027/01/{1 + number // 24:02d}/{number % 24:02d}")
        for number in range(250)
    ]
    proxied.catalog.bring_into_step(many[50:], COLUMNS)
    assert sent(fault_proxy) == {"GetTable": 1, "BatchCreatePartition": 2}
    # The last hundred and fifty are there already.
    proxied.catalog.bring_into_step(many[:100], COLUMNS)
    assert sent(fault_proxy)["BatchCreatePartition"] == 1
    assert len(loader.partitions()) == 251


def test_denied_glue_action_is_named_and_the_data_stays_committed(loader: Loader) -> None:
    database = "arn:aws:glue:us-east-1:123456789012:database/supaflow_shop"
    for action in LOAD_ACTIONS:
        one = loader.again(table=f"without_{action.lower()}")
        allow_glue(loader.lake)
        if action in ("UpdateTable", "GetPartition"):
            one.load("job-0", {"id": [0]}, ID)
        else:
            no_database(loader.lake)
        allow_glue(loader.lake, [a for a in LOAD_ACTIONS if a != action])
        log = one.log()
        one.open(log, "job-1")
        done = log.commit(one.stage("job-1", {"id": [1], "b": [1]}, columns_of(TWO), TEN))
        assert done.outcome == "done"
        assert isinstance(done.catalog_error, AwsError), action
        assert f"`glue:{action}`" in (done.catalog_error.hint or "")
        assert database in (done.catalog_error.hint or "")
        assert done.number not in one.cataloged()
        assert isinstance(one.open(one.log(), "job-2").catalog_error, AwsError)

        allow_glue(loader.lake)
        opened = one.open(one.log(), "job-2")
        assert opened.catalog_error is None
        assert [job.action for job in opened.settled] == ["catalog"]
        assert done.number in one.cataloged()
        assert {"id": 1, "b": 1, "lakeload_partition": "2026/11/21/10"} in one.query()


def columns_of(types: dict[str, str]) -> tuple[Column, ...]:
    """Return columns of these names and types."""
    return tuple(Column(name, kind) for name, kind in types.items())


def no_database(lake: Lake) -> None:
    """Drop the database if it is there."""
    glue = glue_of(lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


@pytest.mark.parametrize(
    ("action", "repeats"),
    [
        (answer(400, "ThrottlingException"), 1),
        (answer(500, "InternalServiceException"), 1),
        (drop_answer, 1),
        (drop_answer, 2),
    ],
    ids=["throttled", "broken", "answer-lost", "answers-lost"],
)
def test_every_glue_operation_is_retried_after_a_fault(
    proxied: Loader, fault_proxy: FaultProxy, action: Any, repeats: int
) -> None:
    record = proxied.stage("job-1", {"id": [1]}, COLUMNS, TEN)
    writes = [name for name in LOAD_ACTIONS if not name.startswith("Get")]
    rules = [
        Rule(operation, action, times=repeats)
        for operation in (LOAD_ACTIONS if repeats == 1 else writes)
    ]
    fault_proxy.rules[:] = rules
    proxied.catalog.bring_into_step([record], COLUMNS)
    proxied.catalog.bring_into_step([record], columns_of(TWO))
    assert all(rule.hits >= repeats for rule in rules), "every operation is disturbed"
    assert proxied.columns() == [("id", "bigint"), ("b", "bigint")]
    assert list(proxied.partitions()) == ["2026/11/21/10"]


def test_unreachable_glue_does_not_fail_the_load(proxied: Loader, fault_proxy: FaultProxy) -> None:
    away = Rule("GetTable", answer(500, "InternalServiceException"))
    fault_proxy.rules.append(away)
    log = proxied.log()
    proxied.open(log, "job-1")
    done = log.commit(proxied.stage("job-1", {"id": [1]}, COLUMNS, TEN))
    assert isinstance(done.catalog_error, AwsError)
    fault_proxy.rules.clear()
    assert proxied.load("job-2", {"id": [2]}, ID).catalog_error is None
    assert proxied.cataloged() == [1, 2]
    assert [row["id"] for row in proxied.query()] == [1, 2]


def test_glue_partitions_that_failed_are_created_by_the_next_load(
    loader: Loader, proxied: Loader, fault_proxy: FaultProxy
) -> None:
    def refuse(code: str) -> Callable[[bytes], bytes]:
        detail = {"ErrorCode": code, "ErrorMessage": "injected"}
        errors = [{"PartitionValues": ["2026/11/21/12"], "ErrorDetail": detail}]
        return lambda body: json.dumps({"Errors": errors}).encode()

    loader.load("job-1", {"id": [1]}, ID)
    records = [
        loader.stage(f"job-{hour}", {"id": [hour]}, COLUMNS, TEN + timedelta(hours=hour))
        for hour in (2, 3)
    ]
    passing = edit_body(refuse("InternalServiceException"))
    fault_proxy.rules.append(Rule("BatchCreatePartition", passing, times=1))
    proxied.catalog.bring_into_step(records, COLUMNS)
    assert sent(fault_proxy)["BatchCreatePartition"] == 2
    assert len(loader.partitions()) == 3
    fault_proxy.rules[:] = [Rule("BatchCreatePartition", edit_body(refuse("InvalidInput")))]
    with pytest.raises(LoadFailed, match=r"orders`: `2026/11/21/12` \(InvalidInput: injected\)"):
        proxied.catalog.bring_into_step(records, COLUMNS)


def test_two_loads_that_add_columns_at_once_both_keep_theirs(
    loader: Loader, proxied: Loader, fault_proxy: FaultProxy
) -> None:
    loader.load("job-0", {"id": [0]}, ID)
    barrier = threading.Barrier(2)

    def meet(_: object) -> None:
        barrier.wait(10)

    # Both have read the same version when the first of them writes.
    fault_proxy.rules.append(Rule("UpdateTable", before(meet), times=2))
    errors: list[object] = []

    def add(column: str) -> None:
        one = proxied.again()
        record = one.stage(f"job-{column}", {"id": [1]}, COLUMNS, TEN)
        try:
            one.catalog.bring_into_step([record], (*COLUMNS, Column(column, "bigint")))
        except AwsError as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(name,)) for name in ("b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert sorted(name for name, _ in loader.columns()) == ["b", "c", "id"]
    assert fault_proxy.count("UpdateTable") == 3


def test_two_first_loads_at_once_make_one_table(
    glue_lake: Lake, proxied: Loader, fault_proxy: FaultProxy
) -> None:
    record = proxied.stage("job-1", {"id": [1]}, COLUMNS, TEN)

    def overtake(_: object) -> None:
        Loader(glue_lake).catalog.bring_into_step([record], COLUMNS)

    fault_proxy.rules.append(Rule("CreateDatabase", before(overtake), times=1))
    later = proxied.stage("job-2", {"id": [2]}, COLUMNS, TEN + timedelta(hours=1))
    proxied.catalog.check(proxied.target, COLUMNS)
    proxied.catalog.bring_into_step([later], (*COLUMNS, Column("b", "bigint")))
    assert [name for name, _ in proxied.columns()] == ["id", "b"]
    assert sorted(proxied.partitions()) == ["2026/11/21/10", "2026/11/21/11"]


def test_late_catalog_sync_of_an_older_job_removes_no_column(loader: Loader) -> None:
    older = loader.stage("job-1", {"id": [1]}, COLUMNS, TEN)
    loader.leave_uncataloged(1, older)
    loader.catalog.bring_into_step(
        [loader.stage("job-2", {"id": [2], "b": [2]}, columns_of(TWO), TEN)], columns_of(TWO)
    )
    version = loader.glue_table()["VersionId"]
    opened = loader.open(loader.log(), "job-3")
    assert [job.action for job in opened.settled] == ["catalog"]
    assert loader.columns() == [("id", "bigint"), ("b", "bigint")]
    assert loader.glue_table()["VersionId"] == version, "nothing to add is no write"


def test_glue_table_dropped_during_a_load_is_recreated(
    loader: Loader, proxied: Loader, fault_proxy: FaultProxy
) -> None:
    loader.load("job-1", {"id": [1]}, ID)

    def drop(_: object) -> None:
        glue_of(loader.lake).delete_table(DatabaseName=SCHEMA, Name="orders")

    fault_proxy.rules.append(Rule("UpdateTable", before(drop), times=1))
    done = proxied.load("job-2", {"id": [2], "b": [2]}, TWO, synced=TEN + timedelta(hours=1))
    assert done.catalog_error is None
    assert [(row["id"], row["b"]) for row in loader.query()] == [(1, None), (2, 2)]
