"""The direct Parquet reader loads what Spark's reader loads, value by value, or says why not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import ColumnsSpec, ReaderChoice, RunOptions, TableSpec
from tests.integration.jobs.conftest import Job
from tests.unit.sources.files.formats.parquet.test_reader import (
    FOOTER_ALONE,
    LEVELS_1,
    LEVELS_3,
    ROWS_20,
    ROWS_25,
    ROWS_30,
)
from tests.unit.sources.files.typed.typed_files import flip_bit, replace_bytes

U8, U16, U32, U64 = pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
NTZ, LTZ = pa.timestamp("us"), pa.timestamp("us", "UTC")
OLD = [datetime(1, 1, 1), datetime(1500, 2, 3, 4, 5, 6, 7), datetime(9999, 12, 31, 23, 59, 59, 7)]
INNER = pa.struct([("x", pa.int32()), ("y y", pa.list_(pa.struct([("z", pa.string())])))])


@dataclass(frozen=True)
class Case:
    """Files of one table, how they are written, and the settings of the table."""

    tables: Sequence[pa.Table]
    written: dict[str, Any] = field(default_factory=dict)
    columns: ColumnsSpec = field(default_factory=ColumnsSpec)


def table(**columns: Any) -> Case:
    return Case([pa.table(columns)])


def stamps(unit: Any, zone: str | None) -> pa.Array[Any]:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    return pa.array([0, -1, 123_456_789, -62_135_596_800 * ticks, None], pa.timestamp(unit, zone))


CASES = {
    "integers": Case(
        [
            pa.table(
                {
                    str(kind): pa.array([0, 1, None, 127], kind)
                    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), U8, U16, U32, U64)
                }
            ),
        ]
    ),
    "largest": table(
        a=pa.array([255], U8),
        b=pa.array([65_535], U16),
        c=pa.array([2**32 - 1], U32),
        d=pa.array([2**64 - 1], U64),
    ),
    "floats": table(
        f=pa.array([1.5, float("nan"), -0.0, float("inf"), None], pa.float32()),
        d=[1e308, float("nan"), -0.0, float("-inf"), None],
    ),
    "texts": table(
        s=["a", "é🚀", "", None],
        b=[b"\x00\xff", b"", None, b"x"],
        large=pa.array(["a", None, "b", "c"], pa.large_string()),
        bytes=pa.array([b"a", None, b"b", b"c"], pa.large_binary()),
        fixed=pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
        boolean=[True, False, None, True],
    ),
    "dictionaries": table(
        s=pa.array(["a", "b", None, "a"]).dictionary_encode(),
        n=pa.array([1, 2, None, 1]).dictionary_encode(),
        nothing=pa.nulls(4),
    ),
    "dates": table(
        d=pa.array([0, -719_162, 2_932_896, None, -141_428, -141_427], pa.date32()),
        e=pa.array([0, 86_400_000, None, -86_400_000, 0, 0], pa.date64()),
    ),
    "timestamps": table(
        **{
            f"{unit} {zone}": stamps(unit, zone)
            for unit in ("s", "ms", "us")
            for zone in (None, "UTC", "Europe/Berlin")
        }
    ),
    "old timestamps": table(n=pa.array(OLD, NTZ), z=pa.array(OLD, LTZ)),
    "INT96": Case(
        [pa.table({"t": pa.array([*OLD, None], NTZ)})], {"use_deprecated_int96_timestamps": True}
    ),
    "durations": table(d=pa.array([1, None], pa.duration("us"))),
    "decimals": table(
        a=pa.array([Decimal("0.12"), None], pa.decimal128(5, 2)),
        b=pa.array([Decimal(-1), None], pa.decimal128(18, 0)),
        c=pa.array([Decimal("-1.5"), None], pa.decimal128(38, 10)),
        d=pa.array([Decimal("1.12"), None], pa.decimal32(5, 2)),
        e=pa.array([Decimal("1.12"), None], pa.decimal64(15, 2)),
    ),
    "decimals as integers": Case(
        [
            pa.table(
                {
                    "a": pa.array([Decimal("0.12"), None], pa.decimal128(5, 2)),
                    "b": pa.array([Decimal("-1.12"), None], pa.decimal128(15, 2)),
                }
            )
        ],
        {"store_decimal_as_integer": True},
    ),
    "structs": table(
        s=pa.array([{"x": 1, "y y": [{"z": "a"}, None, {"z": None}]}, None, {"x": None}], INNER)
    ),
    "lists": table(
        l=pa.array([[1, None], [], None, [3]], pa.list_(pa.int64())),
        ll=pa.array([[[1]], [[], None], None, []], pa.list_(pa.list_(pa.int32()))),
        large=pa.array([["a"], None, [], ["b", None]], pa.large_list(pa.large_string())),
        times=pa.array([[OLD[1]], None, [], [None]], pa.list_(pa.timestamp("ms", "UTC"))),
    ),
    "maps": table(
        m=pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
        n=pa.array(
            [[(1, [{"q q": 1.5}])], None, []],
            pa.map_(pa.int32(), pa.list_(pa.struct([("q q", pa.float64())]))),
        ),
    ),
    "columns that come and go": Case(
        [
            pa.table({"a": [1], "b": ["x"]}),
            pa.table({"b": ["y"], "c": [1.5]}),
            pa.table({"c": [2.5], "a": [7]}),
        ]
    ),
    "fields that come and go": Case(
        [
            pa.table({"s": pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))}),
            pa.table({"s": [{"b": "x", "a": 2}, None]}).cast(
                pa.schema([("s", pa.struct([("a", pa.int32()), ("b", pa.string())]))])
            ),
            pa.table({"s": pa.array([{"b": "only"}, None], pa.struct([("b", pa.string())]))}),
        ]
    ),
    "names": Case(
        [pa.table({"a": [1], "a.b": [2], "c d": [3], "A": [4], "left out": [5], "é": [6]})],
        columns=ColumnsSpec(exclude=("left out",), rename={"c d": "renamed"}),
    ),
    "wider types": Case(
        [
            pa.table(
                {
                    "i": pa.array([1, None], pa.int32()),
                    "f": pa.array([1.1, None], pa.float32()),
                    "d": pa.array([Decimal("1.1"), None], pa.decimal128(5, 1)),
                    "n": pa.array([OLD[1], None], NTZ),
                }
            )
        ],
        columns=ColumnsSpec(
            types={"i": "bigint", "f": "double", "d": "decimal(12,1)", "n": "timestamp"}
        ),
    ),
    "many row groups": Case(
        [pa.table({"n": range(5_000), "s": [str(n) * 5 for n in range(5_000)]})],
        {"row_group_size": 777},
    ),
    "other encodings": Case(
        [
            pa.table(
                {"n": range(900), "s": [str(n) for n in range(900)], "l": [[n] for n in range(900)]}
            )
        ],
        {
            "data_page_version": "2.0",
            "compression": "zstd",
            "use_dictionary": False,
            "column_encoding": {"n": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"},
        },
    ),
    "old lists": Case([pa.table({"l": [[1, 2], None]})], {"use_compliant_nested_type": False}),
    "an empty file among others": Case(
        [pa.table({"a": pa.array([], pa.int32())}), pa.table({"a": pa.array([1], pa.int32())})]
    ),
}


@dataclass
class Twins:
    """Loads one table through both readers and compares what was written."""

    job: Job
    folder: Path
    through_spark: set[str]

    def files(self, case: Case) -> str:
        for number, content in enumerate(case.tables):
            pq.write_table(content, self.folder / f"{number}.parquet", **case.written)
        return str(self.folder)

    def load(self, given: TableSpec, reader: ReaderChoice, **changes: Any) -> TableResult:
        name = f"{given.table}_{reader.lower()}"
        named = replace(given, source=name, table=name, fingerprint=name)
        return self.job.load_one(named, reader=reader, **changes)

    def equal(self, given: TableSpec, **changes: Any) -> TableResult:
        """Load through both readers; return the direct one's result."""
        jvm, direct = (self.load(given, reader, **changes) for reader in ("JVM", "DIRECT"))
        assert (jvm.error, direct.error) == (None, None)
        assert (jvm.reader, direct.reader) == ("jvm", "direct")
        assert self.through_spark & {jvm.table, direct.table} == {jvm.table}
        assert (direct.rows, direct.status) == (jvm.rows, jvm.status)
        assert self.seen(direct) == self.seen(jvm)
        if jvm.files:
            wanted, found = self.job.rows(jvm), self.job.rows(direct)
            assert found.schema == wanted.schema
            assert found["_supa_index"].to_pylist() == list(range(1, found.num_rows + 1))
        return direct

    def seen(self, result: TableResult) -> list[str]:
        """The rows as a reader sees them that neither side uses, in no order."""
        copies = []
        for number, file in enumerate(result.files):
            copies.append(str(self.folder.parent / f"{result.table}-{number}.parquet"))
            Path(copies[-1]).write_bytes(self.job.lake.read(file.key))
        if not copies:
            return []
        relation = duckdb.connect().read_parquet(copies, union_by_name=True)
        names = [name for name in relation.columns if name not in ("_supa_index", "_supa_job_id")]
        # As text: DuckDB has no Python values for all of its own.
        quoted = ", ".join('"' + name.replace('"', '""') + '"::varchar' for name in names)
        return sorted(map(repr, relation.project(quoted).fetchall()))


