"""The lake of a schema: what its pipeline loads, and what other readers find."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.glue import GlueCatalog

from tests.faults.databases.history import History
from tests.faults.databases.tables import LOOKBACK_SECONDS, SETTINGS, Format, Table, canonical
from tests.faults.findings import Findings
from tests.servers import mariadb, postgres
from tests.servers.ministack import Lake

Row = tuple[Any, ...]
_LOGINS = {
    "postgres": (postgres.USER, postgres.PASSWORD),
    "mysql": (mariadb.USER, mariadb.PASSWORD),
}
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "amount": pa.decimal128(18, 4),
    "changed": pa.timestamp("us", tz="UTC"),
    "note": pa.string(),
}
"""The columns of the large table."""


@dataclass
class SchemaLake:
    """Where the tables of one history are loaded to."""

    lake: Lake
    folder: Path
    form: Format
    history: History
    cache: Path | None = None
    runs: Path | None = None
    warm_spark: Path | None = None
    seen: dict[str, Counter[Row]] = field(default_factory=dict)
    """The rows that the lake has to hold of each table, with whether they are marked as deleted."""
    before: dict[str, Counter[Row]] = field(default_factory=dict)
    """The rows of each table in the database when it was loaded last."""
    targets: dict[str, str] = field(default_factory=dict)
    """The target of each table, as the newest sync has reported it."""

    def write(self) -> Path:
        """Write the documents and return their folder."""
        self.folder.mkdir(parents=True)
        destination: dict[str, Any] = {}
        if self.form == "iceberg":
            place = self.lake.server.endpoint
            destination = {
                "table_format": "ICEBERG",
                "glue_database_prefix": self._prefix,
                "endpoints": {"s3": place, "sts": place, "glue": place},
            }
        self.lake.write_pipeline(
            self.folder,
            tables=[self._settings(table) for table in self.history.tables],
            source=self._source(),
            destination=destination,
            nested="JSON",
            on_bad_value="NULL",
            concurrency=4,
            spark={"master": "local[2]", "driver_memory": "1g"},
        )
        return self.folder

    def _source(self) -> dict[str, Any]:
        password = self.folder / "password"
        password.write_text(_LOGINS[self.history.server][1], encoding="utf-8")
        return {
            "type": "JDBC",
            "url": self.history.database.url(self.history.name),
            "user": _LOGINS[self.history.server][0],
            "password": {"file": str(password)},
            "max_connections": 8,
        }

    def given(self, table: Table) -> str:
        """Return the table's name as it is written in the pipeline."""
        return ".".join(
            f'"{part.replace(chr(34), chr(34) * 2)}"' for part in (self.history.schema, table.name)
        )

    def _settings(self, table: Table) -> dict[str, Any]:
        settings: dict[str, Any] = {"table": self.given(table)}
        if table.key:
            settings["primary_key"] = list(table.key)
        if table.cursor:
            settings["cursor"] = table.cursor
        settings |= SETTINGS[table.way]
        if "lookback" in settings and table.cursor == "changed":
            settings["lookback"] = f"PT{LOOKBACK_SECONDS}S"
        return settings

    @property
    def _prefix(self) -> str:
        return self.lake.seeded.bucket.replace("-", "_")

    def expect(self) -> None:
        """Note what the lake has to hold after a load, from what the database holds now."""
        for table in self.history.tables:
            if table.large or table.types:
                continue
            now = Counter(canonical_row(table, row) for row in self.history.rows(table))
            seen = self.seen.get(table.name, Counter())
            self.seen[table.name] = _expected(
                table, seen, self.before.get(table.name, Counter()), now
            )
            self.before[table.name] = now

    def compare(self, *, large: bool) -> Findings:
        """Compare every table with what it has to hold, `large`: also the large one."""
        found = Findings()
        for table in self.history.tables:
            if table.types:
                found.problems += self.history.wrong_values(table, self._read(table))
            elif not table.large:
                found.add(self._compare(table))
            elif large:
                found.add(self._compare_large(table))
        return found

    def _compare(self, table: Table) -> Findings:
        expected, own = self.seen[table.name], Counter(self._lake_rows(table))
        lost, doubled = expected - own, own - expected
        problems = [
            f"{table.name} ({table.way}, cursor {table.cursor}): {what} {sum(rows.values())}: "
            f"{next(iter(rows))!r}"[:600]
            for what, rows in (("lost", lost), ("doubled", doubled))
            if rows
        ]
        return Findings(sum(lost.values()), sum(doubled.values()), 0, problems)

    def _lake_rows(self, table: Table) -> Iterator[Row]:
        for one in self._read(table).to_pylist():
            values = [value for name, value in one.items() if not name.startswith("_supa")]
            row = dict(zip(table.columns, values, strict=True))
            if one["_supa_deleted"] and table.way == "append deletes":
                yield (*(canonical(table.columns[name], row[name]) for name in table.key), True)
            else:
                yield (*canonical_row(table, values), *([True] if one["_supa_deleted"] else []))

    def _compare_large(self, table: Table) -> Findings:
        own = self._read(table).select(list(_TYPES)).cast(pa.schema(_TYPES.items())).sort_by("id")
        expected = _large_table(self.history.rows(table)).sort_by("id")
        if own.equals(expected):
            return Findings()
        counts = f"{own.num_rows:,} rows in the lake, {expected.num_rows:,} in the database"
        difference = expected.num_rows - own.num_rows
        return Findings(
            max(0, difference), max(0, -difference), 0, [f"{table.name}: {counts}, or others"]
        )

    def _read(self, table: Table) -> pa.Table:
        target = self.targets[self.given(table)]
        schema, _, name = target.rpartition(".")
        if self.form == "iceberg":
            return self._catalog().load_table((schema, name)).scan().to_arrow()
        keys = [key for key in self.lake.data_keys() if f"/{schema}/{name}/" in key]
        tables = [pq.read_table(io.BytesIO(self.lake.read(key))) for key in keys]
        # A load without rows has no file.
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

    def _catalog(self) -> GlueCatalog:
        place, region = self.lake.server.endpoint, self.lake.seeded.region
        keys = {
            "access-key-id": "test",
            "secret-access-key": "test",
            "region": region,
            "endpoint": place,
        }
        properties: dict[str, Any] = {
            f"{service}.{name}": value for service in ("glue", "s3") for name, value in keys.items()
        }
        return GlueCatalog("lake", **properties)


