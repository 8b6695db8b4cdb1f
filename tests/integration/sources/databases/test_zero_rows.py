"""Tables of databases without a row, in every mode, format and setting: at the first load, and once
they are emptied. Nothing fails, and no row is lost or doubled."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakeload_jobs.contract.spec import Deletes, JdbcInput, Mode, RejectLimit, TableSpec
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database

Rows = list[tuple[int, str | None, bool]]
"""Key, value, and whether the row is deleted."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TWO: Rows = [(1, "a", False), (2, "b", False)]
MORE: Rows = [(3, "c", False), (4, "d", False)]
CREATE = "CREATE TABLE orders (id bigint PRIMARY KEY, name text)"
INPUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cursor": {"incremental": True},
    "lookback": {"incremental": True, "lookback": "1"},
    "xmin": {"incremental": True, "by_xmin": True},
}
IN_MAKE_TEST = {
    ("parquet", "APPEND", "cursor", "MARK"),
    ("iceberg", "UPSERT", "xmin", "DELETE"),
}


@dataclass(frozen=True)
class Case:
    """One way to load the table; `deletes` None: deleted rows are not looked for."""

    mode: Mode
    input: str
    deletes: Deletes | None

    def table(self, world: World, database: Database) -> TableSpec:
        """Return the spec of the table."""
        keyed = self.mode == "UPSERT" or self.deletes is not None or self.input == "lookback"
        spec = database.table(
            world,
            mode=self.mode,
            primary_key=("id",) if keyed else (),
            cursor="id" if self.input in ("cursor", "lookback") else None,
            max_deleted=None if self.deletes is None else RejectLimit(percent=100),
            deletes=self.deletes or "MARK",
        )
        assert isinstance(spec.input, JdbcInput)
        return replace(spec, input=replace(spec.input, **INPUTS[self.input]))

    @property
    def emptied(self) -> Rows:
        """What the table keeps of rows that the source no longer has."""
        if self.mode == "OVERWRITE" or (self.mode == "UPSERT" and self.deletes == "DELETE"):
            return []
        if self.deletes is None:
            return TWO
        if self.mode == "APPEND":
            return [*TWO, (1, None, True), (2, None, True)]
        return [(1, "a", True), (2, "b", True)]


def cases() -> Iterator[Any]:
    """Yield every case; `make test` runs few."""
    ways = [("parquet", "APPEND"), *(("iceberg", m) for m in ("APPEND", "OVERWRITE", "UPSERT"))]
    for (world, mode), source in itertools.product(ways, INPUTS):
        incremental = "incremental" in INPUTS[source]
        if mode == "OVERWRITE" and incremental:
            continue
        deletes = {"APPEND": (None, "MARK"), "UPSERT": (None, "MARK", "DELETE")}
        for how in deletes.get(mode, (None,)):
            few = (world, mode, source, how) in IN_MAKE_TEST
            marks = () if few else (pytest.mark.exhaustive,)
            case: Any = Case(mode, source, how)  # type: ignore[arg-type]
            yield pytest.param(world, case, id=f"{world}: {mode}: {source}: {how}", marks=marks)


@pytest.mark.parametrize(("world", "case"), list(cases()), indirect=["world"])
def test_source_without_rows_adds_none_and_takes_none(
    world: World, database: Database, case: Case
) -> None:
    database.run(CREATE)
    table = case.table(world, database)
    incremental = "incremental" in INPUTS[case.input]
    doubles = case.mode == "APPEND" and not incremental
    again = [*case.emptied, *MORE]
    rounds: list[tuple[str, int, Rows]] = [
        ("SELECT", 0, []),
        ("SELECT", 0, []),
        ("INSERT INTO orders VALUES (1, 'a'), (2, 'b')", 2, TWO),
        ("DELETE FROM orders", 0, case.emptied),
        ("SELECT", 0, case.emptied),
        ("INSERT INTO orders VALUES (3, 'c'), (4, 'd')", 2, again),
        ("SELECT", 0 if incremental else 2, [*again, *MORE] if doubles else again),
    ]
    for number, (statement, read, expected) in enumerate(rounds):
        database.run(statement)
        result = load(world, table, synced=BEGIN + timedelta(seconds=number))

        assert result.error is None, (number, result.error)
        gone = 2 if number == 3 and case.deletes else 0
        assert (result.rows, result.deleted) == (read, gone), number
        idle = incremental and statement == "SELECT" and number > 0
        assert (result.status == "NO_OP") == (idle or (number == 3 and is_idle(case))), number
        assert data(world) == sorted(expected, key=str), number
        assert world.left() == []


def is_idle(case: Case) -> bool:
    """Return whether an emptied source is nothing new: with a column as cursor APPEND, and with
    `lookback` each mode, notes that the rows it has seen are gone."""
    seen = case.input == "lookback" or (case.mode == "APPEND" and case.input != "xmin")
    return case.deletes is None and "incremental" in INPUTS[case.input] and not seen


def data(world: World) -> Rows:
    """Return the rows of the lake."""
    found = [(row["id"], row["name"], row["_supa_deleted"]) for row in world.rows()]
    return sorted(found, key=str)