@pytest.fixture
def twins(job: Job, tmp_path: Path, through_spark: set[str]) -> Twins:
    folder = tmp_path / "parquet"
    folder.mkdir()
    return Twins(job, folder, through_spark)


PLAIN = ("integers", "columns that come and go", "names", "many row groups")
"""Cases of `make test`. The values of the others are in the corpus, which Spark has read too
(tests/integration/sources/files/spark)."""


def _mostly_exhaustive(names: Iterable[str], *plain: str) -> list[Any]:
    """Return parameters: `make test` takes those that are plain, `make faults` the others."""
    return [
        name if name in plain else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in names
    ]


@pytest.mark.parametrize("name", _mostly_exhaustive(CASES, *PLAIN))
def test_both_readers_load_the_same_values(twins: Twins, name: str) -> None:
    case = CASES[name]
    path = twins.files(case)

    twins.equal(twins.job.table(path, file_format="PARQUET", columns=case.columns))


def _by_spark(spark: SparkSession, folder: Path, **conf: str) -> None:
    for name, value in conf.items():
        spark.conf.set(f"spark.sql.parquet.{name}", value)
    try:
        spark.sql(
            """select id, cast(id as decimal(20,3)) d, date'1500-01-01' + cast(id as int) day,
            timestamp'1500-01-01 01:02:03.000004' t, timestamp_ntz'1500-01-01 01:02:03' n,
            named_struct('k', array(map('k', id)), 'b', cast(null as int)) s, cast('x' as binary) b
            from range(100)"""
        ).coalesce(1).write.mode("overwrite").parquet(str(folder))
    finally:
        for name in conf:
            spark.conf.unset(f"spark.sql.parquet.{name}")


