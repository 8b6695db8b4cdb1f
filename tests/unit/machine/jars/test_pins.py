"""What is pinned, and what of it lies in the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lakeload.machine.jars.pins import SETS, Jar, jar_sets_for, look_at, look_at_all, pinned
from lakeload_jobs.contract.spec import FilesInput

CONTENT = b"PK jar " * 1000
JAR = Jar("org.example", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


def test_every_pinned_jar_has_coordinates_a_size_and_a_checksum() -> None:
    jars = pinned(*SETS)

    assert len({jar.file_name for jar in jars}) == len(jars) > 30
    for jar in jars:
        assert len(bytes.fromhex(jar.sha256)) == 32
        assert jar.size > 1000
        assert jar.path.endswith(f"/{jar.artifact}/{jar.version}/{jar.file_name}")
        assert jar.coordinates == f"{jar.group}:{jar.artifact}:{jar.version}"


def test_jar_sets_have_the_documented_jars() -> None:
    assert [jar.coordinates for jar in pinned("iceberg")] == [
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    ]
    assert {jar.feature for jar in pinned("avro")} == {"avro"}
    assert "hadoop-aws-3.4.2.jar" in {jar.file_name for jar in pinned("s3")}


def test_jars_are_needed_for_s3_avro_and_iceberg_alone() -> None:
    local = FilesInput("CSV", ("/data/*.csv",), {})
    s3 = FilesInput("ORC", ("/data/a.orc", "s3://bucket/b.orc"), {})
    csv = FilesInput("CSV", ("/data/a.csv", "s3://bucket/b.csv"), {})
    lines = FilesInput("NDJSON", ("s3://bucket/b.ndjson",), {})
    direct = FilesInput("AVRO", ("/data/a.avro",), {})
    avro = FilesInput("AVRO", ("/data/a.avro",), {"avroSchema": "{}"})

    assert jar_sets_for([local, csv, lines, direct]) == ()
    assert jar_sets_for([local, avro, s3, s3]) == ("avro", "s3")
    assert jar_sets_for([local], "ICEBERG") == ("iceberg",)
    assert jar_sets_for([s3, avro], "ICEBERG") == ("avro", "iceberg", "s3")


def test_a_jar_is_present_missing_or_broken(tmp_path: Path) -> None:
    assert look_at(JAR, tmp_path).state == "missing"

    (tmp_path / JAR.file_name).write_bytes(CONTENT[:-1])
    broken = look_at(JAR, tmp_path)
    assert broken.state == "broken"
    assert broken.found == hashlib.sha256(CONTENT[:-1]).hexdigest()

    (tmp_path / JAR.file_name).write_bytes(CONTENT)
    assert [state.state for state in look_at_all([JAR], tmp_path)] == ["present"]


def test_unreadable_jar_is_broken(tmp_path: Path) -> None:
    (tmp_path / JAR.file_name).mkdir()
    assert look_at(JAR, tmp_path).state == "broken"
