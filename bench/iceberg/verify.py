"""What is in the tables, counted with pyiceberg: all rows, those of each round, doubled keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from bench.data import KEY
from bench.iceberg.changes import note
from bench.iceberg.setting import BenchFailed, Setting

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


@dataclass(frozen=True)
class Counts:
    """Rows of a table; `rounds` are the rows that each round wrote."""

    rows: int
    keys: int
    rounds: dict[int, int]

    def fault(self, setting: Setting, finished: Sequence[int], partly: Sequence[int] = ()) -> str:
        """What is wrong after these rounds; empty when nothing is.

        A round that was stopped may have written a part of its changes, never a row twice.
        """
        for number in finished:
            if (found := self.rounds.get(number, 0)) != setting.changes:
                return f"{found:,} of {setting.changes:,} rows of round {number}"
        if self.keys != self.rows:
            return f"{self.rows - self.keys:,} doubled keys"
        least = setting.data.rows + len(finished) * setting.inserted
        if not least <= self.rows <= least + len(partly) * setting.inserted:
            return f"{self.rows:,} rows"
        return ""


def glue(setting: Setting) -> Catalog:
    """The Glue catalog of the emulator, as its administrator."""
    from pyiceberg.catalog import load_catalog

    lake = setting.lake
    properties = {
        "type": "glue",
        "glue.endpoint": lake.endpoint,
        "s3.endpoint": lake.endpoint,
        "client.region": lake.seeded.region,
        "client.access-key-id": "test",
        "client.secret-access-key": "test",
    }
    return load_catalog("lake", **properties)


def count(catalog: Catalog, table: str, rounds: int) -> Counts:
    """Count a table's rows, keys, and rows of the rounds `0` to `rounds - 1`."""
    rows = catalog.load_table(table).scan(selected_fields=(KEY, "note")).to_arrow()
    notes = rows.group_by("note").aggregate([("note", "count")])
    found: dict[str | None, int] = {
        one["note"]: one["note_count"] for one in notes.to_pylist() if one is not None
    }
    return Counts(
        rows.num_rows,
        pc.count_distinct(rows.column(KEY)).as_py(),
        {number: found.get(note(number), 0) for number in range(rounds)},
    )


def check(catalog: Catalog, setting: Setting, table: str, finished: Sequence[int]) -> None:
    """Raise `BenchFailed` unless the table holds the data set and these rounds, nothing else."""
    fault = count(catalog, table, max(finished, default=-1) + 1).fault(setting, finished)
    if fault:
        raise BenchFailed(f"`{table}` holds {fault}")