@pytest.mark.parametrize(
    "kind", _mostly_exhaustive(["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"], "INT96")
)
def test_direct_reader_reads_files_of_spark_as_spark_does(twins: Twins, kind: str) -> None:
    _by_spark(twins.job.spark, twins.folder, outputTimestampType=kind)

    twins.equal(twins.job.table(str(twins.folder), file_format="PARQUET"))


def test_lists_and_maps_in_the_old_layout_of_spark_are_read_alike(twins: Twins) -> None:
    spark = twins.job.spark
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    try:
        spark.sql(
            """select array(1, 2) l, array(1, null) g, array(array('x'), array()) ll,
            array(named_struct('a', 1)) ls, map(1, 'a', 2, null) m,
            map(date'2024-01-01', array(1)) d
            union all select array(), null, array(), array(null), map(), null"""
        ).coalesce(1).write.mode("overwrite").parquet(str(twins.folder))
    finally:
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    (path,) = twins.folder.glob("*.parquet")
    layout = str(pq.ParquetFile(path).schema)

    result = twins.equal(twins.job.table(str(twins.folder), file_format="PARQUET"))

    assert "repeated group field_id=-1 bag" in layout
    assert "repeated int32 field_id=-1 array" in layout
    assert twins.job.values(result) == [
        {
            "l": [1, 2],
            "g": [1, None],
            "ll": [["x"], []],
            "ls": [{"a": 1}],
            "m": [(1, "a"), (2, None)],
            "d": [(datetime(2024, 1, 1).date(), [1])],
        },
        {"l": [], "g": None, "ll": [], "ls": [None], "m": [], "d": None},
    ]


def test_direct_reader_reads_files_of_duckdb_as_spark_does(twins: Twins) -> None:
    duckdb.sql(
        f"""copy (select i::int a, i::utinyint u, 'x' || i s, {{'a': i, 'b': [i]}} st,
        map {{'k': i}} m, timestamp '2020-01-01' + interval (i) second t,
        timestamptz '2020-01-01 00:00:00+00' z, date '2020-01-01' d, i::decimal(18,3) de,
        (case when i % 2 = 0 then 'p' else 'q' end)::enum('p', 'q') e
        from range(200) r(i)) to '{twins.folder}/x.parquet' (format parquet)"""
    )

    twins.equal(twins.job.table(str(twins.folder), file_format="PARQUET"))


