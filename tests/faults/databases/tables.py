"""The tables of a generated schema: their columns, keys, and how each is loaded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

Server = Literal["postgres", "mysql"]
Format = Literal["parquet", "iceberg"]
Draw = Callable[[random.Random], Any]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LOOKBACK_SECONDS = 600


@dataclass(frozen=True)
class Kind:
    """One type of column: its names in both databases, and how to draw a value."""

    postgres: str
    mysql: str
    draw: Draw

    def type_of(self, server: Server) -> str:
        """Return the type in this database."""
        return self.postgres if server == "postgres" else self.mysql


def _text(length: int) -> Draw:
    signs = "abc ÄßÖ'\"\\\t\n,;{}NULL日本\U0001f600e\u0301"
    return lambda r: "".join(r.choice(signs) for _ in range(r.randrange(length)))


def _moment(first: datetime, days: int) -> Draw:
    return lambda r: (
        first + timedelta(days=r.randrange(days), microseconds=r.randrange(86400 * 10**6))
    )


KINDS = {
    "int": Kind("int", "int", lambda r: r.randrange(-(2**31), 2**31)),
    "bigint": Kind("bigint", "bigint", lambda r: r.randrange(-(2**63), 2**63)),
    "small": Kind("smallint", "smallint", lambda r: r.randrange(-(2**15), 2**15)),
    "decimal": Kind(
        "numeric(18,4)",
        "decimal(18,4)",
        lambda r: Decimal(r.randrange(-(10**18), 10**18)).scaleb(-4),
    ),
    "text": Kind("text", "text", _text(40)),
    "varchar": Kind("varchar(30)", "varchar(30)", _text(30)),
    "bool": Kind("boolean", "bit(1)", lambda r: r.random() < 0.5),
    "double": Kind("float8", "double", lambda r: r.uniform(-1, 1) * 10.0 ** r.randrange(-300, 300)),
    "date": Kind("date", "date", lambda r: date(1, 1, 1) + timedelta(days=r.randrange(3_652_000))),
    "local": Kind("timestamp", "datetime(6)", _moment(datetime(1000, 1, 1), 3_200_000)),
    "instant": Kind(
        "timestamptz", "timestamp(6) NULL", _moment(datetime(1971, 1, 1, tzinfo=UTC), 20_000)
    ),
    "bytes": Kind("bytea", "varbinary(40)", lambda r: r.randbytes(r.randrange(40))),
    "json": Kind("jsonb", "json", lambda r: json.dumps({"n": r.randrange(99), "t": _text(9)(r)})),
    "uuid": Kind("uuid", "uuid", lambda r: str(UUID(int=r.getrandbits(128), version=4))),
}

WIDE = {"id": "int", **{f"c{n}": ("int", "small")[n % 2] for n in range(899)}}
LARGE = {"id": "bigint", "amount": "decimal", "changed": "instant", "note": "varchar"}

Way = Literal[
    "overwrite", "append", "append cursor", "append cursor, no key", "append deletes",
    "append xmin", "upsert cursor", "upsert deletes", "upsert marks", "upsert xmin",
]  # fmt: skip
"""How a table is loaded, from which follows what the lake has to hold."""

SETTINGS: dict[Way, dict[str, Any]] = {
    "overwrite": {"mode": "OVERWRITE"},
    "append": {},
    "append cursor": {"lookback": LOOKBACK_SECONDS},
    "append cursor, no key": {},
    "append deletes": {"lookback": LOOKBACK_SECONDS, "detect_deletes": True},
    "append xmin": {"cursor": "xmin"},
    "upsert cursor": {"mode": "UPSERT", "lookback": LOOKBACK_SECONDS},
    "upsert deletes": {
        "mode": "UPSERT", "lookback": LOOKBACK_SECONDS, "detect_deletes": True, "deletes": "DELETE",
    },
    "upsert marks": {"mode": "UPSERT", "lookback": LOOKBACK_SECONDS, "detect_deletes": True},
    "upsert xmin": {"mode": "UPSERT", "cursor": "xmin"},
}  # fmt: skip
WAYS: dict[Format, tuple[Way, ...]] = {
    "parquet": (
        "append cursor",
        "append cursor, no key",
        "append deletes",
        "append",
        "append xmin",
    ),
    "iceberg": (
        *("upsert cursor", "append cursor", "upsert deletes", "overwrite", "upsert marks"),
        *("upsert xmin", "append cursor, no key", "append deletes", "append"),
    ),
}
"""Those of ordinary tables; `xmin` is PostgreSQL's."""
WHOLE: dict[Format, Way] = {"parquet": "append", "iceberg": "overwrite"}
"""Those of tables that are read as a whole."""


