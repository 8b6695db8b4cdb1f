"""Writes the ORC files of the corpus: `python -m tests.corpus.generate_orc`.

The types of docs/orc-files.md are written by pyarrow and pyorc (both ORC's C++ writer) and by
Spark (ORC's Java writer), in several encodings, codecs and zones of time. What is expected are the
values that were given to them.
"""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyorc
from pyarrow import orc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.corpus.given import Given
from tests.corpus.oracle import said

HERE = Path(__file__).parent
FILES, EXPECTED = HERE / "files" / "orc", HERE / "expected" / "orc.jsonl"

FIRST = datetime(2024, 2, 29, 13, 30, 59, 123_456)
NEAR = [FIRST, None, datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 58, 500_000)]
NEAR += [datetime(1901, 12, 31, 23, 0, 0, 1), datetime(2262, 4, 11, 23, 47, 16)]
FAR = [*NEAR, datetime(1, 1, 1), datetime(1582, 10, 4, 12), datetime(1582, 10, 16)]
FAR += [datetime(1677, 9, 20, 1, 2, 3, 999_999), datetime(9999, 12, 31, 23, 59, 59, 999_999)]
DAYS = [date(2024, 2, 29), None, date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31)]
ROW = (1, FIRST)


def aware(values: list[Any], zone: str = "UTC") -> list[Any]:
    """Return local times as those of a zone."""
    return [value and value.replace(tzinfo=ZoneInfo(zone)) for value in values]


def ints(bits: int) -> list[int | None]:
    """Return the least and the greatest number of a type, and what is between."""
    return [-(2 ** (bits - 1)), -1, 0, None, 1, 2 ** (bits - 1) - 1]


DIGITS = [Decimal("1" * 28 + ".0000000001"), None, Decimal("-" + "9" * 28 + "." + "9" * 10)]