def test_partition_folders_are_columns_for_both_readers(twins: Twins) -> None:
    for day in ("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"):
        for number in ("1", "02"):
            folder = twins.folder / f"day={day}" / f"n={number}" / "t=a%20b%3A"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"id": [1, 2], "t": ["in", "file"]}), folder / "x.parquet")
    given = twins.job.table(str(twins.folder), file_format="PARQUET")

    twins.equal(given)
    (twins.folder / "elsewhere").mkdir()
    based = twins.job.table(
        f"{twins.folder}/day=2026*/*/*/*.parquet",
        name="based",
        file_format="PARQUET",
        options={"basePath": f"{twins.folder}/elsewhere/.."},
    )
    assert twins.equal(based).rows == 8


def test_nested_names_are_normalised_alike_and_keys_are_hashed_alike(twins: Twins) -> None:
    kind = pa.struct([("A b", pa.list_(pa.struct([("c-d", pa.int32()), ("c d", pa.int32())])))])
    rows = [{"A b": [{"c-d": 1, "c d": 2}, None]}, None]
    path = twins.files(table(k=[1, 2], s=pa.array(rows, kind)))

    twins.equal(twins.job.table(path, file_format="PARQUET", primary_key=("k",)))


def test_files_are_loaded_once_and_parts_are_numbered_through(twins: Twins) -> None:
    for number in range(5):
        rows = pa.table({"n": range(number * 1000, number * 1000 + 1000), "s": ["x" * 3000] * 1000})
        pq.write_table(
            rows, twins.folder / f"{number}.parquet", compression="none", use_dictionary=False
        )

    result = twins.equal(twins.job.table(str(twins.folder), file_format="PARQUET"))

    assert (result.rows, len(result.files) > 1) == (5000, True)
    assert sorted(row["n"] for row in twins.job.values(result)) == list(range(5000))


@pytest.mark.parametrize("limit", [1, 777, 800, 10_000])
def test_direct_reader_respects_the_limit(twins: Twins, limit: int) -> None:
    path = twins.files(CASES["many row groups"])
    given = twins.job.table(path, file_format="PARQUET")

    result = twins.load(given, "DIRECT", options=RunOptions(limit=limit, table_handling="APPEND"))

    assert (result.error, result.reader, result.rows) == (None, "direct", min(limit, 5000))
    assert twins.job.rows(result)["_supa_index"].to_pylist() == list(range(1, result.rows + 1))


def test_a_table_without_rows_has_no_files(twins: Twins) -> None:
    path = twins.files(table(a=pa.array([], pa.int32())))

    result = twins.equal(twins.job.table(path, file_format="PARQUET"))

    assert (result.status, result.rows, result.files) == ("LOADED", 0, ())


def _legacy(twins: Twins) -> TableSpec:
    _by_spark(twins.job.spark, twins.folder, datetimeRebaseModeInWrite="LEGACY")
    return twins.job.table(str(twins.folder), file_format="PARQUET")


def _plain(twins: Twins, **changes: Any) -> TableSpec:
    path = twins.files(table(a=[1, 2], s=[{"x": 1}, None]))
    return twins.job.table(path, file_format="PARQUET", **changes)


FALLBACKS: dict[str, tuple[Callable[[Twins], TableSpec], str]] = {
    "calendar": (_legacy, "Julian calendar"),
    "option": (
        lambda twins: _plain(twins, options={"datetimeRebaseMode": "LEGACY"}),
        "`spark.sql.parquet.datetimeRebaseModeInRead` is set",
    ),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_files_only_spark_can_read_are_read_by_spark_with_the_reason(
    twins: Twins, name: str
) -> None:
    make, reason = FALLBACKS[name]
    given = make(twins)

    refused = twins.load(given, "DIRECT")
    jvm, auto = twins.load(given, "JVM"), twins.load(given, "AUTO")

    assert refused.error is not None
    assert (refused.status, refused.error.exit_code) == ("FAILED", 2)
    assert "`spark: {reader: DIRECT}`" in refused.error.message
    assert reason in refused.error.message
    assert (auto.error, auto.reader) == (None, "jvm")
    assert twins.seen(auto) == twins.seen(jvm)


THROUGH_SPARK: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "where": ({"where": "abs(a) > 1"}, {}),
    "where with a limit": (
        {"where": "a > 1"},
        {"options": RunOptions(limit=1, table_handling="APPEND")},
    ),
    "deleted_when": ({"deleted_when": "abs(a) > 1"}, {}),
    "cast": ({"columns": ColumnsSpec(types={"a": "float"})}, {}),
    "cast with bad values to set aside": (
        {"columns": ColumnsSpec(types={"a": "int"})},
        {"on_bad_value": "QUARANTINE"},
    ),
    "cast of some rows": ({"columns": ColumnsSpec(types={"a": "int"}), "where": "a > 1"}, {}),
    "nested": ({}, {"nested": "JSON"}),
}


