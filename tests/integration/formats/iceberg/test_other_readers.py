"""What commits of our own write is what Iceberg's Java code writes, and what others read."""

from __future__ import annotations

import contextlib
import math
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CredentialsSpec
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import (
    MetadataWriter,
    ReadTable,
    now_ms,
)
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.manifests import (
    DELETED,
    read_list,
    read_manifest,
    write_added,
)
from lakeload_jobs.formats.iceberg.commits.metadata import (
    MAIN,
    Json,
    add_snapshot,
    assert_ref,
    ref,
    set_branch,
)
from lakeload_jobs.formats.iceberg.commits.snapshots import (
    Addition,
    added,
    again,
    files_of,
    moved,
    new_snapshot_id,
)
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from tests.integration.formats.iceberg.catalogs.world import secret_file
from tests.integration.formats.iceberg.glue_world import ADMINISTRATOR, exact_lake, glue_world
from tests.integration.formats.iceberg.twin_tables import (
    BY_DAY_REGION_BUCKET,
    METRICS,
    Lake,
    definition,
    differences,
    encode,
    entry_of,
    extreme_rows,
    partitioned_rows,
)
from tests.servers.ministack import AwsServer

pytestmark = pytest.mark.timeout(300)

VERSIONS = pytest.mark.parametrize("version", [2, 3])
NEWEST = pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.exhaustive), 3])
"""What differs little between the versions."""


@pytest.fixture
def lake(
    spark: SparkSession, exact_aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lake]:
    """Glue and its bucket, as the administrator."""
    world = glue_world(exact_lake(exact_aws, monkeypatch))
    key, secret_key = ADMINISTRATOR
    credentials = CredentialsSpec(
        access_key_id=secret_file("KEY", key), secret_access_key=secret_file("SECRET", secret_key)
    )
    world = replace(world, destination=replace(world.destination, credentials=credentials))
    session = AwsSession(world.destination)
    with contextlib.suppress(session.glue.exceptions.AlreadyExistsException):
        session.glue.create_database(DatabaseInput={"Name": world.schema})
    catalog = SparkCatalog(world.destination, session, has_jars=True)
    catalog.open_in(spark, world.schema, "it is compared with")
    yield Lake(
        spark,
        world,
        open_tables(world.destination, session),
        LakeFiles(session, world.destination),
    )
    catalog.close(jvm_stays=True)


def maps() -> pa.Table:
    pairs = [[("a", 1.5)], [], None, [("b", math.nan)]]
    column = pa.array(pairs, pa.map_(pa.string(), pa.float64()))
    return extreme_rows().append_column("pairs", column)


def wide() -> pa.Table:
    """More columns than Iceberg keeps metrics of, the nested ones first."""
    plain: dict[str, Any] = {
        "point": pa.array([{"x": 1.5, "y": "a"}, {"x": None, "y": "b"}]),
        "tags": pa.array([["a"], ["b", "c"]]),
    }
    return pa.table(plain | {f"c{number}": pa.array([number, None]) for number in range(105)})


TABLES: dict[str, tuple[pa.Table, tuple[str, ...], dict[str, str]]] = {
    "values": (extreme_rows(), (), {}),
    "maps": (maps(), (), {}),
    "metrics": (extreme_rows(), (), METRICS),
    "no metrics": (extreme_rows(), (), {"write.metadata.metrics.default": "none"}),
    "full metrics": (extreme_rows(), (), {"write.metadata.metrics.default": "full"}),
    "wide": (wide(), (), {}),
    # Each partition is a file of each job.
    "partitions": (partitioned_rows(0, 14), BY_DAY_REGION_BUCKET, {}),
    "merged": (
        partitioned_rows(0, 14),
        BY_DAY_REGION_BUCKET,
        {
            "commit.manifest.min-count-to-merge": "2",
            "write.metadata.compression-codec": "gzip",
        },
    ),
    "odd names": (
        pa.table({"2nd, city-name": ["bern", None, "bonn"], "id": pa.array([1, 2, 3], pa.int64())}),
        ("`2nd, city-name`", "bucket(2, id)"),
        {},
    ),
    "extreme partitions": (
        extreme_rows(),
        ("money", "wide", "flag", "day(at)", "truncate(3, text)", "month(local)", "year(day)"),
        {},
    ),
}

