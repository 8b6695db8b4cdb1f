"""Lists of loaded files: none but those of the pipeline and its table are read."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.file_ledger import Ledger, LedgerEntry, ledger_key
from lakeload_jobs.formats.iceberg.rules.facts import PipelineState
from lakeload_jobs.storage.objects import Objects

ORDERS = TableLocation("lake", "web", "orders")
KEY = ledger_key(ORDERS, "shop", "a")


class Bucket:
    """Holds entries, and which were read."""

    def __init__(self, entries: dict[str, LedgerEntry]) -> None:
        self._entries = entries
        self.read: list[str] = []

    def get(self, key: str) -> bytes | None:
        self.read.append(key)
        entry = self._entries.get(key)
        return None if entry is None else json.dumps(to_json(entry)).encode()

    def url(self, key: str) -> str:
        return f"s3://lake/{key}"


def entry(number: int = 1, previous: str | None = None, pipeline: str = "shop") -> LedgerEntry:
    return LedgerEntry(number, previous, pipeline, "orders", "monday", (number,))


def ledger(entries: dict[str, LedgerEntry], location: TableLocation = ORDERS) -> Ledger:
    return Ledger(cast(Objects, Bucket(entries)), location, "shop")


@pytest.mark.parametrize(
    "key",
    [
        "lake/secrets.json",
        ledger_key(TableLocation("lake", "web", "customers"), "shop", "a"),
        ledger_key(ORDERS, "another", "a"),
        "lake/x_lakeload/web/orders/ledger/shop/a.json",
        KEY.replace("/a.json", "/deeper/a.json"),
    ],
)
def test_keys_of_other_tables_and_objects_are_not_read(key: str) -> None:
    named = ledger({key: entry(), KEY: entry(2, key)})

    for newest in (key, KEY):
        with pytest.raises(LoadFailed, match="is not one of the table `lake/web/orders/`") as error:
            named.evidence(newest, 1)
        assert key in error.value.message
    assert key not in cast(Bucket, named.objects).read


def test_lists_stay_where_they_are_when_the_destination_gets_another_prefix() -> None:
    moved = ledger({KEY: entry()}, TableLocation("other/place", "web", "orders"))

    assert moved.next_number(KEY) == 2


def test_a_list_of_another_pipeline_is_damage() -> None:
    with pytest.raises(LoadFailed, match="it is one of the pipeline `another`"):
        ledger({KEY: entry(pipeline="another")}).next_number(KEY)


def test_lists_that_follow_each_other_in_a_circle_are_damage() -> None:
    for known in (False, True):
        circle = ledger({KEY: entry(7, KEY)})
        assert not known or circle.next_number(KEY) == 8
        with pytest.raises(LoadFailed, match="it has the number 7, and comes before 7"):
            circle.evidence(KEY, 1)


def test_list_that_a_load_goes_on_from_is_read_once() -> None:
    before = KEY.replace("/a.json", "/before.json")
    read = ledger({KEY: entry(2, before), before: entry()})

    assert read.next_number(KEY) == read.next_number(KEY) == 3
    assert [one.inputs for one in read.evidence(KEY, 1)] == [(1,), (2,)]
    assert cast(Bucket, read.objects).read == [KEY, before]


@pytest.mark.parametrize("value", [5, ["a"], {"key": "a"}])
def test_a_state_whose_list_is_no_key_is_damage(value: Any) -> None:
    state = PipelineState("orders", "monday", 1, "f", {}, ledger=value)

    with pytest.raises(LoadFailed, match=r"`lakeload\.state\.shop` holds"):
        PipelineState.from_property(state.to_property(), "lakeload.state.shop")