@pytest.mark.parametrize("name", THROUGH_SPARK)
def test_rows_read_by_arrow_may_pass_through_spark(twins: Twins, name: str) -> None:
    settings, changes = THROUGH_SPARK[name]
    given = _plain(twins, **settings)

    jvm, direct = (twins.load(given, reader, **changes) for reader in ("JVM", "DIRECT"))

    assert (jvm.error, direct.error) == (None, None)
    assert (jvm.reader, direct.reader) == ("jvm", "direct")
    assert direct.table in twins.through_spark
    assert twins.seen(direct) == twins.seen(jvm)


CAST = ColumnsSpec(
    types={
        "n": "tinyint",
        "text": "int",
        "exact": "decimal(5,1)",
        "at": "timestamp(ms)",
        "flag": "string",
        "key": "string",
    }
)


def _cast(twins: Twins, *bad: tuple[int, str, str, int], **settings: Any) -> TableSpec:
    """Return a table of columns that are cast; `bad` are rows with values that are bad."""
    rows = [(1, "-7", "1.20", 1_577_836_800_123), (None, None, None, None), *bad]
    n, text, exact, at = zip(*rows, strict=True)
    decimals = [None if one is None else Decimal(one) for one in exact]
    content = {
        "key": pa.array(range(len(rows)), pa.int64()),
        "n": pa.array(n, pa.int64()),
        "text": pa.array(text, pa.string()),
        "exact": pa.array(decimals, pa.decimal128(10, 2)),
        "at": pa.array(at, pa.int64()),
        "flag": pa.array([True, None, *[False for _ in bad]], pa.bool_()),
        "day": pa.array(["2026-11-24"] * len(rows), pa.string()),
    }
    path = twins.files(table(**content))
    return twins.job.table(path, file_format="PARQUET", columns=CAST, **settings)


BAD = [(300, "2", "1.25", 1), (-128, "007", "99999.90", 2**62), (127, "2147483648", "-0.05", -1)]


def test_columns_are_cast_without_spark(twins: Twins) -> None:
    result = twins.equal(_cast(twins))

    row = twins.job.values(result)[0]
    assert (row["key"], row["n"], row["text"], row["exact"]) == ("0", 1, -7, Decimal("1.2"))
    assert row["at"] == datetime(2020, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)


def test_casts_that_cannot_be_bad_need_no_spark_to_set_rows_aside(twins: Twins) -> None:
    given = twins.job.table(
        twins.files(table(a=[1, None], b=[True, False])),
        file_format="PARQUET",
        columns=ColumnsSpec(types={"a": "string", "b": "int"}),
        where="a = '1' or b = 0",
    )

    # A condition leaves out rows where no record may be set aside.
    filtered = twins.load(replace(given, table="where"), "DIRECT", on_bad_value="QUARANTINE")
    assert (filtered.error, filtered.table in twins.through_spark) == (None, True)
    assert twins.equal(replace(given, where=None), on_bad_value="QUARANTINE").rejected == 0
    assert twins.equal(replace(given, table="filtered")).rows == 2


@pytest.mark.parametrize("where", [None, "n is null or n < 0"])
def test_bad_values_of_casts_become_null_as_in_spark(twins: Twins, where: str | None) -> None:
    given = _cast(twins, *BAD, where=where)

    jvm, direct = (twins.load(given, reader, on_bad_value="NULL") for reader in ("JVM", "DIRECT"))

    assert (jvm.error, direct.error) == (None, None)
    assert direct.table not in twins.through_spark
    assert twins.seen(direct) == twins.seen(jvm)
    assert direct.warnings == jvm.warnings
    assert f"{7 if where is None else 5} values" in str(direct.warnings)