ONLY_JAVA = {
    *("iceberg-version", "engine-name", "engine-version", "app-id", "app-name"),
    *("manifests-created", "manifests-kept", "manifests-replaced", "entries-processed"),
}
"""What Java says in a summary of itself and of its work, and commits of our own do not."""


def comparable(described: Json) -> Json:
    """Return what a table says, without the differences that are meant."""
    # Java's catalogs write down the codec that tables created before have not.
    described["properties"].pop("write.parquet.compression-codec", None)
    for snapshot in described["snapshots"]:
        for name in ONLY_JAVA & snapshot["summary"].keys():
            del snapshot["summary"][name]
        for manifest in snapshot["manifests"]:
            # The schema as Iceberg's JSON is there as well; nobody reads this one.
            manifest["header"].pop("iceberg.schema", None)
        snapshot["list"]["header"] = [
            one for one in snapshot["list"]["header"] if one != "iceberg.schema"
        ]
    return described


@NEWEST
@pytest.mark.parametrize("name", TABLES)
def test_two_jobs_and_an_overwrite_are_what_java_makes_of_the_same_files(
    lake: Lake, name: str, version: int
) -> None:
    rows, partition_by, properties = TABLES[name]
    table = definition(rows.schema, partition_by, properties, version)
    own, java = lake.create(table), lake.create_by_java(table)
    for job, replaces in (("one", False), ("two", False), ("all", True), ("last", False)):
        encoded = lake.encode(own, rows)
        summary = {"lakeload.job-id": job}
        lake.commit(own, encoded, summary, replaces=replaces)
        lake.commit_by_java(java, encoded, summary, replaces=replaces)

    found = differences(comparable(lake.described(own)), comparable(lake.described(java)))
    assert not (told := list(found)), "\n".join(told)
    read = [
        sorted(map(repr, lake.spark.table(lake.sql_name(one)).collect())) for one in (own, java)
    ]
    assert read[0] == read[1]
    assert len(read[0]) == 2 * rows.num_rows
    if version == 2:
        by_python = lake.read(own).scan().to_arrow()
        assert by_python.num_rows == 2 * rows.num_rows
    else:
        (ids,) = lake.sql(
            "SELECT count(DISTINCT _row_id), min(_row_id), max(_row_id) FROM {t}", own
        )
        assert ids[0] == 2 * rows.num_rows
        if name != "merged":
            # A merged manifest takes ids for all of its rows, of which some have theirs already.
            assert tuple(ids[1:]) == (2 * rows.num_rows, 4 * rows.num_rows - 1)


def predicates(lake: Lake) -> dict[str, tuple[str, Any, int]]:
    """Text → table, predicate of Java, and how many of the two jobs' files it leaves."""
    of = lake.jvm.org.apache.iceberg.expressions.Expressions
    either = getattr(of, "or")
    zero, negative = 0.0, -0.0
    return {
        "text = 'zzz'": ("values", of.equal("text", "zzz"), 2),
        "text > highest": ("values", of.startsWith("text", "\U0010ffff"), 2),
        "long_text > 'é' × 90": ("values", of.greaterThan("long_text", "é" * 90), 2),
        "long_text > 'z'": ("values", of.greaterThan("long_text", "ü"), 0),
        "zero < 0.0": ("values", of.lessThan("zero", zero), 2),
        "zero < -0.0": ("values", of.lessThan("zero", negative), 0),
        "zero > 0.0": ("values", of.greaterThan("zero", zero), 0),
        "double > 0": ("values", of.greaterThan("double", zero), 2),
        "nan is NaN": ("values", of.isNaN("nan"), 2),
        "nan is a number": ("values", of.notNaN("nan"), 0),
        "empty is null": ("values", of.isNull("empty"), 2),
        "empty is not null": ("values", of.notNull("empty"), 0),
        "id > 2^62": ("values", of.greaterThan("id", 2**62), 2),
        "on = a day": ("partitions", of.equal("on", "2026-01-02"), 24),
        "on in none": ("partitions", of.greaterThan("on", "2026-01-03"), 0),
        "region = r1": ("partitions", of.equal("region", "r1"), 12),
        "region is null": ("partitions", of.isNull("region"), 12),
        "region in two": ("partitions", either(of.equal("region", "r1"), of.isNull("region")), 24),
        "id in a bucket": ("partitions", of.equal("id", 17), 10),
        "id in a range": ("partitions", of.lessThan("id", 3), 3),
        "amount beyond": ("partitions", of.greaterThan("amount", 100_000.0), 0),
    }