PYORC: dict[str, Given] = {
    "boolean": Given("boolean", [True, False, None, True]),
    **{
        name: Given(name, ints(bits))
        for name, bits in (("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64))
    },
    "float": Given("float", [1.5, -0.0, None, math.inf]),
    "double": Given("double", [0.1, 1e308, None, math.nan]),
    "decimal_5_2": Given("decimal(5,2)", [Decimal("1.20"), Decimal("-999.99"), None]),
    "decimal_18_0": Given("decimal(18,0)", [Decimal(10**18 - 1), Decimal(0), None]),
    "decimal_38_10": Given("decimal(38,10)", DIGITS),
    "text": Given("string", ["a", "é🚀\n", "", None, "a", "a "]),
    "varchar": Given("varchar(3)", ["a", "é🚀x", "", None]),
    "binary": Given("binary", [b"\x00\xff", b"", None]),
    "date": Given("date", DAYS),
    "timestamp": Given("timestamp", FAR),
    "instant": Given("timestamp with local time zone", aware(FAR)),
    "list": Given("array<int>", [[1, None], [], None, [3]]),
    "list_of_times": Given("array<timestamp>", [[FAR[-1], None, FAR[6]], [], None, FAR]),
    "list_of_lists": Given(
        "array<array<struct<n:int,at:timestamp>>>",
        [[[(1, FAR[6]), None], []], None, [[(None, None)], [(3, NEAR[3])]]],
        [
            [[{"n": 1, "at": FAR[6]}, None], []],
            None,
            [[{"n": None, "at": None}], [{"n": 3, "at": NEAR[3]}]],
        ],
    ),
    "struct": Given(
        "struct<n:int,at:timestamp,s:struct<t:string,on:date>>",
        [(1, FIRST, ("x", DAYS[2])), None, (None, None, None), (2, FAR[-1], (None, DAYS[4]))],
        [
            {"n": 1, "at": FIRST, "s": {"t": "x", "on": DAYS[2]}},
            None,
            {"n": None, "at": None, "s": None},
            {"n": 2, "at": FAR[-1], "s": {"t": None, "on": DAYS[4]}},
        ],
    ),
    "map": Given(
        "map<string,int>",
        [{"a": 1, "b": None}, {}, None],
        [[("a", 1), ("b", None)], [], None],
    ),
    "map_of_times": Given(
        "map<timestamp,array<timestamp>>",
        [{FAR[-1]: [FAR[6], None]}, {}, None, {NEAR[3]: None}],
        [[(FAR[-1], [FAR[6], None])], [], None, [(NEAR[3], None)]],
    ),
    "nulls": Given("timestamp", [None, None]),
    "empty": Given("struct<at:timestamp>", []),
}
CODECS = ("NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD")


class ExactTimes(pyorc.converters.TimestampConverter):  # type: ignore[misc]
    """pyorc's own goes through floats."""

    @staticmethod
    def to_orc(obj: Any, timezone: Any) -> tuple[int, int]:
        if isinstance(obj, tuple):
            return obj
        since = (obj if obj.tzinfo else obj.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        return since.days * 86_400 + since.seconds, since.microseconds * 1000


CONVERTERS = {
    pyorc.TypeKind.TIMESTAMP: ExactTimes,
    pyorc.TypeKind.TIMESTAMP_INSTANT: ExactTimes,
}


def by_pyorc(file: str, kind: str, values: list[Any], **options: Any) -> None:
    with (FILES / file).open("wb") as sink:
        schema = f"struct<id:bigint,v:{kind}>"
        with pyorc.Writer(sink, schema, converters=CONVERTERS, **options) as writer:
            writer.writerows(enumerate(values))


def case(name: str, by: str, values: list[Any], **more: Any) -> dict[str, Any]:
    made = {"name": f"{name}_{by}", "by": by, "files": [f"{name}_{by}.orc"], **more}
    return made if "refused" in more else {**made, "values": [said(value) for value in values]}


def pyorc_cases() -> Iterator[dict[str, Any]]:
    writers: dict[str, dict[str, Any]] = {
        f"pyorc_{codec.lower()}": {"compression": getattr(pyorc.CompressionKind, codec)}
        for codec in CODECS
    }
    writers["pyorc_dictionary"] = {"dict_key_size_threshold": 1.0, "row_index_stride": 0}
    for by, options in writers.items():
        for name, given in PYORC.items():
            by_pyorc(f"{name}_{by}.orc", given.kind, given.values, **options)
            yield case(name, by, given.expected)
    for zone in ("America/New_York", "Asia/Kolkata", "Europe/Berlin"):
        local = [*NEAR, datetime(2024, 7, 1), datetime(2024, 12, 1), datetime(2050, 7, 1)]
        name, by = f"timestamp_{zone.rpartition('/')[2].lower()}", "pyorc"
        by_pyorc(f"{name}_{by}.orc", "timestamp", aware(local, zone), timezone=ZoneInfo(zone))
        yield case(name, by, local)


def long_ones() -> Iterator[dict[str, Any]]:
    """Many rows, so that numbers are encoded in all ways, in several stripes."""
    draw = random.Random(7)  # noqa: S311
    start = datetime(2020, 1, 1)

    def times(step: Callable[[int], timedelta]) -> list[Any]:
        found: list[Any] = [start]
        while len(found) < 500:
            found.append(found[-1] + step(len(found)))
        return [None if draw.random() < 0.1 else value for value in found]

    kinds = {
        "steady": times(lambda n: timedelta(seconds=60)),
        "same": times(lambda n: timedelta(0)),
        "slow": times(lambda n: timedelta(microseconds=draw.choice((0, 1, 1000)))),
        "wild": [
            start
            + timedelta(seconds=draw.choice((1, 10**9, -(10**9))), microseconds=n * 79_190_007)
            for n in range(500)
        ],
        "outliers": times(lambda n: timedelta(microseconds=10**13 if n % 200 == 0 else n % 90)),
    }
    for name, values in kinds.items():
        column = pa.array(values, pa.timestamp("us"))
        for version in ("0.11", "0.12"):
            by = f"pyarrow_{version.replace('.', '_')}"
            table = pa.table({"id": range(len(values)), "v": column})
            options: dict[str, Any] = {"file_version": version, "compression": "zstd"}
            file = str(FILES / f"long_{name}_{by}.orc")
            orc.write_table(table, file, stripe_size=4096, batch_size=100, **options)
            yield case(f"long_{name}", by, values)


STRUCT = pa.struct([("n", pa.int32()), ("at", pa.timestamp("ns"))])
PYARROW: dict[str, Given] = {
    "boolean": Given(pa.bool_(), [True, False, None]),
    **{f"int{bits}": Given(getattr(pa, f"int{bits}")(), ints(bits)) for bits in (8, 16, 32, 64)},
    "float": Given(pa.float32(), [1.5, -0.0, None, math.inf]),
    "double": Given(pa.float64(), [0.1, 1e308, None, math.nan]),
    "decimal_38_10": Given(pa.decimal128(38, 10), DIGITS),
    "text": Given(pa.string(), ["a", "é🚀\n", "", None]),
    "large_text": Given(pa.large_string(), ["a", "é🚀", "", None]),
    "binary": Given(pa.binary(), [b"\x00\xff", b"", None]),
    "date": Given(pa.date32(), DAYS),
    "timestamp_s": Given(
        pa.timestamp("s"), [value and value.replace(microsecond=0) for value in FAR]
    ),
    "timestamp_us": Given(pa.timestamp("us"), FAR),
    "timestamp_ns": Given(pa.timestamp("ns"), NEAR),
    "instant_us": Given(pa.timestamp("us", "UTC"), aware(FAR)),
    "instant_berlin": Given(pa.timestamp("us", "Europe/Berlin"), aware(FAR)),
    # The fraction of a second before 1970, which other writers of ORC cannot write.
    "last_second": Given(pa.timestamp("us"), [datetime(1969, 12, 31, 23, 59, 59, 999_999)]),
    "struct": Given(STRUCT, [{"n": 1, "at": FIRST}, None, {"n": None, "at": None}]),
    "list_of_structs": Given(pa.list_(STRUCT), [[{"n": 1, "at": NEAR[3]}, None], [], None]),
    "map": Given(
        pa.map_(pa.string(), pa.timestamp("us")), [[("a", FAR[6]), ("b", None)], [], None]
    ),
}


def pyarrow_cases() -> Iterator[dict[str, Any]]:
    writers: dict[str, dict[str, Any]] = {
        codec: {"compression": codec} for codec in ("uncompressed", "zlib", "zstd")
    }
    writers["rle1"] = {"file_version": "0.11", "compression": "snappy"}
    for writer, options in writers.items():
        for name, given in PYARROW.items():
            by = f"pyarrow_{writer}"
            column = pa.array(given.values, given.kind)
            table = pa.table({"id": pa.array(range(len(column)), pa.int64()), "v": column})
            orc.write_table(table, str(FILES / f"{name}_{by}.orc"), **options)
            yield case(name, by, given.expected)


EXAMPLE = datetime(2024, 2, 29, 1, 2, 3, 4)
PAGE: dict[str, tuple[str, Any]] = {
    **{name: (name, -7) for name in ("tinyint", "smallint", "int", "bigint")},
    "boolean": ("boolean", True),
    "float": ("float", 1.5),
    "double": ("double", 1.5),
    "string": ("string", "a"),
    "char": ("char(5)", "a"),
    "varchar": ("varchar(5)", "a"),
    "binary": ("binary", b"a"),
    "decimal": ("decimal(5,2)", Decimal("1.20")),
    "date": ("date", EXAMPLE.date()),
    "timestamp": ("timestamp", EXAMPLE),
    "instant": ("timestamp with local time zone", EXAMPLE),
    "struct": ("struct<t:string>", ("a",)),
    "array": ("array<int>", [1, None]),
    "map": ("map<string,int>", {"a": 1}),
}


def page() -> Iterator[dict[str, Any]]:
    """The examples of docs/orc-files.md, of which the page has what is expected."""
    for name, (kind, value) in PAGE.items():
        by_pyorc(f"page_{name}.orc", kind, [value])
    yield from ()


def refused() -> Iterator[dict[str, Any]]:
    """Values that have no place in the lake."""
    nanos = {
        "ns": pa.array([1_000, 1_001], pa.timestamp("ns")),
        "instant_ns": pa.array([0, -1], pa.timestamp("ns", "UTC")),
    }
    for name, column in nanos.items():
        orc.write_table(pa.table({"v": column}), str(FILES / f"refused_{name}_pyarrow.orc"))
        yield case(f"refused_{name}", "pyarrow", [], refused="row 2: column `v`: the value `")
    orc.write_table(
        pa.table({"v": pa.array([[], [1_001]], pa.list_(pa.timestamp("ns")))}),
        str(FILES / "refused_in_lists_pyarrow.orc"),
    )
    yield case("refused_in_lists", "pyarrow", [], refused="row 2: column `v.element`")
    twice = pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))
    orc.write_table(pa.table({"v": twice}), str(FILES / "refused_key_twice_pyarrow.orc"))
    yield case("refused_key_twice", "pyarrow", [], refused="row 2: column `v`: the value `a`")
    members = [1, "x", None, FAR[6], FAR[-1], 2]
    by_pyorc("refused_union_pyorc.orc", "uniontype<int,string,timestamp>", members)
    yield case("refused_union", "pyorc", [], refused="has a union, which is not read")
    plain = (FILES / "refused_no_struct_pyorc.orc").open("wb")
    with plain as sink, pyorc.Writer(sink, "int") as writer:
        writer.write(1)
    yield case("refused_no_struct", "pyorc", [], refused="its rows have no columns")
    raw = {"far": (2**50, 0), "old_nanos": (-62_000_000_000, 1001), "first_nanos": (-2, 1)}
    for name, stored in raw.items():
        by_pyorc(f"refused_{name}_pyorc.orc", "timestamp", [FIRST, stored])
        why = "292,000 years" if name == "far" else "row 2: column `v`: the value `"
        yield case(f"refused_{name}", "pyorc", [], refused=why)


def spark_cases() -> Iterator[dict[str, Any]]:
    """Java's writer, in zones, with the days of the Julian calendar that it has by itself."""
    for zone in ("UTC", "America/Los_Angeles", "Asia/Kolkata"):
        session = (
            SparkSession.builder.master("local[1]")
            .config("spark.driver.extraJavaOptions", f"-Duser.timezone={zone}")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        short = zone.rpartition("/")[2].lower()
        times = [None if one is None else one.isoformat() for one in FAR]
        days = [None if one is None else one.isoformat() for one in DAYS]
        kinds: dict[str, tuple[str, list[str | None], list[Any]]] = {
            "timestamp": ("timestamp", times, aware(FAR)),
            "timestamp_ntz": ("timestamp_ntz", times, FAR),
            "date": ("date", days, DAYS),
            "list_of_times": ("array<timestamp>", times, [[one] for one in aware(FAR)]),
        }
        for name, (kind, texts, expected) in kinds.items():
            rows = [(number, text) for number, text in enumerate(texts)]
            frame = session.createDataFrame(rows, "id bigint, v string").coalesce(1).orderBy("id")
            value = (
                F.array(F.col("v").cast("timestamp")) if "array" in kind else F.col("v").cast(kind)
            )
            for codec in ("zlib", "snappy") if zone == "UTC" else ("zlib",):
                by = f"spark_{short}_{codec}"
                with TemporaryDirectory() as folder:
                    options = {"compression": codec}
                    written = frame.select("id", value.alias("v")).coalesce(1)
                    written.write.mode("overwrite").options(**options).orc(folder)
                    (found,) = Path(folder).glob("*.orc")
                    shutil.copy(found, FILES / f"{name}_{by}.orc")
                yield case(name, by, expected)
        session.stop()
        SparkSession._instantiatedSession = None
        gateway = type(session.sparkContext)._gateway
        if gateway is not None:
            gateway.shutdown()
        type(session.sparkContext)._gateway = type(session.sparkContext)._jvm = None


def main() -> None:
    """Write all of it anew."""
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    writers = (pyorc_cases, long_ones, pyarrow_cases, page, refused, spark_cases)
    lines = [json.dumps(one, sort_keys=False) for cases in writers for one in cases()]
    EXPECTED.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