def test_a_load_fails_for_the_bad_values_that_spark_counts(twins: Twins) -> None:
    given = _cast(twins, *BAD)

    jvm, direct = (twins.load(given, reader) for reader in ("JVM", "DIRECT"))

    assert jvm.error is not None
    assert direct.error is not None
    assert direct.table not in twins.through_spark
    where = f"  reading `{twins.folder}/0.parquet`:\n    row group 1, row"
    assert where in direct.error.message
    where = "    row group 1, row"
    assert f"{where} 3: column `n`: the value `300` is no tinyint" in direct.error.message
    assert f"{where} 4: column `text`: the value `007` is no int" in direct.error.message
    for part in jvm.error.message.split(": column ")[1:]:
        assert part.partition("\n")[0] in direct.error.message
    assert (direct.error.hint, direct.error.type) == (jvm.error.hint, jvm.error.type)


def test_a_deletion_column_is_read_without_spark(twins: Twins) -> None:
    kind = pa.timestamp("us", "UTC")
    gone = pa.array([None, datetime(2026, 1, 2, tzinfo=UTC), None], kind)
    path = twins.files(table(a=pa.array([1, 2, None], pa.int32()), gone=gone))
    condition = "a = 1 or gone is not null"
    without_gone = ColumnsSpec(exclude=("gone",))
    given = twins.job.table(
        path, file_format="PARQUET", deleted_when=condition, columns=without_gone
    )

    result = twins.equal(given)

    assert result.reader == "direct"
    assert twins.job.rows(result)["_supa_deleted"].to_pylist() == [True, True, False]


def test_rows_are_left_out_without_spark(twins: Twins) -> None:
    for number in range(5):
        rows = pa.table({"n": range(number * 1000, number * 1000 + 1000), "s": ["x" * 3000] * 1000})
        path = twins.folder / f"{number}.parquet"
        pq.write_table(rows, path, compression="none", use_dictionary=False, row_group_size=100)
    condition = "n between 950 and 1049 or n > 4000 and not (n = 4500 or n is null)"
    given = twins.job.table(
        str(twins.folder), file_format="PARQUET", where=condition, deleted_when="n = 4999"
    )

    result = twins.equal(given)

    assert (result.reader, result.index) == ("direct", "dense")
    assert result.rows == 100 + 998
    assert twins.job.rows(result)["_supa_index"].to_pylist() == list(range(1, 1099))
    none = twins.equal(replace(given, where="n < 0", table="none"))
    assert (none.status, none.rows, none.files) == ("LOADED", 0, ())


def test_file_unreadable_by_spark_is_rejected_where_spark_is_needed(twins: Twins) -> None:
    path = twins.files(table(a=[1], t=pa.array([0], pa.time64("us"))))
    given = twins.job.table(path, file_format="PARQUET")

    refused = twins.load(given, "JVM")
    without = twins.load(replace(given, columns=ColumnsSpec(exclude=("t",))), "JVM")

    assert refused.error is not None
    assert f"column `t` of `{path}/0.parquet` is TIME in us" in refused.error.message
    assert refused.error.hint == "set `spark: {reader: AUTO}`"
    assert (without.error, twins.job.values(without)) == (None, [{"a": 1}])


def test_spark_only_types_are_read_by_spark(twins: Twins) -> None:
    twins.job.spark.sql(
        """select parse_json('{"a":1,"b":[1.5,"x",null]}') v, interval '1-2' year to month m,
        interval '1 02:03:04.5' day to second d"""
    ).coalesce(1).write.mode("overwrite").parquet(str(twins.folder))
    given = twins.job.table(str(twins.folder), file_format="PARQUET")

    result = twins.load(given, "AUTO")

    assert (result.error, result.reader) == (None, "jvm")
    assert twins.job.values(result) == [
        {
            "v": '{"a":1,"b":[1.5,"x",null]}',
            "m": "INTERVAL '1-2' YEAR TO MONTH",
            "d": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        }
    ]


