"""`source: {type: SPARK}`: settings, what the job is told, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from lakeload.documents.spec import table_specs
from lakeload.machine.jars.pins import jar_sets_for
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.spec import SparkInput, TableSpec
from tests.unit.documents.documents import pipeline, problems_of, validator

XML = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source:
  type: SPARK
  format: xml
  options: {rowTag: order}
tables:
  - {table: orders, path: "in/*.xml", options: {ROWTAG: line}, where: a > 0}
  - {table: numbers, columns: {types: {a: int}}}
"""


def test_source_settings_become_the_job_spec(tmp_path: Path) -> None:
    orders, numbers = table_specs(pipeline(tmp_path, XML))

    assert orders.input == SparkInput("xml", (f"{tmp_path}/in/*.xml",), {"ROWTAG": "line"})
    assert numbers.input == SparkInput("xml", (), {"rowTag": "order"})
    assert orders.where == "a > 0"
    data = json.loads(json.dumps(to_json(orders)))
    assert from_json(TableSpec, data) == orders


def test_options_of_csv_that_spark_ignores_are_rejected(tmp_path: Path) -> None:
    text = XML.replace("format: xml", "format: CSV")

    (problem,) = problems_of(tmp_path, text.replace("ROWTAG: line", "backslash_escapes: true"))

    assert problem.message == (
        "Spark's reader of CSV has no option `backslash_escapes`, and ignores it"
    )
    assert "`type: FILES` with `format: CSV`" in (problem.hint or "")


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("format: xml", "format: csv", False),
        ("rowTag: order", "rowTag: other", False),
        ("in/*.xml", "in/a.xml", False),
        ("name: shop", "concurrency: 2\nname: shop", True),
    ],
)
def test_spark_source_fingerprint_includes_settings_that_affect_rows(
    old: str, new: str, same: bool, tmp_path: Path
) -> None:
    def marks(text: str) -> list[str]:
        return [table.fingerprint for table in table_specs(pipeline(tmp_path, text))]

    assert (marks(XML) == marks(XML.replace(old, new))) is same


def test_spark_source_is_valid_by_the_json_schema() -> None:
    validator("pipeline").validate(yaml.safe_load(XML))


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("rowTag: order", "password: hunter2", "source.options.password", "secret"),
        ("ROWTAG: line", "dbtable: a, url: 'jdbc:x://u:hunter2@h'",
         "tables[0].options.url", "secret"),
        ("ROWTAG: line", "url: 'jdbc:x://h?user=u&password=hunter2'",
         "tables[0].options.url", "secret"),
        ("rowTag: order", "path: /data", "source.options.path", "belongs to lakeload"),
        ('"in/*.xml"', "s3://bucket-a/x", "tables[0].path", "paths of this machine"),
        ("format: xml", "format: 'a b'", "source.format", "is not the name of a format"),
        ("format: xml", "", "source.format", "`format` is missing in `source`"),
        ("format: xml", "format: xml\n  incremental: true", "source.incremental", "unknown key"),
    ],
)  # fmt: skip
def test_source_mistakes_are_reported_at_their_lines(
    old: str, new: str, key: str, message: str, tmp_path: Path
) -> None:
    problems = problems_of(tmp_path, XML.replace(old, new))

    assert any(problem.key == key and message in problem.message for problem in problems), problems
    assert "hunter2" not in repr([(problem.message, problem.hint) for problem in problems])


def test_spark_source_avro_needs_its_jar(tmp_path: Path) -> None:
    tables = table_specs(pipeline(tmp_path, XML.replace("format: xml", "format: avro")))

    assert "avro" in jar_sets_for(table.input for table in tables)
    assert jar_sets_for(table.input for table in table_specs(pipeline(tmp_path, XML))) == ()
