"""The loads of a whole table that the Iceberg benchmark compares, and their bars."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """One comparison of lakeload with `df.writeTo(t)`. `what` names it in results and tables.

    `cpu_bar` and `wall_bar` are lakeload's median over Spark's; None: it has only to finish.
    `partition` is a transform in SQL. `heap` is the driver's memory, '' that of the command line;
    `peer`: Spark takes part; `archive`: lakeload takes part with an AppCDS archive, too. `flat`: a
    load that takes about as much memory.
    """

    what: str
    title: str
    cpu_bar: float | None
    wall_bar: float | None = None
    codec: str = "zstd"
    mode: str = "APPEND"
    partition: str = ""
    heap: str = ""
    peer: bool = True
    archive: bool = False
    flat: str = ""

    @property
    def base(self) -> str:
        """The load whose tables this one replaces the rows of; '' where it makes its own."""
        return "append" if self.mode == "OVERWRITE" else ""

    def table(self, name: str, number: int) -> str:
        """Return the name of a contestant's table in a round."""
        return f"{self.base or self.what}_{name.replace('-', '_')}_{number}"


LOADS = (
    Load("append", "Append of {rows} rows to a new table, zstd", 0.70, 1.0, archive=True),
    Load(
        *("overwrite", "Overwrite of a table by {rows} rows, zstd", 0.70, 1.0),
        mode="OVERWRITE",
        archive=True,
    ),
    Load(
        *("gzip", "Append of {rows} rows to a new table, gzip", 0.52, 1.0),
        codec="gzip",
        archive=True,
    ),
    Load(
        *("buckets", "Append of {rows} rows to 500 buckets of a new table, heap 6g", 0.70),
        partition="bucket(500, order_id)",
        heap="6g",
    ),
    Load(
        *("days", "Append of {rows} rows to a new table, a partition for each day, heap 2g", None),
        partition="day(created_at)",
        heap="2g",
        peer=False,
    ),
    Load(
        *("few", "Append of {rows} rows to 50 buckets of a new table, heap 2g", None),
        partition="bucket(50, order_id)",
        heap="2g",
        peer=False,
    ),
    Load(
        *("many", "Append of {rows} rows to 5,000 buckets of a new table, heap 2g", None),
        partition="bucket(5000, order_id)",
        heap="2g",
        peer=False,
        flat="few",
    ),
)
