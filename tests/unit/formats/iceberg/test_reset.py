"""Reset of tables in a catalog in memory: what goes from it, and which files go with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakeload.formats.iceberg import reset
from lakeload.formats.iceberg.reset import TableDrop, drop_tables
from lakeload.formats.iceberg.tables import IcebergTables
from lakeload.formats.tables import TableRef
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, IcebergSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.catalogs.table_files import Removal, TableFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.errors import CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import set_properties
from lakeload_jobs.formats.iceberg.rules.facts import CREATED_BY, STATE_PREFIX, PipelineState
from tests.unit.formats.iceberg.commits.own_table import OwnTable
from tests.unit.formats.iceberg.load.own_store import OwnStore

NESSIE = CatalogSpec(type="NESSIE", uri="http://nessie", api="NATIVE")
FILES = TableFiles({"s3://lake/orders/1.parquet": 10}, ("s3://lake/orders/1.json",), ())
ALL = [*FILES.all, "s3://lake/_lakeload/db/orders/ledger/shop/1.json"]
"""Them, and the list of loaded files."""


@dataclass
class Droppable(OwnStore):
    """Drops of the table: their answers are lost once."""

    drops: bool = True
    """Whether they arrive."""
    gone: bool = False
    answers: bool = True

    def load(self, namespace: str, name: str) -> ReadTable | None:  # type: ignore[override]
        """Read the table."""
        return None if self.gone else super().load(namespace, name)

    def drop(self, table: ReadTable) -> None:
        """Drop the table."""
        self.gone = self.drops
        if not self.answers:
            raise CommitUnknown("no answer")


@dataclass
class Reset:
    """A table of pipeline `shop`, and what of its files was removed."""

    store: Droppable
    removed: list[str]
    catalog: CatalogSpec | None = None

    def act(self) -> TableDrop:
        """Take it."""
        iceberg = IcebergSpec() if self.catalog is None else IcebergSpec(catalog=self.catalog)
        destination = DestinationSpec("lake", "eu", table_format="ICEBERG", iceberg=iceberg)
        session = cast("Any", None)
        lake = IcebergTables(self.store, destination, session, "shop", lambda _: None)
        table = TableRef("db.orders", TableLocation("", "db", "orders"))
        (found,) = drop_tables(lake, [table], act=True)
        return found


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reset:
    """The table and its reset."""
    removed: list[str] = []

    def remove_files(_: object, places: list[str]) -> Removal:
        removed.extend(places)
        return Removal(len(places))

    monkeypatch.setattr(reset, "files_for", lambda *_: None)
    monkeypatch.setattr(reset, "LakeFiles", lambda *_: None)
    monkeypatch.setattr(reset, "table_files", lambda *_: FILES)
    monkeypatch.setattr(reset, "remove_files", remove_files)
    listed = SimpleNamespace(list=lambda folder: [SimpleNamespace(key=f"{folder}1.json")])
    monkeypatch.setattr(reset, "Objects", lambda *_: listed)
    store = Droppable(OwnTable.new(tmp_path), whole=True)
    state = PipelineState("orders", "monday", 1, "f00", {}, ledger="1.json").to_property()
    store.change([set_properties({CREATED_BY: "shop", f"{STATE_PREFIX}shop": state})])
    return Reset(store, removed)


def test_reset_drops_the_table_and_removes_its_files(one: Reset) -> None:
    found = one.act()
    assert (found.error, found.dropped, one.store.gone) == (None, True, True)
    assert one.removed == ALL


@pytest.mark.parametrize(
    ("properties", "catalog", "why"),
    [
        ({"gc.enabled": "false"}, None, "its files belong to other tables as well"),
        ({}, NESSIE, "nessie-gc"),
        ({"gc.enabled": "true"}, NESSIE, None),
    ],
)
def test_reset_leaves_files_that_others_may_have(
    one: Reset, properties: dict[str, str], catalog: CatalogSpec | None, why: str | None
) -> None:
    one.store.change([set_properties(properties)])
    one.catalog = catalog
    found = one.act()
    assert (found.error, found.dropped, one.store.gone) == (None, True, True)
    assert one.removed == (ALL if why is None else [])
    (shown,) = reset.report([found], done=True).tables
    assert shown.document["plan"]["files_stay"] == found.stay
    assert any(
        f"no file of the table is removed: {found.stay}" in line for line in shown.lines
    ) == (why is not None)
    assert why is None or why in (found.stay or "")


@pytest.mark.parametrize("arrives", [True, False])
def test_drop_without_an_answer_is_looked_for(one: Reset, arrives: bool) -> None:
    one.store.answers, one.store.drops = False, arrives
    found = one.act()
    assert (found.error is None, found.dropped) == (arrives, arrives)
    assert bool(one.removed) == arrives
