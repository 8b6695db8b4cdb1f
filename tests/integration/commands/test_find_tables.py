"""Tables are found by their logs, at a cost that does not grow with their commits."""

from __future__ import annotations

from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.commit_log import find_tables
from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.conftest import Command
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake

PREFIX = "data-lake/test"


def begin_log(objects: Objects, schema: str, table: str, prefix: str = PREFIX) -> TableLocation:
    location = TableLocation(prefix, schema, table)
    objects.put(location.record_key(1), b"{}")
    return location


def test_every_log_is_a_table_and_nothing_else_is(objects: Objects, lake: Lake) -> None:
    expected = [
        begin_log(objects, "", "alone"),
        begin_log(objects, "a", "log"),
        begin_log(objects, "a", "orders"),
        begin_log(objects, "probe", "orders"),
    ]
    both = begin_log(objects, "", "a")
    objects.put(f"{PREFIX}/_lakeload/probe/1234", b"")
    objects.put(f"{PREFIX}/_lakeload/pipeline-sources/shop/0123.json", b"{}")
    objects.put(f"{PREFIX}/_lakeload/empty/orders/log/checkpoint.json", b"{}")
    assert find_tables(objects, PREFIX) == (both, *expected)


def test_a_prefix_without_logs_has_no_tables(objects: Objects) -> None:
    assert find_tables(objects, PREFIX) == ()


def test_the_number_of_commits_changes_nothing_about_the_requests(
    proxied: Objects, fault_proxy: FaultProxy
) -> None:
    location = begin_log(proxied, "shop", "orders")
    for number in range(2, 30):
        proxied.put(location.record_key(number), b"{}")
    before = len(fault_proxy.requests)
    find_tables(proxied, PREFIX)
    assert len(fault_proxy.requests) - before <= 3


def test_glob_without_a_matching_log_lists_the_tables(command: Command, objects: Objects) -> None:
    nothing = command("recover", "destination.yml", "--table", "shop.*")
    assert nothing.code == 2
    assert "no table has been loaded there yet" in nothing.err
    begin_log(objects, "shop", "orders")
    typo = command("recover", "destination.yml", "--table", "shop.order")
    assert typo.code == 2
    assert "did you mean `shop.orders`?" in typo.err
