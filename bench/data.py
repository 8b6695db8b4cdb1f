"""Seeded benchmark data: 13 mixed columns as CSV and as snappy Parquet, cached between runs.

The folder is `LAKELOAD_BENCH_DIR`, else the platform's cache folder. Each data set is made once,
in several files so that two cores have work, and keeps a manifest with the digest of every column.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

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

_TYPES: dict[str, pa.DataType] = {
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
SCHEMA = pa.schema(_TYPES)
# The same columns as Spark SQL types, in the same order.
SPARK_TYPES = {
    KEY: "bigint",
    "customer_id": "bigint",
    "reference": "string",
    "status": "string",
    "country": "string",
    "quantity": "int",
    "amount": "decimal(12,2)",
    "weight": "double",
    "order_date": "date",
    "created_at": "timestamp",
    "delivered_at": "timestamp_ntz",
    "paid": "boolean",
    "note": "string",
}


@dataclass(frozen=True)
class DataSet:
    """One generated table: its folder, and what an exact copy of it must contain."""

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


def data_set(rows: int) -> DataSet:
    """Return the data set of `rows` rows, generating it when the cache does not hold it."""
    folder = bench_dir() / f"orders-v{VERSION}-seed{SEED}-{rows}"
    manifest = folder / "manifest.json"
    if not manifest.exists():
        _generate(folder, rows)
    facts = json.loads(manifest.read_text())
    return DataSet(folder, **facts)


def _generate(folder: Path, rows: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for form in ("csv", "parquet"):
        (folder / form).mkdir(parents=True)
    files = max(4, -(-rows // ROWS_PER_FILE))
    digests = {name: ColumnDigest() for name in SCHEMA.names}
    bounds = [rows * number // files for number in range(files + 1)]
    for number in range(files):
        name = f"orders-{number:04d}"
        with (
            pyarrow.csv.CSVWriter(folder / "csv" / f"{name}.csv", SCHEMA) as csv,
            pyarrow.parquet.ParquetWriter(
                folder / "parquet" / f"{name}.parquet", SCHEMA, compression="snappy"
            ) as parquet,
        ):
            for batch in _batches(bounds[number], bounds[number + 1]):
                csv.write_batch(batch)
                parquet.write_batch(batch)
                for column, digest in digests.items():
                    digest.update(batch.column(column))
    sizes = {
        form: sum(path.stat().st_size for path in (folder / form).iterdir())
        for form in ("csv", "parquet")
    }
    facts = DataSet(
        folder,
        rows,
        {column: digest.hexdigest() for column, digest in digests.items()},
        sizes["csv"],
        sizes["parquet"],
    )
    document = {key: value for key, value in asdict(facts).items() if key != "folder"}
    # Written last: a generation that was cut short is begun again.
    (folder / "manifest.json").write_text(json.dumps(document, indent=1))


def _batches(first: int, last: int) -> Iterator[pa.RecordBatch]:
    for start in range(first, last, ROWS_PER_BATCH):
        yield _batch(start, min(ROWS_PER_BATCH, last - start))


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

    def holes(self, column: str, values: Column, share: float) -> Column:
        """`values` with that share of nulls."""
        missing = pc.less(self.uniform(f"{column}/null"), pa.scalar(share))
        return pc.if_else(missing, pa.scalar(None, values.type), values)


def _batch(start: int, rows: int) -> pa.RecordBatch:
    dice = _Dice(start, rows)
    keys = pa.array(range(start + 1, start + rows + 1), pa.int64())
    # One order about every eight seconds from 2024-01-01 on, with a jitter of an hour.
    seconds = pc.add(pc.multiply(keys, 8), dice.below("jitter", 3600))
    micros = pc.add(
        pc.multiply(pc.add(seconds, 1_704_067_200), 1_000_000), dice.below("micros", 1e6)
    )
    delivered = pc.add(micros, dice.below("days", 864_000_000_000))
    cents = dice.below("amount", 2_000_000).cast(pa.int32()).cast(pa.decimal128(12, 0))
    words: list[Column] = [dice.choice(f"note{number}", WORDS, skew=True) for number in range(5)]
    columns = [
        keys,
        dice.below("customer_id", 300_000),
        dice.hexadecimal("reference", 20),
        dice.choice("status", STATUSES, skew=True),
        dice.choice("country", COUNTRIES, skew=True),
        pc.add(dice.below("quantity", 12), 1).cast(pa.int32()),
        # The same integers, read as hundredths.
        pa.Array.from_buffers(pa.decimal128(12, 2), rows, [None, cents.buffers()[1]]),
        dice.holes("weight", pc.round(pc.multiply(dice.uniform("weight"), 50.0), 3), 0.05),
        micros.cast(pa.timestamp("us")).cast(pa.date32(), safe=False),
        micros.cast(pa.timestamp("us", tz="UTC")),
        dice.holes("delivered_at", delivered.cast(pa.timestamp("us")), 0.2),
        dice.holes("paid", pc.less(dice.uniform("paid"), pa.scalar(0.7)), 0.02),
        dice.holes("note", pc.binary_join_element_wise(*words, pa.scalar(" ")), 0.3),
    ]
    return pa.record_batch(columns, schema=SCHEMA)
