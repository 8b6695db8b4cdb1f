"""The MERGE of an UPSERT, run by another engine: which row of a key a table has afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from lakeload_jobs.formats.iceberg.load.merge import Merge, merge_sql

if TYPE_CHECKING:
    from lakeload_jobs.contract.spec import Deletes

Cell = int | str | bool | None
Row = tuple[Cell, ...]

COLUMNS = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("version", T.LongType()),
        T.StructField("name", T.StringType()),
        T.StructField("_supa_deleted", T.BooleanType()),
        T.StructField("_supa_job_id", T.StringType()),
    ]
)
HELPER = "__lakeload_deleted"
VERSIONS = st.none() | st.integers(0, 2)
NAMES = st.none() | st.sampled_from("ab")


def keyed(job: str) -> st.SearchStrategy[list[Row]]:
    """Rows of different keys, as one job has loaded them."""
    row = st.tuples(st.integers(0, 3), VERSIONS, NAMES, st.booleans(), st.just(job))
    return st.lists(row, max_size=4, unique_by=lambda row: row[0])


def merged(table: list[Row], source: list[Row], cursor: str | None, deletes: Deletes) -> list[Row]:
    """Return what DuckDB makes of the statement."""
    merge = Merge("t", "s", COLUMNS, ("id",), cursor, deletes, {})
    statement = merge_sql(merge, [*COLUMNS.names, HELPER])
    # `t.x = …` names a column of the target, which DuckDB takes without the table.
    head, update, tail = statement.partition("UPDATE SET ")
    assignments, newline, tail = tail.partition("\n")
    assignments = ", ".join(part.removeprefix("t.") for part in assignments.split(", "))
    statement = head + update + assignments + newline + tail
    statement = statement.replace("`", '"').replace("<=>", "IS NOT DISTINCT FROM")
    kinds = "id BIGINT, version BIGINT, name TEXT, _supa_deleted BOOLEAN, _supa_job_id TEXT"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({kinds})")
        connection.execute(f'CREATE TABLE s ({kinds}, "{HELPER}" BOOLEAN)')
        if table:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", table)
        if source:
            connection.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?)", deleting(source))
        connection.execute(statement)
        return connection.execute("FROM t ORDER BY id").fetchall()


def deleting(source: list[Row]) -> list[Row]:
    """Rows of the source say themselves whether they are deleted."""
    return [(*row, row[3]) for row in source]


@given(keyed("old"), keyed("new"), st.sampled_from(["version", None]), st.booleans())
def test_the_newer_row_of_a_key_is_in_the_table_and_equal_rows_stay(
    table: list[Row],
    source: list[Row],
    cursor: str | None,
    removes: bool,
) -> None:
    expected: dict[Cell, Row] = {row[0]: row for row in table}
    for row in source:
        before = expected.get(row[0])
        late = before is not None and cursor is not None and _age(row) < _age(before)
        if late or (before is not None and before[:4] == row[:4] and not (removes and row[3])):
            continue
        if removes and row[3]:
            expected.pop(row[0], None)
        else:
            expected[row[0]] = row
    deletes: Deletes = "DELETE" if removes else "MARK"
    found = merged(table, source, cursor, deletes)
    assert found == sorted(expected.values(), key=lambda row: str(row[0]))


def test_a_late_row_leaves_the_table_as_it_is() -> None:
    there: list[Row] = [(1, 9, "new", False, "j1"), (2, 9, "new", False, "j1")]
    late: list[Row] = [(1, 1, "old", False, "j2"), (2, None, "old", True, "j2")]
    assert merged(there, late, "version", "MARK") == there
    assert merged(there, late, "version", "DELETE") == there


def _age(row: Row) -> int:
    return -1 if not isinstance(row[1], int) else row[1]