@dataclass
class Table:
    """A table, or a view of one. `columns` are the kinds by name, in their order."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]
    way: Way
    cursor: str | None = None
    rows: int = 60
    partitioned: str = ""
    """What follows the columns in the statement that makes it."""
    after: tuple[str, ...] = ()
    """Statements that follow, such as those that make partitions."""
    view_of: str = ""
    still: bool = False
    """Whether nothing changes it."""
    large: bool = False
    types: bool = False
    """Whether its columns have the types that are their names (`values`)."""
    ids: list[int] = field(default_factory=list)
    last: list[tuple[Any, ...]] = field(default_factory=list)
    """The newest row of a table without a key."""

    @property
    def changes(self) -> bool:
        """Whether the history writes to it."""
        return not (self.view_of or self.still)


def quoted(server: Server, name: str) -> str:
    """Return a name as it is written in SQL."""
    mark = '"' if server == "postgres" else "`"
    return mark + name.replace(mark, mark * 2) + mark


ODD = (
    "Order Items",
    "select",
    "Größe",
    "a.b",
    "UPPER",
    'quo"te',
    "日本",
    "1st",
    "semi;colon",
    "per%s",
)


SPECIAL = 5
"""Two views, a wide, an empty and a large table."""


def generate(server: Server, form: Format, seed: str, count: int, large: int) -> list[Table]:
    """Return `count` tables of a schema (13 at least); one has `large` rows."""
    r = random.Random(seed)  # noqa: S311
    ways = [way for way in WAYS[form] if server == "postgres" or "xmin" not in way]
    whole = WHOLE[form]
    tables: list[Table] = []
    for number in range(max(6, count - len(_partitions(server)) - SPECIAL)):
        way = ways[number % len(ways)]
        odd = number % 3 == 2 and number // 3 < len(ODD)
        name = ODD[number // 3] if odd else f"t{number}"
        tables.append(_ordinary(r, server, name, way, odd=odd))
    first = tables[0]
    for number, parts in enumerate(_partitions(server)):
        table = _ordinary(r, server, f"parts{number}", ways[number % len(ways)], odd=False)
        table.partitioned, table.after = parts
        if table.key:
            table.key = ("id",)
        tables.append(table)
    tables += [
        Table("view0", dict(first.columns), (), whole, view_of=first.name),
        Table("view1", dict(list(first.columns.items())[:3]), (), whole, view_of=first.name),
        Table("wide", WIDE, ("id",), whole, rows=20, still=True),
        Table("empty", {"id": "int", "text": "text"}, ("id",), whole, rows=0, still=True),
        Table("large", LARGE, ("id",), "append cursor", "changed", rows=large, large=True),
    ]
    return tables


def _ordinary(r: random.Random, server: Server, name: str, way: Way, *, odd: bool) -> Table:
    keyless = "no key" in way or way == "append"
    cursor = (
        None
        if way in ("overwrite", "append") or "xmin" in way
        else r.choice(("changed", "version"))
    )
    columns = {"id": "bigint"}
    composite = not keyless and r.random() < 0.3
    if composite:
        columns["part"] = "varchar"
    columns |= {"changed": "instant", "version": "bigint"}
    kinds = r.sample(sorted(KINDS), r.randrange(3, len(KINDS)))
    for number, kind in enumerate(kinds):
        columns[f"{kind} {number}" if odd else f"{kind}_{number}"] = kind
    key = () if keyless else ("id", "part") if composite else ("id",)
    return Table(name, columns, key, way, cursor, rows=r.randrange(40, 120))


def _partitions(server: Server) -> list[tuple[str, tuple[str, ...]]]:
    if server == "mysql":
        return [("PARTITION BY HASH(id) PARTITIONS 3", ())]
    return [
        (
            "PARTITION BY RANGE (id)",
            (
                "CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO (50)",
                "CREATE TABLE {name}_high PARTITION OF {name} FOR VALUES FROM (50) TO (MAXVALUE)",
            ),
        ),
        (
            "PARTITION BY HASH (id)",
            tuple(
                f"CREATE TABLE {{name}}_{n} PARTITION OF {{name}} FOR VALUES WITH (MODULUS 2, "
                f"REMAINDER {n})"
                for n in range(2)
            ),
        ),
    ]


def canonical(kind: str, value: Any) -> Any:
    """Return a value as it is compared: of the lake, or of the database's driver."""
    if value is None:
        return None
    match kind:
        case "json":
            return json.dumps(
                json.loads(value) if isinstance(value, str) else value, sort_keys=True
            )
        case "bool":
            return value not in (b"\x00", False, 0)
        case "instant":
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
        case "uuid":
            return str(value)
        case "double":
            return repr(value)
        case "bytes":
            return bytes(value)
    return value
