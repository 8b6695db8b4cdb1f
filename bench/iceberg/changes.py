"""The changes of each round: updates all over the table, and new rows behind its last key."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.data import KEY
from bench.iceberg.setting import Setting

SPREAD = 16
"""Every so manieth key is updated by one round, another one by each."""


def note(number: int) -> str:
    """What a round writes into `note`, so that its rows can be counted."""
    return f"round {number}"


def write_changes(setting: Setting, number: int) -> None:
    """Every 16th row with another note, and new rows behind the last key."""
    tables = [pq.read_table(file) for file in setting.data.files("parquet")]
    rows = pa.concat_tables(tables)
    keys = rows.column(KEY)
    remainder = pc.subtract(keys, pc.multiply(pc.divide(keys, SPREAD), SPREAD))
    found = rows.filter(pc.equal(remainder, pa.scalar(number, pa.int64()))).slice(
        0, setting.updated
    )
    added = rows.slice(0, setting.inserted)
    first = setting.data.rows + number * added.num_rows + 1
    added = added.set_column(0, KEY, pa.array(range(first, first + added.num_rows), pa.int64()))
    changed = pa.concat_tables([found, added])
    place = changed.schema.get_field_index("note")
    notes = pa.array([note(number)] * changed.num_rows)
    folder = setting.changed(number)
    folder.mkdir(parents=True)
    pq.write_table(changed.set_column(place, "note", notes), folder / "changes.parquet")