VARIANTS = (
    *("null", "true", "1Y", "300S", "-70000", "5000000000L", "1.20BD", "-0.0050BD"),
    *("99999999999999999999999999999999999.125BD", "100BD", "12345678.90BD"),
    *("1.5D", "0.1D", "1e10D", "1e7D", "1e-3D", "-1.25e-4D", "-0.0D", "1.5F", "16777216F"),
    *("'x'", "repeat('é', 100)", "x'00ff'"),
    """concat('a"', chr(92), '/', chr(10), chr(31), chr(127), '🚀')""",
    *("date'2024-02-29'", "date'0001-01-01'", "timestamp'2024-02-29 01:02:03.4'"),
    *("timestamp'1500-01-01 00:00:00'", "timestamp_ntz'1969-12-31 23:59:59.999999'"),
    """parse_json('{"b": [1, {"c": []}], "a": {}, "é🚀": 1.10, "n": null}')""",
    """parse_json('[1e3, 12345678901234567890, "x", {"a": "y"}]')""",
    """parse_json('{"a": 7, "b": [1, "x"], "c": {"d": "e", "f": 1}}')""",
    "to_variant_object(array(named_struct('z', 1, 'a', date'2024-01-01')))",
)
SHREDDINGS = {
    "not": "",
    "objects": "a bigint, b array<string>, c struct<d: string>",
    "arrays": "array<struct<a: string>>",
    "texts": "string",
    "decimals": "decimal(20, 3)",
}


@pytest.mark.parametrize("name", _mostly_exhaustive(SHREDDINGS, "objects", "not"))
def test_variants_of_spark_are_read_alike(twins: Twins, name: str) -> None:
    spark, shredding = twins.job.spark, SHREDDINGS[name]
    properties = {
        "spark.sql.variant.writeShredding.enabled": "true" if shredding else "false",
        "spark.sql.variant.forceShreddingSchemaForTest": shredding,
        "spark.sql.variant.inferShreddingSchema": "false",
    }
    rows = (f"select {n} id, cast({value} as variant) v" for n, value in enumerate(VARIANTS))
    for key, value in properties.items():
        spark.conf.set(key, value)
    try:
        frame = spark.sql(" union all ".join(rows))
        inside = "named_struct('v', v, 'l', array(v, null), 'm', map('k', v)) s"
        # A variant inside of others is not shredded by Spark.
        shown = frame if shredding else frame.selectExpr("*", inside)
        shown.coalesce(1).write.mode("overwrite").parquet(str(twins.folder))
    finally:
        for key in properties:
            spark.conf.unset(key)
    (path,) = twins.folder.glob("*.parquet")
    assert ("typed_value" in str(pq.read_schema(path))) == bool(shredding)

    twins.equal(twins.job.table(str(twins.folder), file_format="PARQUET"))


def test_variants_of_several_writers_are_one_column_of_json(twins: Twins) -> None:
    for number, value in enumerate(("{'a': 1, 'b': [1.5, 2]}", "'x'", "5")):
        duckdb.sql(
            f"copy (select {number} id, {value}::variant v) "
            f"to '{twins.folder}/{number}.parquet' (format parquet)"
        )
    given = twins.job.table(str(twins.folder), file_format="PARQUET")

    result = twins.equal(given)

    rows = sorted(twins.job.values(result), key=lambda row: row["id"])
    assert [row["v"] for row in rows] == ['{"a":1,"b":[1.5,2]}', '"x"', "5"]


def test_a_condition_on_a_variant_is_that_of_spark(twins: Twins) -> None:
    twins.job.spark.sql("""select parse_json('{"a":' || id || '}') v, id from range(3)""").coalesce(
        1
    ).write.mode("overwrite").parquet(str(twins.folder))
    given = twins.job.table(
        str(twins.folder), file_format="PARQUET", where="variant_get(v, '$.a', 'int') > 1"
    )
    typed = replace(given, where=None, columns=ColumnsSpec(types={"v": "string"}))

    found, cast = twins.load(given, "AUTO"), twins.load(typed, "AUTO")

    assert (found.error, found.reader) == (None, "jvm")
    assert (cast.error, cast.reader) == (None, "jvm")
    assert twins.job.values(found) == [{"v": '{"a":2}', "id": 2}]


def test_both_readers_widen_types_of_several_files(twins: Twins) -> None:
    path = twins.files(
        Case(
            [
                pa.table(
                    {
                        "n": pa.array([1, None], pa.int32()),
                        "u": pa.array([255, None], pa.uint8()),
                        "f": pa.array([0.1, None], pa.float32()),
                        "d": pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)),
                        "e": pa.array([7, None], pa.int16()),
                    }
                ),
                pa.table(
                    {
                        "e": pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
                        "d": pa.array([Decimal("1.125")], pa.decimal128(9, 3)),
                        "f": [0.1],
                        "u": [2**40],
                        "n": [2**40],
                    }
                ),
            ]
        )
    )

    twins.equal(twins.job.table(path, file_format="PARQUET"))