@VERSIONS
def test_java_plans_the_same_files_for_each_predicate(lake: Lake, version: int) -> None:
    twins = {}
    for name in ("values", "partitions"):
        rows, partition_by, properties = TABLES[name]
        table = definition(rows.schema, partition_by, properties, version)
        own, java = lake.create(table), lake.create_by_java(table)
        for job in range(2):
            given = rows if name == "values" else partitioned_rows(400 * job, 400)
            encoded = lake.encode(own, given)
            lake.commit(own, encoded)
            lake.commit_by_java(java, encoded, {})
        twins[name] = own, java
    for text, (name, predicate, count) in predicates(lake).items():
        planned, by_twin = (lake.planned(one, predicate) for one in twins[name])
        assert planned == by_twin, text
        assert len(planned) == count, text


def amounts(lake: Lake, name: str) -> dict[int, float]:
    """Return what Spark reads, and make sure that others read the same."""
    with_ids = lake.table(name).metadata["format-version"] == 3
    rows = lake.sql(f"SELECT id, amount{', _row_id' * with_ids} FROM {{t}}", name)
    found = {row["id"]: row["amount"] for row in rows}
    (count,) = lake.sql("SELECT count(*) AS rows FROM {t}", name)
    assert count["rows"] == len(rows) == len(found)
    if with_ids:
        ids = {row["_row_id"] for row in rows}
        assert len(ids - {None}) == len(found)
    else:
        by_python = lake.read(name).scan().to_arrow().to_pylist()
        assert {row["id"]: row["amount"] for row in by_python} == found
    return found


def delete_files(lake: Lake, name: str) -> int:
    (found,) = lake.sql("SELECT count(*) AS files FROM {t}.delete_files", name)
    return int(found["files"])


@VERSIONS
def test_spark_changes_and_maintains_what_is_written_and_the_next_jobs_come_on_top(
    lake: Lake, version: int
) -> None:
    modes = {f"write.{one}.mode": "merge-on-read" for one in ("delete", "update", "merge")}
    rows = partitioned_rows(0, 300)
    name = lake.create(definition(rows.schema, ("on", "bucket(2, id)"), modes, version))
    for first in (0, 300):
        lake.commit(name, lake.encode(name, partitioned_rows(first, 300)))
    expected = {number: float(number) for number in range(600)}
    assert amounts(lake, name) == expected

    lake.sql("UPDATE {t} SET amount = amount + 1 WHERE id < 50", name)
    lake.sql("DELETE FROM {t} WHERE id BETWEEN 50 AND 99 AND region IS NOT NULL", name)
    lake.sql(
        "MERGE INTO {t} t USING (SELECT explode(sequence(590, 609)) AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET amount = -1 WHEN NOT MATCHED THEN"
        " INSERT (id, region, on, amount) VALUES (s.id, 'new', date'2026-01-01', -2)",
        name,
    )
    expected |= {number: number + 1.0 for number in range(50)}
    expected = {i: one for i, one in expected.items() if not 50 <= i <= 99 or i % 7 == 0}
    expected |= dict.fromkeys(range(590, 600), -1.0) | dict.fromkeys(range(600, 610), -2.0)
    assert delete_files(lake, name) > 0
    assert amounts(lake, name) == expected

    lake.commit(name, lake.encode(name, partitioned_rows(1000, 20)))
    expected |= {number: float(number) for number in range(1000, 1020)}
    assert amounts(lake, name) == expected

    place = f"{lake.world.schema}.{name}"
    lake.sql(
        f"CALL lake.system.rewrite_data_files(table => '{place}',"
        " options => map('rewrite-all', 'true'))",
        name,
    )
    lake.sql(f"CALL lake.system.rewrite_manifests('{place}')", name)
    lake.sql(
        f"CALL lake.system.expire_snapshots(table => '{place}', retain_last => 1,"
        " older_than => current_timestamp())",
        name,
    )
    assert amounts(lake, name) == expected

    lake.sql("DELETE FROM {t} WHERE id % 10 = 3", name)
    lake.commit(name, lake.encode(name, partitioned_rows(2000, 5)))
    expected = {i: one for i, one in expected.items() if i % 10 != 3}
    expected |= {number: float(number) for number in range(2000, 2005)}
    assert delete_files(lake, name) > 0
    assert amounts(lake, name) == expected

    made = lake.commit(name, lake.encode(name, partitioned_rows(3000, 40)), replaces=True)
    assert delete_files(lake, name) == 0
    told = {key: made["summary"][f"total-{key}"] for key in ("records", "delete-files")}
    assert told == {"records": "40", "delete-files": "0"}
    lake.sql("INSERT INTO {t} VALUES (7, 'new', date'2026-01-01', 7.5)", name)
    assert amounts(lake, name) == {number: float(number) for number in range(3000, 3040)} | {7: 7.5}


