"""Seeded benchmark data: tables of six shapes as CSV and as snappy Parquet, cached between runs.

The folder is `LAKELOAD_BENCH_DIR`, else the platform's cache folder. Each data set is made once,
in several files so that two cores have work, and keeps a manifest with the digest of every column.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow.parquet import ParquetWriter

from bench.digest import Column, ColumnDigest

VERSION = 1
SEED = 7
ROWS_PER_FILE = 750_000
ROWS_PER_BATCH = 250_000
KEY = "order_id"

COUNTRIES = [
    *("DE", "US", "FR", "GB", "IN", "BR", "JP", "CN", "ES", "IT", "PL", "NL", "SE", "NO", "DK"),
    *("FI", "PT", "GR", "TR", "MX", "AR", "CL", "CO", "PE", "ZA", "NG", "KE", "EG", "AU", "NZ"),
]
STATUSES = ["new", "paid", "packed", "shipped", "delivered", "returned", "cancelled"]
WORDS = [
    *("please", "deliver", "after", "before", "noon", "gift", "fragile", "door", "bell", "left"),
    *("neighbour", "garage", "crème brûlée", "Straße", "東京", "🎁", 'size "M"', "red, blue"),
    *("urgent", "invoice", "refund", "second", "floor", "call", "first", "no", "signature", "wrap"),
    *("blue", "green", "large", "small", "spare", "part", "order", "again", "thanks", "box"),
]

_ORDERS: dict[str, pa.DataType] = {
    KEY: pa.int64(),
    "customer_id": pa.int64(),
    "reference": pa.string(),
    "status": pa.string(),
    "country": pa.string(),
    "quantity": pa.int32(),
    "amount": pa.decimal128(12, 2),
    "weight": pa.float64(),
    "order_date": pa.date32(),
    "created_at": pa.timestamp("us", tz="UTC"),
    "delivered_at": pa.timestamp("us"),
    "paid": pa.bool_(),
    "note": pa.string(),
}
_SPARK_TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.string(): "string",
    pa.decimal128(12, 2): "decimal(12,2)",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.bool_(): "boolean",
}


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {_spark_type(field.type)}' for field in kind)}>"
    if isinstance(kind, pa.ListType):
        return f"array<{_spark_type(kind.value_type)}>"
    return _SPARK_TYPES[kind]


@dataclass(frozen=True)
class Shape:
    """The columns of a generated table and how a batch of them is made from its first row."""

    name: str
    schema: pa.Schema
    batch: Callable[[int, int], pa.RecordBatch]
    forms: tuple[str, ...] = ("csv", "parquet")
    """Input forms that can hold it."""

    @property
    def spark_types(self) -> dict[str, str]:
        """The same columns as Spark SQL types, in the same order."""
        return {field.name: _spark_type(field.type) for field in self.schema}


@dataclass(frozen=True)
class DataSet:
    """One generated table: its folder, and what an exact copy of it must contain."""

    shape: Shape
    folder: Path
    rows: int
    digests: dict[str, str]
    csv_bytes: int
    parquet_bytes: int

    def files(self, form: str) -> list[Path]:
        """The input files of one form, `csv` or `parquet`, in order."""
        return sorted((self.folder / form).iterdir())

    def size(self, form: str) -> int:
        """Bytes of all input files of one form."""
        return self.csv_bytes if form == "csv" else self.parquet_bytes


def bench_dir() -> Path:
    """Where data and scratch files of the benchmarks live."""
    given = os.environ.get("LAKELOAD_BENCH_DIR")
    return Path(given) if given else platformdirs.user_cache_path("lakeload") / "bench"


def data_set(rows: int, shape: str = "orders") -> DataSet:
    """Return the data set of `rows` rows, generating it when the cache does not hold it."""
    folder = bench_dir() / f"{shape}-v{VERSION}-seed{SEED}-{rows}"
    manifest = folder / "manifest.json"
    if not manifest.exists():
        _generate(SHAPES[shape], folder, rows)
    facts = json.loads(manifest.read_text())
    return DataSet(SHAPES[shape], folder, **facts)


def _generate(shape: Shape, folder: Path, rows: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for form in shape.forms:
        (folder / form).mkdir(parents=True)
    files = max(4, -(-rows // ROWS_PER_FILE))
    digests = {name: ColumnDigest() for name in shape.schema.names}
    bounds = [rows * number // files for number in range(files + 1)]
    for number in range(files):
        name = f"{shape.name}-{number:04d}"
        with contextlib.ExitStack() as opened:
            writers = [
                _writer(form, folder / form / f"{name}.{form}", shape) for form in shape.forms
            ]
            for writer in writers:
                opened.enter_context(writer)
            for batch in _batches(shape, bounds[number], bounds[number + 1]):
                for writer in writers:
                    writer.write_batch(batch)
                for column, digest in digests.items():
                    digest.update(batch.column(column))
    sizes = {
        f"{form}_bytes": sum(path.stat().st_size for path in (folder / form).glob("*"))
        for form in ("csv", "parquet")
    }
    found = {column: digest.hexdigest() for column, digest in digests.items()}
    # Written last: a generation that was cut short is begun again.
    manifest = {"rows": rows, "digests": found, **sizes}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))


def _writer(form: str, path: Path, shape: Shape) -> pyarrow.csv.CSVWriter | ParquetWriter:
    if form == "csv":
        return pyarrow.csv.CSVWriter(path, shape.schema)
    return ParquetWriter(path, shape.schema, compression="snappy")


def _batches(shape: Shape, first: int, last: int) -> Iterator[pa.RecordBatch]:
    # Wide batches are shorter, so that they need as much memory.
    size = ROWS_PER_BATCH * 13 // max(13, len(shape.schema))
    for start in range(first, last, size):
        yield shape.batch(start, min(size, last - start))


class _Dice:
    """Seeded columns of one batch: the same start gives the same values on every machine."""

    def __init__(self, start: int, rows: int) -> None:
        self.start, self.rows = start, rows

    def _seed(self, column: str) -> int:
        text = f"{VERSION}/{SEED}/{self.start}/{column}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")

    def uniform(self, column: str) -> Column:
        """Doubles in [0, 1)."""
        return pc.random(self.rows, initializer=self._seed(column))

    def below(self, column: str, limit: float) -> Column:
        """Integers in [0, limit) as int64."""
        return pc.floor(pc.multiply(self.uniform(column), limit)).cast(pa.int64())

    def hexadecimal(self, column: str, digits: int) -> Column:
        """Strings of random hexadecimal digits, all different for all practical purposes."""
        text = random.Random(self._seed(column)).randbytes(self.rows * digits // 2).hex()  # noqa: S311
        offsets = pa.array(range(0, self.rows * digits + 1, digits), pa.int32())
        buffers = [None, offsets.buffers()[1], pa.py_buffer(text.encode())]
        return pa.Array.from_buffers(pa.string(), self.rows, buffers)

    def choice(self, column: str, values: list[str], *, skew: bool = False) -> Column:
        """One of `values` per row; with `skew` the first ones are more frequent."""
        dice = self.uniform(column)
        dice = pc.multiply(dice, dice) if skew else dice
        places = pc.floor(pc.multiply(dice, pa.scalar(float(len(values))))).cast(pa.int32())
        return pa.array(values).take(places)

    def cents(self, column: str, limit: int) -> Column:
        """Decimals of two places in [0, limit / 100)."""
        whole = self.below(column, limit).cast(pa.int32()).cast(pa.decimal128(12, 0))
        # The same integers, read as hundredths.
        return pa.Array.from_buffers(pa.decimal128(12, 2), self.rows, [None, whole.buffers()[1]])

    def holes(self, column: str, values: Column, share: float) -> Column:
        """`values` with that share of nulls."""
        missing = pc.less(self.uniform(f"{column}/null"), pa.scalar(share))
        return pc.if_else(missing, pa.scalar(None, values.type), values)


def _keys(start: int, rows: int) -> Column:
    return pa.array(range(start + 1, start + rows + 1), pa.int64())


def _orders(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)
    keys = _keys(start, rows)
    # One order about every eight seconds from 2024-01-01 on, with a jitter of an hour.
    seconds = pc.add(pc.multiply(keys, 8), dice.below("jitter", 3600))
    micros = pc.add(
        pc.multiply(pc.add(seconds, 1_704_067_200), 1_000_000), dice.below("micros", 1e6)
    )
    delivered = pc.add(micros, dice.below("days", 864_000_000_000))
    words: list[Column] = [dice.choice(f"note{number}", WORDS, skew=True) for number in range(5)]
    columns = [
        keys,
        dice.below("customer_id", 300_000),
        dice.hexadecimal("reference", 20),
        dice.choice("status", STATUSES, skew=True),
        dice.choice("country", COUNTRIES, skew=True),
        pc.add(dice.below("quantity", 12), 1).cast(pa.int32()),
        dice.cents("amount", 2_000_000),
        dice.holes("weight", pc.round(pc.multiply(dice.uniform("weight"), 50.0), 3), 0.05),
        micros.cast(pa.timestamp("us")).cast(pa.date32(), safe=False),
        micros.cast(pa.timestamp("us", tz="UTC")),
        dice.holes("delivered_at", delivered.cast(pa.timestamp("us")), 0.2),
        dice.holes("paid", pc.less(dice.uniform("paid"), pa.scalar(0.7)), 0.02),
        dice.holes("note", pc.binary_join_element_wise(*words, pa.scalar(" ")), 0.3),
    ]
    return pa.record_batch(columns, schema=pa.schema(_ORDERS))


_TEXT: dict[str, pa.DataType] = {KEY: pa.int64(), "title": pa.string(), "body": pa.string()}


def _text(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)
    words: list[Column] = [dice.choice(f"word{number}", WORDS) for number in range(120)]
    title = pc.binary_join_element_wise(*words[:6], pa.scalar(" "))
    body = pc.binary_join_element_wise(dice.hexadecimal("mark", 16), *words, pa.scalar(" "))
    return pa.record_batch([_keys(start, rows), title, body], schema=pa.schema(_TEXT))


_WIDE: dict[str, pa.DataType] = {
    KEY: pa.int64(),
    **{f"i{number}": pa.int64() for number in range(100)},
    **{f"s{number}": pa.int32() for number in range(100)},
}


def _wide(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)
    columns = [
        dice.below(name, 10.0 ** (3 + number % 12)) if kind == pa.int64()
        else dice.below(name, 10.0 ** (1 + number % 8)).cast(pa.int32())
        for number, (name, kind) in enumerate(_WIDE.items())
        if name != KEY
    ]  # fmt: skip
    return pa.record_batch([_keys(start, rows), *columns], schema=pa.schema(_WIDE))


_FEW: dict[str, pa.DataType] = {
    KEY: pa.int64(),
    **{f"word{number}": pa.string() for number in range(12)},
    **{f"price{number}": pa.decimal128(12, 2) for number in range(12)},
}


def _few(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)
    columns = [
        dice.choice(name, COUNTRIES, skew=True) if kind == pa.string() else dice.cents(name, 500)
        for name, kind in _FEW.items()
        if name != KEY
    ]
    return pa.record_batch([_keys(start, rows), *columns], schema=pa.schema(_FEW))


_ITEM: dict[str, pa.DataType] = {
    "sku": pa.string(),
    "quantity": pa.int32(),
    "price": pa.decimal128(12, 2),
}
_ADDRESS: dict[str, pa.DataType] = {
    "city": pa.string(),
    "postcode": pa.string(),
    "since": pa.date32(),
}
_NESTED: dict[str, pa.DataType] = {
    KEY: pa.int64(),
    "address": pa.struct(list(_ADDRESS.items())),
    "tags": pa.list_(pa.string()),
    "items": pa.list_(pa.struct(list(_ITEM.items()))),
    "total": pa.decimal128(12, 2),
}


def _nested(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)
    counts = pc.add(dice.below("items", 5), 1).cast(pa.int32())
    offsets = pa.concat_arrays(
        [pa.array([0], pa.int32()), pc.cumulative_sum(counts).cast(pa.int32())]
    )
    flat = _Dice(start, offsets[-1].as_py())
    items = pa.StructArray.from_arrays(
        [
            flat.hexadecimal("sku", 8),
            pc.add(flat.below("item_quantity", 9), 1).cast(pa.int32()),
            flat.cents("item_price", 90_000),
        ],
        fields=[pa.field(name, kind) for name, kind in _ITEM.items()],
    )
    days = pc.add(dice.below("since", 9_000), 10_000).cast(pa.int32())
    address = pa.StructArray.from_arrays(
        [dice.choice("city", WORDS), dice.hexadecimal("postcode", 6), days.cast(pa.date32())],
        fields=[pa.field(name, kind) for name, kind in _ADDRESS.items()],
        mask=pc.less(dice.uniform("address/null"), pa.scalar(0.1)),
    )
    columns = [
        _keys(start, rows),
        address,
        pa.ListArray.from_arrays(
            pa.array(range(0, 2 * rows + 1, 2), pa.int32()),
            _Dice(start, 2 * rows).choice("tags", STATUSES),
        ),
        pa.ListArray.from_arrays(offsets, items),
        dice.holes("total", dice.cents("total", 2_000_000), 0.05),
    ]
    return pa.record_batch(columns, schema=pa.schema(_NESTED))


_MANY: dict[str, pa.DataType] = {
    KEY: pa.int64(),
    **{f"text{number}": pa.string() for number in range(300)},
    **{f"number{number}": pa.float64() for number in range(300)},
    **{f"day{number}": pa.date32() for number in range(299)},
}


def _many(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)

    def values(name: str, kind: pa.DataType) -> Column:
        if kind == pa.string():
            return dice.choice(name, WORDS, skew=True)
        if kind == pa.float64():
            return pc.round(pc.multiply(dice.uniform(name), 1000.0), 2)
        return dice.below(name, 20_000).cast(pa.int32()).cast(pa.date32())

    columns = [
        dice.holes(name, values(name, kind), 0.3) for name, kind in _MANY.items() if name != KEY
    ]
    return pa.record_batch([_keys(start, rows), *columns], schema=pa.schema(_MANY))


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("orders", pa.schema(_ORDERS), _orders),
        Shape("text", pa.schema(_TEXT), _text),
        Shape("wide", pa.schema(_WIDE), _wide),
        Shape("few", pa.schema(_FEW), _few),
        Shape("nested", pa.schema(_NESTED), _nested, forms=("parquet",)),
        Shape("many", pa.schema(_MANY), _many),
    )
}
"""Mixed columns; long text; 200 integers; few distinct values and decimals; structs and lists; 900
columns, a third of their values null."""
SPARK_TYPES = SHAPES["orders"].spark_types