def test_reader_setting_chooses_the_reader(twins: Twins) -> None:
    auto, jvm = (twins.load(_plain(twins), reader) for reader in ("AUTO", "JVM"))

    assert (auto.reader, jvm.reader) == ("direct", "jvm")


def test_a_file_that_is_damaged_inside_is_named(twins: Twins) -> None:
    path = twins.folder / "a.parquet"
    pq.write_table(pa.table({"a": range(100_000)}), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[20_000:40_000] = os.urandom(20_000)
    path.write_bytes(content)

    result = twins.load(twins.job.table(str(path), file_format="PARQUET"), "DIRECT")

    assert result.error is not None
    assert f"reading `{path}`" in result.error.message
    assert result.error.exit_code == 1
    assert twins.job.lake.data_keys() == []
    assert twins.job.lake.uploads_left() == []


def test_a_page_that_differs_from_its_checksum_is_refused_by_both_readers(twins: Twins) -> None:
    path = twins.folder / "a.parquet"
    options: Any = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"a": range(1_000)}), path, **options)
    flip_bit(path)
    given = twins.job.table(str(path), file_format="PARQUET")

    for reader in ("JVM", "DIRECT"):
        result = twins.load(given, reader)
        assert result.error is not None
        assert str(path) in result.error.message
        assert twins.job.lake.data_keys() == []


SIZE_227, SIZE_8191 = b"\x16\xc6\x03", b"\x16\xfe\x7f"
DAMAGE = {
    "rows of the row group": (ROWS_25, [ROWS_30, ROWS_30, ROWS_30]),
    "values of the column": (ROWS_25, [ROWS_25, ROWS_20, ROWS_25]),
    "levels": (LEVELS_1, [LEVELS_3]),
    # The middle of the row group is beyond the file, so it is in none of Spark's parts.
    "size of the row group": (SIZE_227, [SIZE_8191] * 4),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_that_spark_does_not_see_is_refused(twins: Twins, name: str) -> None:
    path = twins.folder / "a.parquet"
    pq.write_table(pa.table({"n": range(25)}), path, **FOOTER_ALONE)
    old, new = DAMAGE[name]
    replace_bytes(path, old, *new)

    result = twins.load(twins.job.table(str(path), file_format="PARQUET"), "JVM")

    assert result.error is not None
    assert f"reading `{path}`" in result.error.message
    assert twins.job.lake.data_keys() == []


def test_bad_values_of_all_parts_are_counted(twins: Twins) -> None:
    nanos = pa.array([1] * 20, pa.timestamp("ns"))
    blobs = [os.urandom(300_000) for _ in range(20)]
    paths = [twins.folder / f"{name}.parquet" for name in "ab"]
    for path in paths:
        pq.write_table(pa.table({"t": nanos, "b": blobs}), path)

    result = twins.load(twins.job.table(*map(str, paths), file_format="PARQUET"), "DIRECT")

    assert result.error is not None
    _, file, *texts, more = result.error.message.splitlines()
    assert texts[0].startswith("    row group 1, row 1: column `t`")
    assert (file, more) == (f"  reading `{paths[0]}`:", "  and 30 more")
    assert "`on_loss: TRUNCATE`" in (result.error.hint or "")


def test_timestamps_with_a_zone_are_utc_instants_for_both_readers(twins: Twins) -> None:
    moment = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    path = twins.files(table(t=pa.array([moment], pa.timestamp("us", "Europe/Berlin"))))

    result = twins.equal(twins.job.table(path, file_format="PARQUET"))

    assert twins.job.values(result) == [{"t": moment}]


def test_fields_in_another_order_than_the_tables_keep_their_values(twins: Twins) -> None:
    values: list[dict[str, Any]] = [{"a": 1, "b": 2}, {"b": 4, "a": 3}, {"c": 7, "b": 6, "a": 5}]
    for number, value in enumerate(values):
        content = pa.table({"s": pa.array([value])})
        pq.write_table(content, twins.folder / f"{number}.parquet")

    results = [
        twins.job.load_one(
            twins.job.table(str(twins.folder / f"{number}.parquet"), file_format="PARQUET"),
            job_id=f"job-{number}",
        )
        for number in range(len(values))
    ]

    assert [result.error for result in results] == [None, None, None]
    found = [value for result in results for value in twins.job.values(result)]
    assert found == [{"s": value} for value in values]