@VERSIONS
def test_what_spark_has_staged_becomes_a_snapshot_of_the_table_as_it_is_now(
    lake: Lake, version: int
) -> None:
    rows = partitioned_rows(0, 20)
    mode = {"write.merge.mode": "merge-on-read"}
    name = lake.create(definition(rows.schema, ("on",), mode, version))
    lake.commit(name, lake.encode(name, rows))
    expected = {number: float(number) for number in range(20)}

    # A MERGE in a copy of the metadata, while another load takes the next numbers.
    copy = f"{name}_copy"
    lake.register(copy, lake.table(name).metadata_location)
    lake.sql(
        "MERGE INTO {t} t USING (SELECT explode(sequence(15, 24)) AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET amount = -1 WHEN NOT MATCHED THEN"
        " INSERT (id, region, on, amount) VALUES (s.id, 'new', date'2026-01-01', -2)",
        copy,
    )
    merged = lake.table(copy).metadata
    (staged,) = [one for one in merged["snapshots"] if one["snapshot-id"] == ref(merged, MAIN)]
    lake.commit(name, lake.encode(name, partitioned_rows(100, 5)), branch="another")
    table = lake.table(name)
    made = moved(lake.files, table.metadata, staged, schema_id=0, now_ms=now_ms())
    assert made["sequence-number"] == staged["sequence-number"] + 1
    lake.publish(table, made)
    expected |= dict.fromkeys(range(15, 20), -1.0) | dict.fromkeys(range(20, 25), -2.0)
    assert delete_files(lake, name) > 0
    assert amounts(lake, name) == expected

    # An append to a branch, while another load moves main.
    head = ref(lake.table(name).metadata, MAIN)
    lake.sql(f"ALTER TABLE {{t}} CREATE BRANCH staged AS OF VERSION {head}", name)
    insert = "INSERT INTO {t}.branch_staged VALUES (50, NULL, date'2026-01-05', 50.5)"
    lake.sql(insert, name)
    lake.commit(name, lake.encode(name, partitioned_rows(200, 5)))
    table = lake.table(name)
    number = ref(table.metadata, "staged")
    (staged,) = [one for one in table.metadata["snapshots"] if one["snapshot-id"] == number]
    head = ref(table.metadata, MAIN)
    identifier, summary = new_snapshot_id(), {"lakeload.job-id": "again"}
    made = again(lake.files, table.metadata, staged, head, identifier, summary, now_ms=now_ms())
    lake.publish(table, made)
    lake.sql("ALTER TABLE {t} DROP BRANCH staged", name)
    expected |= {number: float(number) for number in range(200, 205)} | {50: 50.5}
    assert amounts(lake, name) == expected
    assert [one.rows for one in files_of(lake.files, made)] == [1]


def test_release_of_iceberg_that_is_compared_is_the_pinned_one(spark: SparkSession) -> None:
    pins = tomllib.loads((files("lakeload.machine") / "jars.toml").read_text(encoding="utf-8"))
    names = {name for sets in pins.values() for name in sets["iceberg"]}
    pinned = {name.rpartition(":")[2] for name in names}
    jvm: Any = spark._jvm
    assert pinned == {str(jvm.org.apache.iceberg.IcebergBuild.version())}