def canonical_row(table: Table, row: Iterable[Any]) -> Row:
    """Return a row as it is compared."""
    return tuple(
        canonical(kind, value) for kind, value in zip(table.columns.values(), row, strict=True)
    )


def _expected(
    table: Table, seen: Counter[Row], before: Counter[Row], now: Counter[Row]
) -> Counter[Row]:
    """Return what the lake has to hold, given what it held and what the database held and holds."""
    if table.still and table.cursor is None and table.way == "append":
        return seen + now
    places = [list(table.columns).index(name) for name in table.key]

    def key(row: Row) -> Row:
        return tuple(row[place] for place in places)

    gone = {key(row): row for row in before} if places else {}
    for row in now:
        gone.pop(key(row) if places else (), None)
    match table.way:
        case "overwrite" | "upsert deletes" | "append cursor, no key":
            return now
        case "append":
            return seen + now
        case "append cursor" | "append xmin":
            return seen | now
        case "append deletes":
            return (seen | now) + Counter((*one, True) for one in gone)
    current = {key(row) for row in now}
    kept = Counter({row: 1 for row in seen if key(row) not in current and key(row) not in gone})
    ended = Counter((*row, True) if table.way == "upsert marks" else row for row in gone.values())
    return now + kept + ended


def _large_table(rows: Iterator[Row]) -> pa.Table:
    batches, batch = [], []
    for row in rows:
        batch.append(row)
        if len(batch) == 200_000:
            batches.append(_arrow(batch))
            batch = []
    return pa.concat_tables([*batches, _arrow(batch)])


def _arrow(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(_TYPES)
    arrays = [
        pa.array(
            (canonical("instant", value) for value in column) if name == "changed" else column, kind
        )
        for (name, kind), column in zip(_TYPES.items(), columns, strict=True)
    ]
    return pa.table(arrays, names=list(_TYPES))