class Memory:
    """Metadata files that are kept here until all loads are in, and data files that go on."""

    def __init__(self, bucket: LakeFiles) -> None:
        self._bucket = bucket
        self.held: dict[str, bytes] = {}

    def read(self, location: str) -> bytes:
        return self.held[location]

    def write(self, location: str, data: bytes) -> None:
        self.held[location] = data

    def delete(self, location: str) -> None:
        del self.held[location]

    def upload(self, locations: Iterable[str]) -> None:
        """Write these to the bucket, for others."""
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda one: self._bucket.write(one, self.held[one]), locations):
                pass


@pytest.mark.parametrize(
    ("version", "count", "merged"),
    [
        (3, 120, 20),
        pytest.param(2, 600, 100, marks=pytest.mark.exhaustive),
        pytest.param(3, 600, 100, marks=pytest.mark.exhaustive),
    ],
    ids=["3", "2, as by default", "3, as by default"],
)
def test_loads_in_a_row_stay_few_manifests_and_keep_their_row_ids(
    lake: Lake, version: int, count: int, merged: int
) -> None:
    memory = Memory(lake.files)
    writer = MetadataWriter(memory)
    rows = pa.table({"id": pa.array([0, 1], pa.int64())})
    properties = {} if merged == 100 else {"commit.manifest.min-count-to-merge": str(merged)}
    table = definition(rows.schema, (), properties, version)
    name = f"many_{version}_{count}"
    metadata, location = writer.create(table, lake.place(name))
    read = ReadTable(lake.world.schema, name, metadata, location)
    (file,) = encode(table.schema, rows, {})
    row_ids, most = {}, 0
    for load in range(count):
        place = f"{lake.place(name)}/data/{load}.parquet"
        memory.write(place, file.data)
        entry = entry_of(read.metadata, replace(file.encoded, location=place))
        number, head = new_snapshot_id(), ref(read.metadata, MAIN)
        manifest = write_added(memory, read.metadata, number, [entry])
        snapshot = added(
            memory, read.metadata, Addition(number, head, [manifest], {}), now_ms=now_ms()
        )
        metadata, location = writer.commit(
            read, [assert_ref(MAIN, head)], [add_snapshot(snapshot), set_branch(MAIN, number)]
        )
        read = replace(read, metadata=writer.read(location), metadata_location=location)
        most = max(most, len(read_list(memory, snapshot)))
        # The newest manifest is the first one.
        row_ids[place] = dict(ids_of(memory, snapshot, newest=True))[place]
    assert most <= merged + count // merged
    assert dict(ids_of(memory, read.metadata["snapshots"][-1])) == row_ids

    (last,) = [one for one in read.metadata["snapshots"] if one["snapshot-id"] == number]
    manifests = [row["manifest_path"] for row in read_list(memory, last)]
    memory.upload([location, last["manifest-list"], *manifests, *row_ids])
    lake.register(name, location)
    (found,) = lake.sql("SELECT count(*) AS rows, sum(id) AS total FROM {t}", name)
    assert (found["rows"], found["total"]) == (2 * count, count)
    if version == 3:
        seen = lake.sql("SELECT _file, min(_row_id) AS first FROM {t} GROUP BY _file", name)
        assert {row["_file"]: row["first"] for row in seen} == row_ids
    # And Java goes on where we stopped.
    lake.sql("INSERT INTO {t} VALUES (7)", name)
    lake.commit(name, lake.encode(name, rows))
    (found,) = lake.sql("SELECT count(*) AS rows, sum(id) AS total FROM {t}", name)
    assert (found["rows"], found["total"]) == (2 * count + 3, count + 8)


def ids_of(
    memory: Memory, snapshot: Json, *, newest: bool = False
) -> Iterator[tuple[str, int | None]]:
    """Yield the place of each live file, or of those in the newest manifest, and its first row
    id."""
    for row in read_list(memory, snapshot)[: 1 if newest else None]:
        for entry in read_manifest(memory, row).entries:
            if entry["status"] != DELETED:
                file = entry["data_file"]
                yield file["file_path"], file.get("first_row_id")
